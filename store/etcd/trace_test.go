package etcd

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"berth/store"
)

// hostOn opens a handle of a host that remembers everything.
func hostOn(t testing.TB, p *process, host string, change func(*Config)) *Store {
	t.Helper()
	cfg := Config{Endpoints: []string{p.endpoint}, Host: host, Timeout: 5 * time.Second,
		Remember: func([]byte) bool { return true }}
	if change != nil {
		change(&cfg)
	}
	return open(t, cfg)
}

// distrusts waits until the handle distrusts etcd, and returns the reason.
func distrusts(t testing.TB, s *Store) *store.Back {
	t.Helper()
	eventually(t, "etcd is distrusted", func() bool { return errors.Is(s.Reach().Err, store.ErrBack) })
	var back *store.Back
	if r := s.Reach(); !errors.As(r.Err, &back) || r.Since.IsZero() || time.Since(r.Since) > time.Minute {
		t.Fatalf("%+v", r)
	}
	err := s.Update(context.Background(), putting("new", "x"))
	if !errors.Is(err, store.ErrBack) || !errors.Is(err, store.ErrAway) {
		t.Fatalf("an update is answered with %v", err)
	}
	return back
}

// traceOf returns the trace that a host remembers of a handle.
func traceOf(t testing.TB, s *Store) *store.Trace {
	t.Helper()
	s.Forgotten()
	w, err := s.Written(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return &w.Trace
}

// A snapshot is restored under two hosts. One of them has written since the snapshot. Neither writes any more,
// each reports what it knows, and neither can be reopened.
func TestRestoredSnapshot(t *testing.T) {
	t.Parallel()
	taken := 0
	for name, as := range map[string]struct {
		token  string
		before func(testing.TB, string)
		asks   bool // requests come all the time, not only once a second
	}{
		"same cluster id":              {},
		"same, under load":             {asks: true},
		"new cluster id":               {token: "another"},
		"others have raised revisions": {before: raise},
		"that, under load":             {before: raise, asks: true},
	} {
		if taken++; testing.Short() && taken > 3 { // the map's order decides which ones
			break
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := startDebian(t)
			a, b := hostOn(t, p, "a", nil), hostOn(t, p, "b", nil)
			update(t, a, putting("a", "1"))
			update(t, b, putting("b", "1"))
			file := p.snapshot()
			for i := range 7 {
				update(t, b, putting("b", fmt.Sprint(i)))
			}
			eventually(t, "a has seen it", func() bool { return value(t, a, "b") == "6" })
			remembered := map[string]*store.Trace{"a": traceOf(t, a), "b": traceOf(t, b)}
			if got := remembered["a"].Counts; got["a"] == 0 || got["b"] != remembered["b"].Counts["b"] {
				t.Fatalf("%+v", got)
			}
			var stop sync.WaitGroup
			ctx, cancel := context.WithCancel(t.Context())
			if as.asks {
				for _, s := range []*Store{a, b} {
					stop.Go(func() {
						for ctx.Err() == nil {
							_ = s.Update(ctx, putting("asked", "x"))
						}
					})
				}
			}
			p.restore(file, as.token, func(endpoint string) {
				if as.before != nil {
					as.before(t, endpoint)
				}
			})
			before := inEtcd(t, p.endpoint, a.layout.data)
			lostOfB, lostOfA := distrusts(t, b), distrusts(t, a)
			cancel()
			stop.Wait()
			if !as.asks && as.token == "" &&
				(lostOfB.Own != 7 || lostOfB.All != 7 || lostOfA.Own != 0 || lostOfA.All != 7) {
				t.Errorf("a: %v; b: %v", lostOfA, lostOfB)
			}
			if after := inEtcd(t, p.endpoint, a.layout.data); !maps.Equal(before, after) {
				t.Errorf("%q became %q", before, after)
			}
			if got := value(t, a, "b"); got != "6" {
				t.Errorf("what was known of b is %s", got)
			}
			for host, trace := range remembered {
				cfg := Config{Endpoints: []string{p.endpoint}, Host: host, Cluster: a.Cluster(), Trace: trace,
					Timeout: 10 * time.Second}
				if s, err := Open(t.Context(), cfg); !errors.Is(err, store.ErrBack) {
					_ = s.Close()
					t.Errorf("host %s opens it anew: %v", host, err)
				}
			}
		})
	}
}

// A snapshot is restored during a transaction. The host's own count happens to be right, and it has read nothing
// that differs: all compared values match, except how far the store is known to be. The transaction is not
// committed, and the host knows why.
func TestRestoredUnderTransaction(t *testing.T) {
	t.Parallel()
	for name, token := range map[string]string{"same cluster id": "", "new cluster id": "another"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := startDebian(t)
			a := hostOn(t, p, "a", func(c *Config) { c.Timeout = 40 * time.Second })
			b := hostOn(t, p, "b", nil)
			update(t, a, putting("a", "1"))
			file := p.snapshot()
			for i := range 3 {
				update(t, b, putting("b", fmt.Sprint(i)))
			}
			eventually(t, "a has seen it", func() bool { return value(t, a, "b") == "2" })
			var once sync.Once
			err := a.Update(t.Context(), func(tx store.Tx) error {
				once.Do(func() { p.restore(file, token, nil) })
				return tx.Put([]byte("a"), []byte("2"))
			})
			if !errors.Is(err, store.ErrBack) {
				t.Errorf("it is answered with %v", err)
			}
			if got := inEtcd(t, p.endpoint, a.layout.data); len(got) != 1 ||
				strings.HasSuffix(got[a.layout.data+"a"], "2") {
				t.Errorf("in etcd is %q", got)
			}
		})
	}
}

// The answer to a commit was lost, and etcd went back before the outcome was determined. The commit may have
// been made: its outcome is unknown, so that what it may have taken is released in the end.
func TestRestoredUnderAnswer(t *testing.T) {
	t.Parallel()
	p := startDebian(t)
	r := newRelay(t, p.endpoint)
	a := hostOn(t, p, "a", func(c *Config) { c.Endpoints, c.Timeout = []string{r.endpoint()}, 40*time.Second })
	update(t, a, putting("a", "1"))
	file := p.snapshot()
	update(t, a, putting("b", "1"))
	r.set(pass, lose)
	answered := make(chan error, 1)
	go func() { answered <- a.Update(t.Context(), putting("a", "2")) }()
	eventually(t, "it is committed", func() bool {
		return strings.HasSuffix(inEtcd(t, p.endpoint, a.layout.data)[a.layout.data+"a"], "2")
	})
	p.restore(file, "", nil)
	r.set(pass, pass)
	r.kick()
	if err := <-answered; !errors.Is(err, store.ErrUnknown) || !errors.Is(err, store.ErrBack) {
		t.Errorf("it is answered with %v", err)
	}
	if err := a.Update(t.Context(), putting("a", "3")); errors.Is(err, store.ErrUnknown) ||
		!errors.Is(err, store.ErrBack) {
		t.Errorf("the next one is answered with %v", err)
	}
}

// If etcd lost all its data or was emptied, the handle reports that, and when.
func TestEmptied(t *testing.T) {
	t.Parallel()
	for name, empty := range map[string]func(t *testing.T, p *process){
		"its data": func(_ *testing.T, p *process) { p.loseAll() },
		"the prefix": func(t *testing.T, p *process) {
			if _, err := rawClient(t, p.endpoint).Delete(t.Context(), "berth/", clientv3.WithPrefix()); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := startDebian(t)
			s := hostOn(t, p, "a", nil)
			s.Announce("a", []byte("1"))
			update(t, s, putting("a", "1"))
			trace := traceOf(t, s)
			empty(t, p)
			back := distrusts(t, s)
			_, err := Open(t.Context(),
				Config{Endpoints: []string{p.endpoint}, Host: "a", Cluster: s.Cluster(), Trace: trace,
					Timeout: 10 * time.Second})
			for _, err := range []error{back, err} {
				if !errors.As(err, &back) || !back.Emptied || !strings.Contains(err.Error(), "emptied") ||
					!strings.Contains(err.Error(), s.Cluster()) || back.Since.IsZero() {
					t.Errorf("it says %v (%+v)", err, back)
				}
			}
			// What is remembered stays, and so does what is known.
			if w, err := s.Written(t.Context()); err != nil || len(w.Records) > 0 || value(t, s, "a") != "1" {
				t.Errorf("%+v, %v", w, err)
			}
			// A host without a trace still knows the cluster.
			if _, err := Open(t.Context(),
				Config{Endpoints: []string{p.endpoint}, Cluster: s.Cluster()}); !errors.Is(err, store.ErrBack) {
				t.Error(err)
			}
		})
	}
}

// A handle that mends opens a store that others distrust, and continues the count from what is remembered. When
// the other handle trusts the store again, it knows its records, and reports the differences.
func TestTrust(t *testing.T) {
	t.Parallel()
	p := startDebian(t)
	s := hostOn(t, p, "a", nil)
	f := follow(t, s)
	update(t, s, putting("a", "1"))
	f.set("a", "1")
	file := p.snapshot()
	for i := range 5 {
		update(t, s, putting(fmt.Sprint("k", i), "1"))
		f.set(fmt.Sprint("k", i), "1")
	}
	trace := traceOf(t, s)
	p.restore(file, "", nil)
	distrusts(t, s)
	mender := hostOn(t, p, "a", func(c *Config) { c.Mends, c.Trace, c.Cluster = true, trace, s.Cluster() })
	update(t, mender, putting("k0", "2"))
	at := traceOf(t, mender)
	if at.Counts["a"] <= trace.Counts["a"] {
		t.Errorf("it counts %d after %d", at.Counts["a"], trace.Counts["a"])
	}
	s.Trust(*at)
	eventually(t, "it is trusted", func() bool { return s.Reach().Err == nil })
	file = p.snapshot()
	update(t, s, putting("b", "1"))
	f.set("b", "1")
	if got := everything(t, s); !maps.Equal(got, map[string]string{"a": "1", "k0": "2", "b": "1"}) ||
		f.get("k0") != "2" || f.get("k1") != "-" {
		t.Errorf("%v, and the follower has %v", got, f.data)
	}
	w, err := s.Written(t.Context())
	if err != nil || !w.Whole || len(w.Records) != 3 || w.Trace.Counts["a"] <= at.Counts["a"] {
		t.Errorf("%+v, %v", w, err)
	}
	p.restore(file, "", nil) // again: this one was not declared trusted
	distrusts(t, s)
}

// Each write is reported once, whichever handle made it, and all of them again after a loss.
func TestWritten(t *testing.T) {
	t.Parallel()
	prefix := freshPrefix()
	a := open(t, Config{Prefix: prefix, Timeout: 30 * time.Second, Host: "a",
		Remember: func(key []byte) bool { return key[0] != 'e' }})
	b := open(t, Config{Prefix: prefix, Timeout: 30 * time.Second, Host: "b"})
	written := func(whole bool, want map[string]string) {
		t.Helper()
		w, err := a.Written(t.Context())
		got := map[string]string{}
		for key, value := range w.Records {
			got[key] = string(value)
			if value == nil {
				got[key] = "-"
			}
		}
		if err != nil || w.Whole != whole || !maps.Equal(got, want) {
			t.Fatalf("%v %v %v, want %v", w.Whole, got, err, want)
		}
	}
	update(t, a, putting("a", "1"))
	written(true, map[string]string{"a": "1"})
	written(false, map[string]string{})
	update(t, b, putting("b", "1"))
	update(t, b, putting("e", "1"))
	update(t, a, func(tx store.Tx) error { return tx.Delete([]byte("a")) })
	eventually(t, "b's is there", func() bool { return value(t, a, "e") == "1" })
	written(false, map[string]string{"a": "-", "b": "1"})
	a.Forgotten()
	written(true, map[string]string{"b": "1"})
	if got := traceOf(t, a); got.Counts["a"] != 2 || got.Counts["b"] != 2 || got.Place == 0 || got.Revision == 0 {
		t.Errorf("%+v", got)
	}
}

// Two handles of one host, as when a later daemon takes over, continue each other's count.
func TestCountOfTwoHandles(t *testing.T) {
	t.Parallel()
	prefix := freshPrefix()
	cfg := Config{Prefix: prefix, Timeout: 30 * time.Second, Host: "a"}
	one, two := open(t, cfg), open(t, cfg)
	for i := range 20 {
		update(t, []*Store{one, two}[i%2], putting("k", fmt.Sprint(i)))
	}
	for _, s := range []*Store{one, two} {
		if got, _ := s.trace.at(); got.Counts["a"] < 19 || s.Reach().Err != nil {
			t.Errorf("%+v, %v", got, s.Reach().Err)
		}
	}
	if got := inEtcd(t, embedded(), prefix+"c/"); got[prefix+"c/a"] != "20" {
		t.Error(got)
	}
}
