// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// Three clients at once, A, B and C, each request with a token of its own: "A1", "A2", ...
func load(url string, clients int, run time.Duration) error {
	var wg sync.WaitGroup
	var done, failed uint64
	end := time.Now().Add(run)
	for c := 0; c < clients; c++ {
		wg.Add(1)
		go func(c int) {
			defer wg.Done()
			client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1}}
			for n := 1; time.Now().Before(end); n++ {
				r, err := client.Get(fmt.Sprintf("%s?id=%c%d-%d", url, 'A'+c%3, c/3, n))
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
		}(c)
	}
	wg.Wait()
	fmt.Printf("%d requests, %d failed\n", done, failed)
	if done == 0 || failed > done/100 {
		return fmt.Errorf("%d of %d requests failed", failed, done)
	}
	return nil
}
