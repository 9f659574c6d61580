// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// GET /work?id=TOKEN: two children, an item for a pool of workers, a pooled connection, a mutex.

type item struct {
	id    uint64
	token string
	done  chan uint64
}

type conn struct{ id int }

var (
	itemNext uint64
	items    = make(chan *item)     // unbuffered: handed from goroutine to goroutine
	buffered = make(chan *item, 64) // ... and through a buffer
	conns    = make(chan *conn, 4)  // passed around like work, but a resource
	mu       sync.Mutex
	served   = map[string]uint64{}
)

func worker(in chan *item, work time.Duration) {
	for it := range in {
		gt(it.token, "worker-recv", strconv.FormatUint(it.id, 10))
		time.Sleep(work)
		gt(it.token, "worker-done", strconv.FormatUint(it.id, 10))
		it.done <- it.id
	}
}

func startWork() {
	for i := 0; i < 4; i++ {
		go worker(items, 2*time.Millisecond)
		go worker(buffered, time.Millisecond)
		conns <- &conn{i}
	}
}

func spawnTwo(token string) {
	var wg sync.WaitGroup
	parent := fmt.Sprint(goid())
	for i := 0; i < 2; i++ {
		wg.Add(1)
		gt(token, "spawn", "")
		go func(i int) {
			defer wg.Done()
			gt(token, "spawn-work", parent)
			time.Sleep(time.Duration(1+i) * time.Millisecond)
			gt(token, "spawn-done", parent)
		}(i)
	}
	gt(token, "join-begin", "")
	wg.Wait()
	gt(token, "join-end", "")
}

func handOver(token string, to chan *item) {
	it := &item{atomic.AddUint64(&itemNext, 1), token, make(chan uint64)}
	gt(token, "worker-pool-send", strconv.FormatUint(it.id, 10))
	to <- it
	<-it.done
	gt(token, "worker-pool-answer", strconv.FormatUint(it.id, 10))
}

func useConn(token string, pool chan *conn, work time.Duration) {
	gt(token, "conn-pool-wait", "")
	c := <-pool
	gt(token, "conn-pool-acquire", strconv.Itoa(c.id))
	time.Sleep(work)
	gt(token, "conn-pool-release", strconv.Itoa(c.id))
	pool <- c
}

func count(token string, held time.Duration) uint64 {
	gt(token, "mutex-wait", "")
	mu.Lock()
	gt(token, "mutex-lock", "")
	if held > 0 {
		time.Sleep(held)
	}
	served[token[:1]]++
	n := served[token[:1]]
	gt(token, "mutex-unlock", "")
	mu.Unlock()
	return n
}

func tokenOf(r *http.Request) string {
	if id := r.URL.Query().Get("id"); id != "" {
		return id
	}
	return "none"
}

func answer(w http.ResponseWriter, token string, n uint64) {
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(map[string]interface{}{"token": token, "n": n})
}

func handleWork(w http.ResponseWriter, r *http.Request) {
	token := tokenOf(r)
	gt(token, "handler-entry", "")
	spawnTwo(token)
	handOver(token, items)
	handOver(token, buffered)
	useConn(token, conns, time.Millisecond)
	n := count(token, 200*time.Microsecond)
	gt(token, "handler-exit", "")
	answer(w, token, n)
}
