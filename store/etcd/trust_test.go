package etcd

import (
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"berth/store"
)

// A commit was answered, and the watch had not reported it yet, when a restored snapshot lost it. When the host
// trusts the store again, it learns that the commit is gone, and nothing of it is remembered. What others write
// later to the same records, and under its revision, arrives like all other writes.
func TestTrustWithoutOwn(t *testing.T) {
	t.Parallel()
	p := startDebian(t)
	var committed atomic.Pointer[func()]
	a := hostOn(t, p, "a", func(c *Config) {
		c.Timeout = 40 * time.Second
		c.Committed = func(time.Duration) {
			if fn := committed.Swap(nil); fn != nil {
				(*fn)()
			}
		}
	})
	b := hostOn(t, p, "b", func(c *Config) { c.Timeout = 40 * time.Second })
	f := follow(t, a)
	update(t, a, puts("gone=1", "back=1"))
	f.set("gone", "1")
	f.set("back", "1")
	file := p.snapshot()
	for i := range 50 { // puts a restored etcd far from the lost revision
		update(t, b, putting("b", fmt.Sprint(i)))
	}
	lose := func() {
		a.feed.deaf(t)
		p.restore(file, "", nil)
	}
	var own int64
	update(t, a, func(tx store.Tx) error {
		update(t, b, putting("b", "last")) // the mirror cannot advance without the watch
		committed.Store(&lose)
		f.set("new", "1")
		f.set("back", "2")
		f.remove("gone")
		return puts("new=1", "back=2", "-gone")(tx)
	})
	a.feed.hold(t, func() {
		if a.own != nil {
			own = a.own.rev
		}
	})
	if own == 0 {
		t.Fatal("the watch has told of the commit")
	}
	distrusts(t, a)
	f.mu.Lock()
	f.tell = sync.OnceFunc(func() {
		if r := a.Reach(); !isBack(r.Err) {
			t.Errorf("it is trusted before its follower is told what etcd lost: %+v", r)
		}
	})
	f.mu.Unlock()
	a.Trust(store.Trace{})
	eventually(t, "it is trusted", func() bool { return a.Reach().Err == nil })
	told := func(want map[string]string) {
		t.Helper()
		defer func() {
			if t.Failed() {
				t.Logf("it was told of %v; etcd is reached so: %+v", f.data, a.Reach())
			}
		}()
		eventually(t, fmt.Sprintf("it is told of %v", want), func() bool {
			f.mu.Lock()
			defer f.mu.Unlock()
			return maps.Equal(f.data, want)
		})
	}
	told(map[string]string{"gone": "1", "back": "1"})
	a.Forgotten()
	if w, err := a.Written(t.Context()); err != nil || len(w.Records) != 2 || string(w.Records["back"]) != "1" {
		t.Errorf("what is remembered: %q, %v", w.Records, err)
	}
	other := open(t, Config{Endpoints: b.cfg.Endpoints, Timeout: 40 * time.Second})
	last := ""
	for n := 0; other.answered.Load() <= own; n++ {
		last = fmt.Sprint(n)
		update(t, other, puts("new="+last, "back="+last))
	}
	told(map[string]string{"gone": "1", "back": last, "new": last})
}

// deaf ends the watch, and returns when nothing more comes from it. The caller has the turn.
func (f *feed) deaf(t *testing.T) {
	t.Helper()
	f.mu.Lock()
	end := f.cancel
	f.cancel = nil
	f.mu.Unlock()
	end()
	eventually(t, "the watch is begun anew", func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return f.cancel != nil
	})
}

// remove notes a record that the handle has deleted itself.
func (f *follower) remove(key string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.data, key)
}
