// SPDX-License-Identifier: Apache-2.0

// waits is looked at by the tests of how Go programs are read: goroutines stand at known places. It
// says "ready" when they do, and ends with its standard input. A byte on its standard input lets
// one of those that read go on.
package main

import (
	"os"
	"runtime"
	"sync"
	"syscall"
	"time"
)

const readers = 3

// readOne is inlined into handler.
func readOne(fd int, b []byte) bool {
	n, _ := syscall.Read(fd, b)
	return n == 1
}

//go:noinline
func handler(fd int, done chan<- int) {
	var b [1]byte
	time.Sleep(time.Millisecond) // it has waited once
	for readOne(fd, b[:]) {
		done <- work(400)
	}
	done <- 0
}

//go:noinline
func work(n int) int {
	if n == 0 {
		return 1
	}
	var room [32]int // some of the stack
	room[n%32] = n
	return work(n-1) + room[n%32]
}

type box struct {
	mu sync.Mutex
	n  int
}

//go:noinline
func (b *box) locked() { b.mu.Lock(); b.n++; b.mu.Unlock() }

//go:noinline
func chosen(a, b chan int) {
	select {
	case <-a:
	case <-b:
	}
}

func main() {
	var p [2]int
	if err := syscall.Pipe(p[:]); err != nil {
		panic(err)
	}
	done := make(chan int)
	never := make(chan int)
	b := &box{}
	b.mu.Lock()
	for i := 0; i < readers; i++ {
		go handler(p[0], done)
	}
	go b.locked()
	go chosen(never, nil)
	go func() { time.Sleep(time.Hour) }()
	go func() {
		for range done {
		}
	}()
	runtime.GC()
	time.Sleep(50 * time.Millisecond)
	os.Stdout.WriteString("ready\n")
	var in [1]byte
	for {
		if n, _ := os.Stdin.Read(in[:]); n == 0 {
			return
		}
		syscall.Write(p[1], in[:])
	}
}
