// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"sort"
	"sync"
	"sync/atomic"
	"time"
)

// get asks for one of the causes after the other, all if there are none, all clients for the same at a time.
func get(url string, what []string, clients int, dur time.Duration) error {
	var done, failed uint64
	var wg sync.WaitGroup
	if len(what) == 0 {
		for name := range causes {
			what = append(what, name)
		}
		sort.Strings(what)
	}
	begin := time.Now()
	shared := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true,
		MaxIdleConnsPerHost: clients}
	for c := 0; c < clients; c++ {
		wg.Add(1)
		go func() {
			defer wg.Done()
			client := &http.Client{Transport: shared}
			for {
				n := int(time.Since(begin) * time.Duration(len(what)) / dur)
				if n >= len(what) {
					return
				}
				r, err := client.Get(url + "/" + what[n])
				if err != nil {
					atomic.AddUint64(&failed, 1)
					time.Sleep(10 * time.Millisecond)
					continue
				}
				io.Copy(io.Discard, r.Body)
				r.Body.Close()
				if r.StatusCode != http.StatusOK {
					atomic.AddUint64(&failed, 1)
				}
				atomic.AddUint64(&done, 1)
			}
		}()
	}
	wg.Wait()
	fmt.Printf("%d requests, %d failed\n", done, failed)
	if done == 0 || failed > done/100 {
		return fmt.Errorf("%d of %d requests failed", failed, done)
	}
	return nil
}
