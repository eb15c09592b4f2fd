package webhook

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"berth/internal/ipam"

	"pgregory.net/rapid"
)

// A receiver gets every event at least once, and in order except for repetitions. Otherwise it gets a gap just
// before the first event after the missing ones. This holds through crashes (after which the place is the one that
// was written last), restarts, receivers that refuse, and events that the retention removes.
func TestAtLeastOnce(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		in := &inbox{got: make(chan sent, 10_000)}
		in.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			one, err := read(r)
			if err != nil {
				t.Error(err)
			}
			in.mu.Lock()
			refuses := in.answer != nil
			in.mu.Unlock()
			if refuses {
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
			in.got <- *one // before the answer: a crash may come between
		}))
		defer in.Close()
		h := newHarness(t, ipam.Retention{Count: 40}, in.URL)
		h.begin()
		defer func() { h.stop() }()
		path := placePath(h.dir, in.URL)
		rt.Repeat(map[string]func(*rapid.T){
			"take": func(rt *rapid.T) { h.take(rapid.IntRange(1, 15).Draw(rt, "n")) },
			"time": func(rt *rapid.T) {
				h.clock.advance(time.Duration(rapid.IntRange(1, 400).Draw(rt, "seconds")) * time.Second)
			},
			"crash": func(*rapid.T) {
				place, err := os.ReadFile(path)
				must(t, err)
				h.stop()
				must(t, os.WriteFile(path, place, 0o600))
				h.begin()
			},
			"restart": func(*rapid.T) { h.stop(); h.begin() },
			"refuse":  func(*rapid.T) { in.answers(refuses(http.StatusServiceUnavailable)) },
			"agree":   func(*rapid.T) { in.answers(nil) },
			"trim":    func(*rapid.T) { must(t, h.service.Trim(t.Context())) },
		})
		in.answers(nil)
		last := h.take(1)[0]
		h.stop()
		h.begin() // now no attempt waits
		var all []sent
		for len(all) == 0 || all[len(all)-1].event.Name != last {
			all = append(all, in.next(t))
		}
		held(rt, all, h.n)
	})
}

// held checks that each of o1 to oN came, in order for the first time, or that a gap was sent for those missing.
func held(rt *rapid.T, all []sent, n int) {
	next, gaps := 1, false
	for _, m := range all {
		if m.Type == typeGap {
			gaps = true
			continue
		}
		var at int
		if _, err := fmt.Sscanf(m.event.Name, "o%d", &at); err != nil {
			rt.Fatalf("%s came", m.body)
		}
		switch {
		case at < next: // again
		case at > next && !gaps:
			rt.Fatalf("o%d came, and o%d is missing, and nobody has said so", at, next)
		default:
			next, gaps = at+1, false
		}
	}
	if next != n+1 {
		rt.Fatalf("o%d is the last that came, of %d", next-1, n)
	}
}
