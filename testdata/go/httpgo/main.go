// SPDX-License-Identifier: Apache-2.0

// httpgo is the simplest Go server to look at: GET / answers at once, GET /sleep?ms=N after N ms,
// GET /child?ms=N when a goroutine that slept so long is done, GET /call?net=unix&to=ADDR when somebody
// there has answered a byte, GET /mix when it has done a little of what most handlers do.
package main

import (
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"strconv"
	"time"
)

func wait(r *http.Request) time.Duration {
	ms, err := strconv.Atoi(r.URL.Query().Get("ms"))
	if err != nil || ms < 0 || ms > 10000 {
		ms = 1
	}
	return time.Duration(ms) * time.Millisecond
}

func hello(w http.ResponseWriter, r *http.Request) { fmt.Fprintln(w, "hello") }

func sleep(w http.ResponseWriter, r *http.Request) {
	time.Sleep(wait(r))
	fmt.Fprintln(w, "slept")
}

func child(w http.ResponseWriter, r *http.Request) {
	done := make(chan string)
	go func() {
		time.Sleep(wait(r))
		done <- "the child slept"
	}()
	fmt.Fprintln(w, <-done)
}

func call(w http.ResponseWriter, r *http.Request) {
	c, err := net.Dial(r.URL.Query().Get("net"), r.URL.Query().Get("to"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer c.Close()
	var b [1]byte
	c.Write([]byte("?"))
	c.Read(b[:])
	fmt.Fprintf(w, "%q\n", b[:])
}

func main() {
	addr := flag.String("addr", "127.0.0.1:8091", "listen there")
	flag.Parse()
	http.HandleFunc("/", hello)
	http.HandleFunc("/sleep", sleep)
	http.HandleFunc("/child", child)
	http.HandleFunc("/call", call)
	http.HandleFunc("/mix", mix)
	go worker()
	log.Fatal(http.ListenAndServe(*addr, nil))
}
