// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"sync"
	"time"
)

// Waits for what somebody has, or until somebody is done: package sync.

const short = 2 * time.Millisecond

// after runs f on a goroutine of its own a little later.
func after(d time.Duration, f func()) {
	go func() {
		time.Sleep(d)
		f()
	}()
}

// ---- a condition, broadcast to all that wait ----

type gate struct {
	mu   sync.Mutex
	cond *sync.Cond
	n    uint64
	by   int64
}

func newGate() *gate {
	g := &gate{}
	g.cond = sync.NewCond(&g.mu)
	go func() {
		me := goid()
		for range time.Tick(3 * time.Millisecond) {
			g.mu.Lock()
			g.n++
			g.by = me
			g.cond.Broadcast()
			g.mu.Unlock()
		}
	}()
	return g
}

var theGate = newGate()

func condBroadcast() {
	g := theGate
	g.mu.Lock()
	for n := g.n; g.n == n; {
		waited("cond-broadcast", 0, func() int64 { g.cond.Wait(); return g.by })
	}
	g.mu.Unlock()
}

// ---- a queue of jobs beneath a lock, whose workers and askers are signalled ----

type job struct {
	done bool
	by   int64
	cond *sync.Cond
}

type queue struct {
	mu   sync.Mutex
	more *sync.Cond
	jobs []*job
}

func newQueue(workers int) *queue {
	q := &queue{}
	q.more = sync.NewCond(&q.mu)
	for i := 0; i < workers; i++ {
		go q.work()
	}
	return q
}

func (q *queue) work() {
	me := goid()
	for {
		q.mu.Lock()
		for len(q.jobs) == 0 {
			q.more.Wait()
		}
		j := q.jobs[0]
		q.jobs = q.jobs[1:]
		q.mu.Unlock()
		time.Sleep(short)
		q.mu.Lock()
		j.done, j.by = true, me
		j.cond.Signal()
		q.mu.Unlock()
	}
}

var theQueue = newQueue(2)

func condSignal() {
	q := theQueue
	j := &job{cond: sync.NewCond(&q.mu)}
	q.mu.Lock()
	q.jobs = append(q.jobs, j)
	q.more.Signal()
	waited("cond-signal", 0, func() int64 {
		for !j.done {
			j.cond.Wait()
		}
		return j.by
	})
	q.mu.Unlock()
}

// ---- locks ----

var (
	barged sync.Mutex
	free   int64 // when it was let go last: who waited then has it next, or finds that he has not
)

func mutex() {
	begin := monotonic()
	barged.Lock()
	since := monotonic()
	if free > begin {
		since = free
	}
	note("wait", "mutex", 0, begin, byUnknown)
	time.Sleep(short)
	free = monotonic()
	barged.Unlock()
	note("hold", "mutex", 0, since, 0)
}

// rwWriter: a writer has it, several readers want it.
func rwWriter() {
	of := aThing()
	var rw sync.RWMutex
	var readers sync.WaitGroup
	has, writer := make(chan struct{}), int64(0)
	go func() {
		rw.Lock()
		since := monotonic()
		writer = goid()
		close(has)
		time.Sleep(short)
		rw.Unlock()
		note("hold", "rw-writer", of, since, 0)
	}()
	<-has
	readers.Add(1)
	go func() {
		defer readers.Done()
		rw.RLock()
		rw.RUnlock()
	}()
	waited("rw-writer", of, func() int64 { rw.RLock(); return writer })
	rw.RUnlock()
	readers.Wait()
}

// rwReaders: @n readers have it, for longer and longer; a writer wants it.
func rwReaders(what string, n int) {
	of := aThing()
	var rw sync.RWMutex
	var mu sync.Mutex
	var last int64
	var ready sync.WaitGroup
	ready.Add(n)
	for i := 0; i < n; i++ {
		go func(i int) {
			rw.RLock()
			since := monotonic()
			ready.Done()
			time.Sleep(short + time.Duration(i)*time.Millisecond/2)
			mu.Lock()
			last = goid()
			rw.RUnlock()
			note("hold", what, of, since, 0)
			mu.Unlock()
		}(i)
	}
	ready.Wait()
	waited(what, of, func() int64 { rw.Lock(); return last })
	rw.Unlock()
}

// once: somebody else is at what is to be done once.
func once() {
	of := aThing()
	var o sync.Once
	var who int64
	at := make(chan struct{})
	go func() {
		since := monotonic()
		o.Do(func() {
			who = goid()
			close(at)
			time.Sleep(short)
		})
		note("hold", "once", of, since, 0)
	}()
	<-at
	waited("once", of, func() int64 { o.Do(func() {}); return who })
}

// ---- until all are done ----

// all runs as many as there are times, which sleep for those.
func all(what string, times ...time.Duration) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	var last int64
	wg.Add(len(times))
	for _, d := range times {
		go func(d time.Duration) {
			time.Sleep(d)
			mu.Lock()
			last = goid()
			wg.Done()
			mu.Unlock()
		}(d)
	}
	waited(what, 0, func() int64 { wg.Wait(); return last })
}

func waitGroup() { all("wait-group", short, short/2, short/4) }

// ---- one does it for all that ask meanwhile ----

type call struct {
	wg sync.WaitGroup
	by int64
}

var (
	callMu sync.Mutex
	calls  = map[string]*call{}
)

func singleFlight() {
	callMu.Lock()
	if c := calls["key"]; c != nil {
		callMu.Unlock()
		waited("single-flight", 0, func() int64 { c.wg.Wait(); return c.by })
		return
	}
	c := &call{by: goid()}
	c.wg.Add(1)
	calls["key"] = c
	callMu.Unlock()
	time.Sleep(2 * short)
	callMu.Lock()
	delete(calls, "key")
	c.wg.Done()
	callMu.Unlock()
}

// ---- a group that is cancelled by the first of it that fails ----

func group() {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	var mu sync.Mutex
	var last int64
	done := func() {
		mu.Lock()
		last = goid()
		wg.Done()
		mu.Unlock()
	}
	wg.Add(3)
	for i := 0; i < 2; i++ {
		go func() {
			defer done()
			<-ctx.Done()
			time.Sleep(100 * time.Microsecond)
		}()
	}
	go func() {
		defer done()
		time.Sleep(short)
		cancel()
	}()
	waited("group", 0, func() int64 { wg.Wait(); return last })
}
