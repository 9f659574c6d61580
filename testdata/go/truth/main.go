// SPDX-License-Identifier: Apache-2.0

// truth is a server each of whose requests waits in one way, and that knows for what, how long, who
// ended it and who had what was waited for: by its own clock, in its own log. HTTP/1, and HTTP/2 with
// TLS. Standard library only, Go 1.18 and newer.
//
//	wait|hold|request WHAT THING GOID BEGIN END BY
package main

import (
	"flag"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"
	"syscall"
	"time"
)

var causes = map[string]func(){
	"cond-broadcast": condBroadcast,
	"cond-signal":    condSignal,
	"mutex":          mutex,
	"rw-writer":      rwWriter,
	"rw-reader":      func() { rwReaders("rw-reader", 1) },
	"rw-readers":     func() { rwReaders("rw-readers", 3) },
	"once":           once,
	"wait-group":     waitGroup,
	"single-flight":  singleFlight,
	"group":          group,
	"semaphore-1":    semaphoreOne,
	"semaphore-2":    semaphoreTwo,
	"conn-channel":   connChannel,
	"sql-pool":       sqlPool,
	"worker-pool":    workerPool,
	"collector":      collectedResults,
	"closed":         closed,
	"cancelled":      cancelled,
	"selected":       selected,
	"io-pipe":        ioPipe,
	"system-pipe":    systemPipe,
	"sleep":          sleeps,
	"time-after":     timeAfter,
	"timer-channel":  timerChannel,
	"after-func":     afterFunc,
}

func handler(w http.ResponseWriter, r *http.Request) {
	begin, what := monotonic(), r.URL.Path[1:]
	f := causes[what]
	if f == nil {
		http.NotFound(w, r)
		return
	}
	f()
	fmt.Fprintln(w, what)
	note("request", what, 0, begin, 0)
}

func serve(logFile string) {
	startWorkers()
	for _, second := range []bool{false, true} {
		s := httptest.NewUnstartedServer(http.HandlerFunc(handler))
		s.EnableHTTP2 = second
		if second {
			s.StartTLS()
		} else {
			s.Start()
		}
		fmt.Println("listening", s.URL)
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
	<-stop
	if err := writeFacts(logFile); err != nil {
		log.Fatal(err)
	}
}

func main() {
	load := flag.String("load", "", "get from there, URL/CAUSE, in place of serving")
	clients := flag.Int("clients", 4, "so many at once")
	dur := flag.Duration("dur", 5*time.Second, "for so long")
	logFile := flag.String("log", "/dev/null", "write the truth there when ended")
	flag.Parse()
	if *load == "" {
		serve(*logFile)
	} else if err := get(*load, flag.Args(), *clients, *dur); err != nil {
		log.Fatal(err)
	}
}
