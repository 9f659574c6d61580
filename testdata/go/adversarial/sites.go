// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"net/http"
	"os"
	"runtime"
	"sync"
	"time"
)

// Where it is hard to say whose work it is.

// ---- broadcast: a condition and a closed channel wake many at once ----

type gate struct {
	mu   sync.Mutex
	cond *sync.Cond
	n    uint64
	open chan struct{}
}

func newGate() *gate {
	g := &gate{open: make(chan struct{})}
	g.cond = sync.NewCond(&g.mu)
	go func() {
		for range time.Tick(3 * time.Millisecond) {
			g.mu.Lock()
			g.n++
			close(g.open)
			g.open = make(chan struct{})
			g.cond.Broadcast()
			g.mu.Unlock()
		}
	}()
	return g
}

func (g *gate) waitCond(token string) {
	g.mu.Lock()
	for n := g.n; g.n == n; {
		g.cond.Wait()
	}
	g.mu.Unlock()
	gt(token, "broadcast-wake", "cond")
}

func (g *gate) waitClose(token string) {
	g.mu.Lock()
	open := g.open
	g.mu.Unlock()
	<-open
	gt(token, "broadcast-wake", "close")
}

// ---- select: two sources, a timeout ----

var selected = make(chan *item)

func selectWorker(stop chan struct{}) {
	for {
		select {
		case it := <-selected:
			gt(it.token, "select-recv", "")
			time.Sleep(time.Millisecond)
			it.done <- it.id
		case <-time.After(10 * time.Second):
		case <-stop:
			return
		}
	}
}

func sendToSelect(token string) {
	it := &item{0, token, make(chan uint64)}
	select {
	case selected <- it:
		<-it.done
	case <-time.After(time.Second):
	}
	gt(token, "select-answer", "")
}

// ---- a batch: one goroutine takes what many want and answers them together ----

var batched = make(chan *item, 64)

func batcher() {
	var batch []*item
	tick := time.NewTicker(2 * time.Millisecond)
	for {
		select {
		case it := <-batched:
			batch = append(batch, it)
		case <-tick.C:
			for _, it := range batch {
				it.done <- it.id
			}
			batch = batch[:0]
		}
	}
}

func useBatch(token string) {
	it := &item{0, token, make(chan uint64, 1)}
	batched <- it
	<-it.done
	gt(token, "batch-answer", "")
}

// ---- fan-in: the first error or the last success of several children; a cancelled context ----

func fanIn(token string) {
	ctx, cancel := context.WithCancel(context.Background())
	out := make(chan int, 3)
	for i := 0; i < 3; i++ {
		go func(i int) {
			gt(token, "spawn-work", "fan-in")
			select {
			case <-time.After(time.Duration(1+i) * time.Millisecond):
				out <- i
			case <-ctx.Done():
				gt(token, "cancel", "")
			}
		}(i)
	}
	<-out
	<-out
	gt(token, "fanin", "")
	cancel()
}

// ---- things that are used again, threads that are kept, calls that block ----

var buffers = sync.Pool{New: func() interface{} { return new(bytes.Buffer) }}

func reuse(token string) {
	b := buffers.Get().(*bytes.Buffer)
	b.Reset()
	b.WriteString(token)
	gt(token, "pool-reuse", "")
	buffers.Put(b)
}

func lockThread(token string) {
	done := make(chan struct{})
	go func() {
		runtime.LockOSThread()
		gt(token, "spawn-work", "locked-thread")
		time.Sleep(time.Millisecond)
		close(done)
	}()
	<-done
}

func readFile(token string) {
	f, err := os.Open("/proc/self/status")
	if err != nil {
		return
	}
	var buf [4096]byte
	f.Read(buf[:])
	f.Close()
	gt(token, "file-read", "")
}

var theGate *gate

func startSites() {
	theGate = newGate()
	go batcher()
	for i := 0; i < 2; i++ {
		go selectWorker(nil)
	}
}

// GET /hard?id=TOKEN: all of them.
func handleHard(w http.ResponseWriter, r *http.Request) {
	token := tokenOf(r)
	gt(token, "handler-entry", "")
	theGate.waitCond(token)
	theGate.waitClose(token)
	sendToSelect(token)
	useBatch(token)
	fanIn(token)
	reuse(token)
	lockThread(token)
	readFile(token)
	gt(token, "handler-exit", "")
	answer(w, token, 0)
}
