// SPDX-License-Identifier: Apache-2.0

// adversarial is a server made so that it is hard to say whose work a goroutine does, and that knows
// the answer: every goroutine notes for which request it works, as CRITICAST_GT lines, which
// `criticast eval` compares with what was traced. It also knows causes of slow requests.
package main

import (
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// listen says where: a port 0 is any that is free.
func listen(addr string) (net.Listener, error) {
	l, err := net.Listen("tcp", addr)
	if err == nil {
		fmt.Println("listening", l.Addr())
	}
	return l, err
}

func serve(addr, gtLog, scratch string, nodes int) {
	startWork()
	startSites()
	startCauses(nodes)
	if scratch != "" {
		if err := openDirect(scratch); err != nil {
			log.Fatalf("%s: %v: --scratch wants a file on a disk, not in memory", scratch, err)
		}
	}
	http.HandleFunc("/work", handleWork)
	http.HandleFunc("/hard", handleHard)
	http.HandleFunc("/cause/", handleCause)
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
	go func() {
		<-stop
		if gtLog != "" {
			if err := writeFacts(gtLog); err != nil {
				log.Fatal(err)
			}
		}
		os.Exit(0)
	}()
	l, err := listen(addr)
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal(http.Serve(l, nil))
}

func main() {
	role := flag.String("role", "server", "server, upstream (answers a byte late) or load")
	addr := flag.String("addr", "127.0.0.1:8092", "listen there; load: the URL to get")
	gtLog := flag.String("gt-log", "", "write the truth there when ended")
	scratch := flag.String("scratch", "", "file to read past the page cache for /cause/file")
	nodes := flag.Int("nodes", 1<<18, "pointers in the heap, for /cause/gc")
	clients := flag.Int("clients", 3, "load: how many at once")
	dur := flag.Duration("dur", 5*time.Second, "load: for so long")
	late := flag.Duration("late", held, "upstream: so late")
	flag.StringVar(&upstream, "upstream", "127.0.0.1:8093", "address of the upstream")
	flag.Parse()
	switch *role {
	case "server":
		serve(*addr, *gtLog, *scratch, *nodes)
	case "upstream":
		log.Fatal(serveUpstream(*addr, *late))
	case "load":
		if err := load(*addr, *clients, *dur); err != nil {
			log.Fatal(err)
		}
	default:
		log.Fatalf("-role %s: server, upstream or load", *role)
	}
}
