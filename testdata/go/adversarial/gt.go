// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

// The truth: who worked for which request, when. Kept in an array that is claimed slot by slot with
// one atomic add, so that telling the truth makes no goroutine wait for another; written at the end.
type fact struct {
	at    time.Time
	mono  int64
	goid  uint64
	token string
	site  string
	extra string
	set   uint32
}

const factsMax = 1 << 19

var (
	facts    = make([]fact, factsMax)
	factNext uint64
)

// goid reads the number of this goroutine off the first line of its stack.
func goid() uint64 {
	var buf [48]byte
	n := runtime.Stack(buf[:], false)
	line := bytes.TrimPrefix(buf[:n], []byte("goroutine "))
	if i := bytes.IndexByte(line, ' '); i > 0 {
		id, _ := strconv.ParseUint(string(line[:i]), 10, 64)
		return id
	}
	return 0
}

// monotonic is the kernel's CLOCK_MONOTONIC: a wall clock may be corrected, even set, while the log is
// written. Not by way of entersyscall, so that the runtime does not take the call for a wait.
func monotonic() int64 {
	const clockMonotonic = 1
	var t syscall.Timespec
	syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clockMonotonic, uintptr(unsafe.Pointer(&t)), 0)
	return t.Nano()
}

// gt notes that this goroutine is now at @site, working for @token.
func gt(token, site, extra string) {
	i := atomic.AddUint64(&factNext, 1) - 1
	if i >= factsMax {
		return
	}
	f := &facts[i]
	f.at, f.mono, f.goid, f.token, f.site, f.extra = time.Now(), monotonic(), goid(), token, site, extra
	atomic.StoreUint32(&f.set, 1)
}

func writeFacts(path string) error {
	out, err := os.Create(path)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(out)
	n := atomic.LoadUint64(&factNext)
	if n > factsMax {
		n = factsMax
	}
	for i := range facts[:n] {
		f := &facts[i]
		if atomic.LoadUint32(&f.set) == 0 {
			continue
		}
		fmt.Fprintf(w, "CRITICAST_GT {\"ts\":%q,\"mono_ns\":\"%d\",\"goid\":%d,\"token\":%q,\"site\":%q,\"extra\":%q}\n",
			f.at.Format(time.RFC3339Nano), f.mono, f.goid, f.token, f.site, f.extra)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return out.Close()
}
