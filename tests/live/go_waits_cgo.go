// SPDX-License-Identifier: Apache-2.0
//go:build cgo

// With go_waits.go: a program that the C compiler's linker puts together, that waits in C, too, and is
// called by threads that are C's.
package main

/*
#include <pthread.h>
#include <time.h>

extern void calledBack(int);

static void nap(long ns)
{
	struct timespec t = { 0, ns };
	nanosleep(&t, 0);
}

static void *call_back(void *times)
{
	for (int i = 0; i < *(int *)times; i++) {
		calledBack(i);
		nap(300000);
	}
	return 0;
}

static void threads(int times)
{
	pthread_t t[2];
	for (int i = 0; i < 2; i++)
		pthread_create(&t[i], 0, call_back, &times);
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], 0);
}
*/
import "C"

import (
	"sync"
	"time"
)

func init() { more = append(more, calls, callbacks) }

// calls: a goroutine that waits in C is in a system call for all that Go knows, and keeps its thread.
func calls(n int, wg *sync.WaitGroup) {
	wg.Add(1)
	go func() {
		defer wg.Done()
		me := goid()
		var o own
		defer o.end()
		for i := 0; i < n; i++ {
			from := monotonic()
			C.nap(2000000)
			o.say("call %d %d %d", me, from, monotonic())
		}
	}()
}

var called = make(chan *int64)

// callbacks: threads of C's that call Go run a goroutine that none has made, now this, now that one.
func callbacks(n int, wg *sync.WaitGroup) {
	wg.Add(2)
	go func() {
		defer wg.Done()
		C.threads(C.int(n))
		close(called)
	}()
	go func() {
		defer wg.Done()
		me := goid()
		var o own
		defer o.end()
		for from := range called {
			o.say("called %d %d", *from, me)
		}
	}()
}

//export calledBack
func calledBack(i C.int) {
	me := goid()
	if i%2 == 0 {
		say("wait sleep %d %d", me, timed(func() { time.Sleep(2 * time.Millisecond) }))
	}
	called <- &me
}
