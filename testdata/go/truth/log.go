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
	"unsafe"
)

// What this program knows of itself. Kept in an array that is claimed slot by slot with one atomic
// add, so that telling the truth makes no goroutine wait for another; written at the end.
type fact struct {
	kind, what string
	goid       int64
	begin, end int64
	by         int64
	of         uint64
	set        uint32
}

const factsMax = 1 << 20

var (
	facts    = make([]fact, factsMax)
	factNext uint64
)

const (
	byRuntime = 0  // a timer or the network poller
	byUnknown = -1 // not known here either
)

// goid reads the number of this goroutine off the first line of its stack.
func goid() int64 {
	var buf [48]byte
	n := runtime.Stack(buf[:], false)
	line := bytes.TrimPrefix(buf[:n], []byte("goroutine "))
	if i := bytes.IndexByte(line, ' '); i > 0 {
		id, _ := strconv.ParseInt(string(line[:i]), 10, 64)
		return id
	}
	return 0
}

// monotonic is the kernel's clock of that name, in ns; not by way of entersyscall, so that the runtime
// does not take the call for a wait.
func monotonic() int64 {
	const clockMonotonic = 1
	var t syscall.Timespec
	syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clockMonotonic, uintptr(unsafe.Pointer(&t)), 0)
	return t.Nano()
}

var things uint64

// aThing is a number for something that there are many of.
func aThing() uint64 { return atomic.AddUint64(&things, 1) }

// note: this goroutine did that since @begin, with thing @of, 0: the only one; @by ended it.
func note(kind, what string, of uint64, begin, by int64) {
	end := monotonic()
	i := atomic.AddUint64(&factNext, 1) - 1
	if i >= factsMax {
		return
	}
	f := &facts[i]
	f.kind, f.what, f.goid, f.begin, f.end, f.by, f.of = kind, what, goid(), begin, end, by, of
	atomic.StoreUint32(&f.set, 1)
}

// waited: f waits for @of, and returns who ended that.
func waited(what string, of uint64, f func() int64) {
	begin := monotonic()
	by := f()
	note("wait", what, of, begin, by)
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
		if atomic.LoadUint32(&f.set) != 0 {
			fmt.Fprintln(w, f.kind, f.what, f.of, f.goid, f.begin, f.end, f.by)
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return out.Close()
}
