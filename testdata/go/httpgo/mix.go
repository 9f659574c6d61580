// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"sort"
	"strings"
	"sync"
)

// GET /mix: JSON in and out, a map beneath a lock, and a part that another goroutine does.

type order struct {
	ID    int      `json:"id"`
	Name  string   `json:"name"`
	Tags  []string `json:"tags"`
	Price float64  `json:"price"`
}

type job struct {
	text string
	sum  chan string
}

var (
	jobs   = make(chan job)
	seenMu sync.Mutex
	seen   = map[int]int{}
	orders = func() string {
		var all []order
		for i := 0; i < 48; i++ {
			all = append(all, order{i, fmt.Sprint("order number ", i), []string{"new", "paid", "sent"}, float64(i) * 1.25})
		}
		b, _ := json.Marshal(all)
		return string(b)
	}()
)

func worker() {
	for j := range jobs {
		sum := sha256.Sum256([]byte(j.text))
		j.sum <- hex.EncodeToString(sum[:])
	}
}

func mix(w http.ResponseWriter, r *http.Request) {
	var all []order
	if err := json.NewDecoder(strings.NewReader(orders)).Decode(&all); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	sort.Slice(all, func(i, j int) bool { return all[i].Price > all[j].Price })
	seenMu.Lock()
	for _, o := range all {
		seen[o.ID]++
	}
	seenMu.Unlock()
	j := job{orders, make(chan string)}
	jobs <- j
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(map[string]interface{}{"sum": <-j.sum, "orders": all[:4]})
}
