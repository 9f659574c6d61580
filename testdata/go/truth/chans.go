// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"io"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Waits in channels, in what is made of them, for time and for files.

// ---- channels as semaphores and as pools ----

// tokens: whoever sends has one, whoever receives lets it go.
func tokens(what string, sem chan struct{}, last *int64) {
	begin, by := monotonic(), int64(byUnknown)
	sem <- struct{}{}
	since := monotonic()
	if cap(sem) == 1 { // else it may be another that made room
		by = atomic.LoadInt64(last)
	}
	note("wait", what, 0, begin, by)
	time.Sleep(short)
	atomic.StoreInt64(last, goid())
	<-sem
	note("hold", what, 0, since, 0)
}

var (
	oneToken, twoTokens = make(chan struct{}, 1), make(chan struct{}, 2)
	oneLast, twoLast    int64
)

func semaphoreOne() { tokens("semaphore-1", oneToken, &oneLast) }
func semaphoreTwo() { tokens("semaphore-2", twoTokens, &twoLast) }

type conn struct {
	last int64 // who had it
	free int64 // since when nobody has, or the next one, who waits for it
}

// since is when who began to wait for it at @begin had it, now that it runs.
func (c *conn) since(begin int64) int64 {
	if c.free > begin {
		return c.free
	}
	return monotonic()
}

var onlyConn = func() chan *conn {
	c := make(chan *conn, 1)
	c <- &conn{}
	return c
}()

func connChannel() {
	begin := monotonic()
	c := <-onlyConn
	since := c.since(begin)
	note("wait", "conn-channel", 0, begin, c.last)
	time.Sleep(short)
	c.last, c.free = goid(), monotonic()
	onlyConn <- c
	note("hold", "conn-channel", 0, since, 0)
}

// As database/sql does it: who finds no connection leaves a channel, in which he gets the next one.
type pool struct {
	mu   sync.Mutex
	free []*conn
	want []chan *conn
}

var thePool = &pool{free: []*conn{{}}}

func (p *pool) get() (*conn, int64) {
	begin := monotonic()
	p.mu.Lock()
	if n := len(p.free); n > 0 {
		c := p.free[n-1]
		p.free = p.free[:n-1]
		p.mu.Unlock()
		return c, monotonic()
	}
	ask := make(chan *conn, 1)
	p.want = append(p.want, ask)
	p.mu.Unlock()
	select {
	case c := <-ask:
		note("wait", "sql-pool", 0, begin, c.last)
		return c, c.since(begin)
	case <-time.After(time.Minute):
		return &conn{}, begin
	}
}

func (p *pool) put(c *conn) {
	c.last, c.free = goid(), monotonic()
	p.mu.Lock()
	if len(p.want) > 0 {
		ask := p.want[0]
		p.want = p.want[1:]
		ask <- c
	} else {
		p.free = append(p.free, c)
	}
	p.mu.Unlock()
}

func sqlPool() {
	c, since := thePool.get()
	time.Sleep(short)
	thePool.put(c)
	note("hold", "sql-pool", 0, since, 0)
}

// ---- workers ----

type task struct {
	by   int64
	done chan *task
}

var (
	work      = make(chan *task, 16)
	collected = make(chan *task, 16)
	answered  = sync.Pool{New: func() interface{} { return make(chan *task, 1) }}
)

func startWorkers() {
	for i := 0; i < 3; i++ {
		go func() {
			me := goid()
			for t := range work {
				time.Sleep(short)
				t.by = me
				if t.done != nil {
					t.done <- t
				} else {
					collected <- t
				}
			}
		}()
	}
	go collector()
}

// workerPool: the answer comes in a channel that was another request's before.
func workerPool() {
	done := answered.Get().(chan *task)
	work <- &task{done: done}
	waited("worker-pool", 0, func() int64 { return (<-done).by })
	answered.Put(done)
}

var (
	resultMu sync.Mutex
	results  = map[*task]chan int64{}
)

// collector: all answers come in one channel, and one goroutine gives them to whom they belong to.
func collector() {
	me := goid()
	for t := range collected {
		resultMu.Lock()
		to := results[t]
		delete(results, t)
		resultMu.Unlock()
		to <- me
	}
}

func collectedResults() {
	t, c := &task{}, make(chan int64)
	resultMu.Lock()
	results[t] = c
	resultMu.Unlock()
	work <- t
	waited("collector", 0, func() int64 { return <-c })
}

// ---- closed channels, contexts ----

func closed() {
	c, by := make(chan struct{}), int64(0)
	after(short, func() { by = goid(); close(c) })
	waited("closed", 0, func() int64 { <-c; return by })
}

func cancelled() {
	parent, cancel := context.WithCancel(context.Background())
	ctx, free := context.WithCancel(parent)
	defer free()
	var by int64
	after(short, func() { by = goid(); cancel() })
	waited("cancelled", 0, func() int64 { <-ctx.Done(); return by })
}

func selected() {
	c, never := make(chan int64), make(chan int64)
	after(short, func() { c <- goid() })
	waited("selected", 0, func() int64 {
		select {
		case by := <-c:
			return by
		case by := <-never:
			return by
		}
	})
}

// ---- pipes ----

func ioPipe() {
	r, w := io.Pipe()
	var by int64
	after(short, func() { by = goid(); w.Write([]byte("x")) })
	waited("io-pipe", 0, func() int64 {
		var b [1]byte
		r.Read(b[:])
		return by
	})
}

// systemPipe blocks the thread, which Go does not see as more than a system call.
func systemPipe() {
	var fd [2]int
	if syscall.Pipe(fd[:]) != nil {
		return
	}
	var by int64
	after(short, func() { by = goid(); syscall.Write(fd[1], []byte("x")) })
	waited("system-pipe", 0, func() int64 {
		var b [1]byte
		syscall.Read(fd[0], b[:])
		return by
	})
	syscall.Close(fd[0])
	syscall.Close(fd[1])
}

// ---- time ----

func sleeps() { waited("sleep", 0, func() int64 { time.Sleep(short); return byRuntime }) }

func timeAfter() {
	never := make(chan int64)
	waited("time-after", 0, func() int64 {
		select {
		case by := <-never:
			return by
		case <-time.After(short):
			return byRuntime
		}
	})
}

func timerChannel() {
	waited("timer-channel", 0, func() int64 { <-time.NewTimer(short).C; return byRuntime })
}

func afterFunc() {
	c := make(chan int64)
	time.AfterFunc(short, func() { c <- goid() })
	waited("after-func", 0, func() int64 { return <-c })
}
