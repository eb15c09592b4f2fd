package etcd

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"berth/store"
)

// When a handle that was cut off is back, its follower gets what it missed, whether etcd still knows each change or
// not. It gets only the differences.
func TestCutOff(t *testing.T) {
	t.Parallel()
	for _, compacted := range []bool{false, true} {
		t.Run(fmt.Sprintf("compacted %t", compacted), func(t *testing.T) {
			t.Parallel()
			endpoint := embedded()
			if compacted { // other tests need the history
				endpoint = otherEmbedded(t, nil)
			}
			r, s, beside := through(t, time.Second, endpoint)
			update(t, beside, func(tx store.Tx) error {
				return errors.Join(putting("same", "1")(tx), putting("changed", "1")(tx), putting("deleted", "1")(tx))
			})
			f := follow(t, s)
			var ended error
			done := make(chan struct{})
			watch := s.Watch(context.Background(), nil)
			go func() {
				defer close(done)
				for _, err := range watch {
					if err != nil {
						ended = err
						return
					}
				}
			}()
			if compacted {
				f.tell = func() { // a new watcher reads the follower's index
					select {
					case <-done:
						t.Error("the watch ended before the follower was told what changed")
					case <-time.After(100 * time.Millisecond):
					}
				}
			}
			beside.Announce("beside", nil)
			eventually(t, "who is present", func() bool { return len(s.Present()) == 1 })
			r.cut()
			for range 3 {
				update(t, beside, func(tx store.Tx) error {
					return errors.Join(add(tx, "changed", 1), tx.Delete([]byte("deleted")), putting("new", "1")(tx),
						add(tx, "same", 0))
				})
			}
			beside.Announce("more", nil)
			eventually(t, "who is present beside it", func() bool { return len(beside.Present()) == 2 })
			if compacted {
				compact(t, endpoint)
			}
			if got := value(t, s, "changed"); got != "1" {
				t.Errorf("cut off, it reads %s", got)
			}
			r.heal()
			eventually(t, "it is told", func() bool {
				return f.get("changed") == "4" && f.get("deleted") == "-" && f.get("new") == "1" && f.get("same") == "1"
			})
			eventually(t, "who is present", func() bool { return len(s.Present()) == 2 })
			addsTo(t, s, "changed", 5)
			if got := value(t, beside, "changed"); got != "5" {
				t.Errorf("changed is %s", got)
			}
			if compacted {
				<-done
				if !errors.Is(ended, store.ErrLagged) {
					t.Errorf("a watch whose changes were compacted ends with %v", ended)
				}
				if f.told != 1 {
					t.Errorf("the difference was told in %d parts", f.told)
				}
				return
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			<-done
			if !errors.Is(ended, store.ErrClosed) {
				t.Errorf("a watch of which nothing was lost ends with %v", ended)
			}
		})
	}
}

// compact makes a server forget all history.
func compact(t *testing.T, endpoint string) {
	t.Helper()
	c := rawClient(t, endpoint)
	g, err := c.Get(context.Background(), "x")
	if err == nil {
		_, err = c.Compact(context.Background(), g.Header.Revision, clientv3.WithCompactPhysical())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A handle's own commit was answered while its watch was lost, and then compacted. The follower
// does not get it as if it were another's commit.
func TestOwnCommitMissed(t *testing.T) {
	t.Parallel()
	cfg := patient()
	s, other := open(t, cfg), open(t, cfg)
	f := follow(t, s)
	// With the turn taken, the watch is not heard. The other handle writes, so that the commit does not directly
	// follow what the mirror has, and the mirror has to wait for the watch.
	update(t, s, putting("a", "0"))
	s.feed.hold(t, func() {
		update(t, other, putting("b", "1"))
	})
	update(t, s, putting("a", "1"))
	s.feed.again()
	update(t, other, putting("c", "1"))
	eventually(t, "it is told of the other", func() bool { return f.get("b") == "1" && f.get("c") == "1" })
	if got := f.get("a"); got != "-" {
		t.Errorf("it is told that a is %s, which it wrote itself", got)
	}
}

// hold runs fn while the watch is not listened to.
func (f *feed) hold(t *testing.T, fn func()) {
	t.Helper()
	if err := f.s.turn.take(context.Background()); err != nil {
		t.Fatal(err)
	}
	defer f.s.turn.give()
	fn()
}

// Berth tells a damaged record from one that it wrote, and notices an edit by hand.
func TestEditedByHand(t *testing.T) {
	t.Parallel()
	cfg := patient()
	s := open(t, cfg)
	update(t, s, func(tx store.Tx) error { return errors.Join(putting("a", "1")(tx), putting("b", "1")(tx)) })
	c := rawClient(t, embedded())
	if _, err := c.Put(context.Background(), s.layout.data+"a", "by hand"); err != nil {
		t.Fatal(err)
	}
	get := func(tx store.Tx) error { _, err := tx.Get([]byte("a")); return err }
	eventually(t, "the damage is seen",
		func() bool { return errors.Is(s.View(context.Background(), get), store.ErrCorrupt) })
	if err := s.Update(context.Background(), get); !errors.Is(err, store.ErrCorrupt) {
		t.Errorf("%v", err)
	}
	if err := open(t, cfg).View(context.Background(), get); !errors.Is(err, store.ErrCorrupt) {
		t.Errorf("%v", err)
	}
	scan := func(tx store.Tx) error {
		for _, err := range tx.Scan(store.Range{}) {
			if err != nil {
				return err
			}
		}
		return nil
	}
	if err := s.View(context.Background(), scan); !errors.Is(err, store.ErrCorrupt) {
		t.Errorf("%v", err)
	}
	update(t, s, putting("a", "2"))
	if got := value(t, s, "a"); got != "2" {
		t.Errorf("a is %s", got)
	}
	if _, err := c.Delete(context.Background(), s.layout.data+"b"); err != nil {
		t.Fatal(err)
	}
	update(t, s, func(tx store.Tx) error { return add(tx, "b", 1) })
	if got := value(t, s, "b"); got != "1" {
		t.Errorf("b is %s: the deletion was not seen", got)
	}
}

// The marker of a handle that was silent for too long has expired. The handle makes a new one.
func TestMarkerExpired(t *testing.T) {
	t.Parallel()
	cfg := patient()
	s := open(t, cfg)
	update(t, s, putting("n", "1"))
	c := rawClient(t, embedded())
	was := s.commit.marker()
	if _, err := c.Revoke(context.Background(), was.lease); err != nil {
		t.Fatal(err)
	}
	runs := 0
	update(t, s, func(tx store.Tx) error { runs++; return add(tx, "n", 1) })
	if got := value(t, s, "n"); got != "2" || runs != 2 {
		t.Errorf("n is %s after %d runs", got, runs)
	}
	if s.commit.marker().key == was.key {
		t.Error("it has the marker that is gone")
	}
	_ = s.Close()
	g, err := c.Get(context.Background(), s.layout.marker, clientv3.WithPrefix())
	if err != nil || len(g.Kvs) > 0 {
		t.Errorf("a closed handle leaves %v (%v)", g.Kvs, err)
	}
}

// A handle announces its name again when the lease is lost.
func TestPresenceLost(t *testing.T) {
	t.Parallel()
	cfg := patient()
	s, other := open(t, cfg), open(t, cfg)
	s.Announce("a", []byte("1"))
	there := func() bool { return string(other.Present()["a"]) == "1" }
	eventually(t, "it is present", there)
	c := rawClient(t, embedded())
	g, err := c.Get(context.Background(), s.layout.present+"a")
	if err != nil || len(g.Kvs) != 1 || g.Kvs[0].Lease == 0 {
		t.Fatalf("%v, %v", g, err)
	}
	if _, err := c.Revoke(context.Background(), clientv3.LeaseID(g.Kvs[0].Lease)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is absent", func() bool { return !there() })
	eventually(t, "it is present again", there)
}
