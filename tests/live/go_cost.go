// SPDX-License-Identifier: Apache-2.0

// A server that does little but wait: for each line "N" two goroutines hand an empty item to and
// fro N times, each time two waits that the other one ends. Answers with the ns of CPU that took.
package main

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"syscall"
)

func cpu() int64 {
	var r syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &r)
	return r.Utime.Nano() + r.Stime.Nano()
}

func main() {
	runtime.GOMAXPROCS(1) // so that each wait is one
	to, fro := make(chan struct{}), make(chan struct{})
	go func() {
		for range to {
			fro <- struct{}{}
		}
	}()
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		var n int
		fmt.Sscan(in.Text(), &n)
		began := cpu()
		for i := 0; i < n; i++ {
			to <- struct{}{}
			<-fro
		}
		fmt.Println(cpu() - began)
	}
}
