// SPDX-License-Identifier: Apache-2.0
// go_waits: goroutines that wait in known ways, and the log of what they did: who was made by whom,
// who waited for what and for how long by its own clock, which item went from whom to whom. Starts
// at a line on stdin. Standard library only, Go 1.18 and newer.
package main

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
	"unsafe"
)

var (
	logMu sync.Mutex
	lines []string
)

// say keeps a line; all are written at the end.
func say(format string, args ...interface{}) {
	logMu.Lock()
	lines = append(lines, fmt.Sprintf(format, args...))
	logMu.Unlock()
}

// goid reads the number of the running goroutine out of its own stack trace.
func goid() int64 {
	var buf [64]byte
	n := runtime.Stack(buf[:], false)
	f := strings.Fields(string(buf[:n]))
	id, _ := strconv.ParseInt(f[1], 10, 64)
	return id
}

// own keeps lines of one goroutine until it ends, so that logging is no wait of its own.
type own []string

func (o *own) say(format string, args ...interface{}) { *o = append(*o, fmt.Sprintf(format, args...)) }

func (o *own) end() {
	logMu.Lock()
	lines = append(lines, *o...)
	logMu.Unlock()
}

// monotonic is the kernel's clock of that name, in ns.
func monotonic() int64 {
	var t syscall.Timespec
	syscall.Syscall(syscall.SYS_CLOCK_GETTIME, 1, uintptr(unsafe.Pointer(&t)), 0)
	return t.Nano()
}

func timed(f func()) int64 {
	t := time.Now()
	f()
	return time.Since(t).Nanoseconds()
}

// sleeps: n sleeps of different lengths.
func sleeps(n int) {
	me := goid()
	var o own
	defer o.end()
	for i := 0; i < n; i++ {
		d := time.Duration(i%4+2) * time.Millisecond
		o.say("wait sleep %d %d", me, timed(func() { time.Sleep(d) }))
	}
}

// receives: waits for each item, which comes after a while, on an unbuffered channel.
func receives(n int, wg *sync.WaitGroup) {
	c := make(chan *int64)
	wg.Add(2)
	go func() {
		defer wg.Done()
		me := goid()
		var o own
		defer o.end()
		for i := 0; i < n; i++ {
			var from *int64
			d := timed(func() { from = <-c })
			o.say("wait chan %d %d %d", me, d, *from)
			o.say("item direct %d %d", *from, me)
		}
	}()
	go func() {
		defer wg.Done()
		me := goid()
		var o own
		defer o.end()
		for i := 0; i < n; i++ {
			time.Sleep(3 * time.Millisecond)
			v := me
			c <- &v
		}
	}()
}

// pool: many give work to a few through a buffered channel; each worker holds it for a moment.
func pool(givers, workers, n int, wg *sync.WaitGroup) {
	type work struct {
		from int64
		no   int64
	}
	c := make(chan work, 4)
	var done sync.WaitGroup
	done.Add(givers)
	wg.Add(workers)
	for w := 0; w < workers; w++ {
		go func() {
			defer wg.Done()
			me := goid()
			var o own
			defer o.end()
			for x := range c {
				o.say("item pool %d %d", x.from, me)
				if x.no%3 == 0 {
					time.Sleep(200 * time.Microsecond)
				}
			}
		}()
	}
	for g := 0; g < givers; g++ {
		go func(g int) {
			defer done.Done()
			me := goid()
			var o own
			defer o.end()
			for i := 0; i < n; i++ {
				c <- work{me, int64(g*n + i)}
				if i%5 == 0 {
					time.Sleep(300 * time.Microsecond)
				}
			}
		}(g)
	}
	go func() { done.Wait(); close(c) }()
}

// mutexes: two locks, each held long by one and wanted by another.
func mutexes(n int, wg *sync.WaitGroup) {
	for k := 0; k < 2; k++ {
		mu := new(sync.Mutex)
		held := make(chan struct{})
		wg.Add(2)
		go func() {
			defer wg.Done()
			me := goid()
			var o own
			defer o.end()
			for i := 0; i < n; i++ {
				mu.Lock()
				held <- struct{}{}
				time.Sleep(5 * time.Millisecond)
				mu.Unlock()
				held <- struct{}{}
			}
			o.say("holder %d", me)
		}()
		go func(k int) {
			defer wg.Done()
			me := goid()
			var o own
			defer o.end()
			for i := 0; i < n; i++ {
				<-held
				o.say("wait mutex %d %d %d", me, timed(mu.Lock), k)
				mu.Unlock()
				<-held
			}
		}(k)
	}
}

// reads: from a pipe, which the runtime waits for by its poller.
func reads(n int, wg *sync.WaitGroup) {
	r, w, err := os.Pipe()
	if err != nil {
		panic(err)
	}
	wg.Add(2)
	go func() {
		defer wg.Done()
		me := goid()
		var o own
		defer o.end()
		var b [1]byte
		for i := 0; i < n; i++ {
			o.say("wait io %d %d", me, timed(func() { r.Read(b[:]) }))
		}
	}()
	go func() {
		defer wg.Done()
		for i := 0; i < n; i++ {
			time.Sleep(4 * time.Millisecond)
			w.Write([]byte{1})
		}
	}()
}

// others: a condition variable and a select, n waits each.
func others(n int, wg *sync.WaitGroup) {
	var mu sync.Mutex
	cond := sync.NewCond(&mu)
	turn := 0
	a, b := make(chan int), make(chan int)
	wg.Add(3)
	go func() {
		defer wg.Done()
		me := goid()
		var o own
		defer o.end()
		for i := 0; i < n; i++ {
			mu.Lock()
			d := timed(func() {
				for turn <= i {
					cond.Wait()
				}
			})
			mu.Unlock()
			o.say("wait cond %d %d", me, d)
		}
	}()
	go func() {
		defer wg.Done()
		me := goid()
		var o own
		defer o.end()
		for i := 0; i < n; i++ {
			d := timed(func() {
				select {
				case <-a:
				case <-b:
				}
			})
			o.say("wait select %d %d", me, d)
		}
	}()
	go func() {
		defer wg.Done()
		for i := 0; i < n; i++ {
			time.Sleep(4 * time.Millisecond)
			mu.Lock()
			turn++
			mu.Unlock()
			cond.Signal()
			if i%2 == 0 {
				a <- i
			} else {
				b <- i
			}
		}
	}()
}

// locked: one that stays on a thread of its own, and waits in turns with one that does not.
func locked(n int, wg *sync.WaitGroup) {
	ping, pong := make(chan int), make(chan int)
	wg.Add(2)
	go func() {
		defer wg.Done()
		runtime.LockOSThread()
		me := goid()
		say("locked %d %d", me, syscall.Gettid())
		var o own
		defer o.end()
		for i := 0; i < n; i++ {
			o.say("wait locked %d %d", me, timed(func() { ping <- i }))
			o.say("wait locked %d %d", me, timed(func() { <-pong }))
		}
	}()
	go func() {
		defer wg.Done()
		for i := 0; i < n; i++ {
			<-ping
			time.Sleep(2 * time.Millisecond)
			pong <- i
		}
	}()
}

// more is what a variant of this program does besides: see go_waits_cgo.go.
var more []func(n int, wg *sync.WaitGroup)

// tree makes children that make children, and says who made whom.
func tree(parent int64, depth, width int, wg *sync.WaitGroup) {
	wg.Add(1)
	go func() {
		defer wg.Done()
		me := goid()
		say("born %d %d", me, parent)
		for i := 0; depth > 1 && i < width; i++ {
			tree(me, depth-1, width, wg)
		}
	}()
}

func main() {
	var wg sync.WaitGroup
	before := monotonic()
	runtime.GC()
	early := make(chan int) // waits before anybody looks
	go func() { say("early %d %d", goid(), before); <-early }()
	time.Sleep(20 * time.Millisecond)
	runtime.GC() // which notes who waits, since the one before
	after := monotonic()
	fmt.Println(os.Getpid())
	bufio.NewReader(os.Stdin).ReadString('\n')
	me := goid()
	say("seen %d", after)
	for i := 0; i < 3; i++ {
		wg.Add(1)
		go func() { defer wg.Done(); sleeps(40) }()
	}
	receives(60, &wg)
	pool(6, 3, 200, &wg)
	mutexes(30, &wg)
	reads(40, &wg)
	others(40, &wg)
	locked(30, &wg)
	for _, f := range more {
		f(30, &wg)
	}
	for i := 0; i < 4; i++ {
		tree(me, 4, 4, &wg)
	}
	never := make(chan int) // only a look at what waits now shows this one
	go func() { say("stuck %d", goid()); <-never }()
	wg.Wait()
	time.Sleep(1500 * time.Millisecond) // a refresh passes while one is stuck
	early <- 1
	time.Sleep(10 * time.Millisecond)
	f := bufio.NewWriter(os.Stdout)
	logMu.Lock()
	for _, l := range lines {
		fmt.Fprintln(f, l)
	}
	f.Flush()
}
