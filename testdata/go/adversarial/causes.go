// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"sync"
	"syscall"
	"time"
	"unsafe"
)

// GET /cause/NAME?id=TOKEN: one known cause makes the request slow.

const held = 5 * time.Millisecond

// mutex: another goroutine has it and sleeps.
func causeMutex(token string) {
	var m sync.Mutex
	has := make(chan struct{})
	go holdMutex(&m, has)
	<-has
	m.Lock()
	gt(token, "mutex-lock", "held")
	m.Unlock()
}

func holdMutex(m *sync.Mutex, has chan struct{}) {
	m.Lock()
	close(has)
	time.Sleep(held)
	m.Unlock()
}

// pool: one connection for all.
var onlyConn = make(chan *conn, 1)

func causePool(token string) { useConn(token, onlyConn, held) }

// upstream: a server in another process answers late.
var upstream string

func causeUpstream(token string) error {
	c, err := net.Dial("tcp", upstream)
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := c.Write([]byte("x")); err != nil {
		return err
	}
	var buf [1]byte
	_, err = io.ReadFull(c, buf[:])
	gt(token, "netpoll-recv", "")
	return err
}

func serveUpstream(addr string, late time.Duration) error {
	l, err := listen(addr)
	if err != nil {
		return err
	}
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		go func() {
			var buf [1]byte
			for {
				if _, err := c.Read(buf[:]); err != nil {
					c.Close()
					return
				}
				time.Sleep(late)
				c.Write(buf[:])
			}
		}()
	}
}

// file: reads past the page cache, so that the thread sleeps for the disk.
const fileBytes = 64 << 20

var directFile *os.File

func openDirect(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC|syscall.O_DIRECT, 0600)
	if err != nil {
		return err
	}
	os.Remove(path)
	buf := aligned(1 << 20)
	for i := range buf {
		buf[i] = byte(i * 7)
	}
	for n := 0; n < fileBytes; n += len(buf) {
		if _, err := f.Write(buf); err != nil {
			return err
		}
	}
	directFile = f
	return f.Sync()
}

func aligned(n int) []byte {
	b := make([]byte, n+4096)
	skip := 4096 - int(uintptr(unsafe.Pointer(&b[0]))%4096)
	return b[skip : skip+n]
}

var directBuf = sync.Pool{New: func() interface{} { b := aligned(4 << 20); return &b }}

func causeFile(token string) error {
	b := directBuf.Get().(*[]byte)
	defer directBuf.Put(b)
	for i := 0; i < 4; i++ {
		if _, err := directFile.ReadAt(*b, int64(i)*int64(len(*b))); err != nil {
			return err
		}
	}
	gt(token, "file-read", "direct")
	return nil
}

// gc: the request waits until the collector has gone through a heap full of pointers.
type node struct {
	next *node
	pad  [6]uint64
}

var keep *node

func fillHeap(nodes int) {
	for i := 0; i < nodes; i++ {
		keep = &node{next: keep}
	}
}

func causeGC(token string) {
	runtime.GC()
	gt(token, "gc-pressure", "")
}

func handleCause(w http.ResponseWriter, r *http.Request) {
	token := tokenOf(r)
	var err error
	gt(token, "handler-entry", "")
	switch r.URL.Path {
	case "/cause/mutex":
		causeMutex(token)
	case "/cause/pool":
		causePool(token)
	case "/cause/upstream":
		err = causeUpstream(token)
	case "/cause/file":
		err = causeFile(token)
	case "/cause/gc":
		causeGC(token)
	default:
		http.NotFound(w, r)
		return
	}
	gt(token, "handler-exit", "")
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	answer(w, token, 0)
}

func startCauses(nodes int) {
	onlyConn <- &conn{0}
	fillHeap(nodes)
}
