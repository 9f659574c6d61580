// SPDX-License-Identifier: Apache-2.0
//go:build cgo

// With go_waits.go: a program that the C compiler's linker puts together, and that waits in C, too.
package main

/*
#include <time.h>

static void nap(long ns)
{
	struct timespec t = { 0, ns };
	nanosleep(&t, 0);
}
*/
import "C"

import "sync"

func init() { more = append(more, calls) }

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
