package etcd

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"berth/store"
	"berth/store/storetest"
)

// linear is a handle whose views are as new as its updates, even while etcd does not answer.
type linear struct{ reading }

func (l linear) View(ctx context.Context, fn func(store.Tx) error) error { return l.Update(ctx, fn) }

// Connections of handles break, answers get lost and requests are held back; some handles have two ways to etcd.
// There is a serial order of all operations in which each known outcome is the one that was answered.
func TestHistoryUnderFaults(t *testing.T) {
	t.Parallel()
	for name, kind := range map[string][]byte{"alone": nil, "bundled": {}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			historyUnderFaults(t, kind)
		})
	}
}

func historyUnderFaults(t *testing.T, kind []byte) {
	t.Helper()
	p := startDebian(t)
	prefix := freshPrefix()
	var relays []*relay
	var handles []store.Shared
	for i := range 3 {
		r := newRelay(t, p.endpoint)
		endpoints := []string{r.endpoint()}
		if i == 2 {
			endpoints = append(endpoints, p.endpoint)
		}
		relays = append(relays, r)
		handles = append(handles, linear{reading{open(t, Config{Prefix: prefix, Endpoints: endpoints,
			Timeout: time.Second, Bundle: kind})}})
	}
	direct := open(t, Config{Prefix: prefix, Endpoints: []string{p.endpoint}, Timeout: 30 * time.Second, Bundle: kind})
	var injected atomic.Int64
	stop := make(chan struct{})
	first := rand.IntN(12) // the first pair of a relay and a fault
	t.Logf("the first fault is the %dth", first)
	var wg sync.WaitGroup
	wg.Go(func() {
		for n := 0; ; n++ {
			// Three relays and four faults give all twelve pairs, and any four faults in a row are of each kind. The
			// third host has a way around its relay, so faults of that relay alone may have no effect.
			at := first + n
			faulty(relays[at%3], at%4, time.Duration(100+n%7*200)*time.Millisecond, stop)
			injected.Add(1)
			select {
			case <-stop:
				return
			case <-time.After(50 * time.Millisecond):
			}
		}
	})
	unknown, away := 0, 0
	told := make(chan error)
	counted := make(chan struct{})
	go func() {
		defer close(counted)
		for err := range told {
			switch {
			case errors.Is(err, store.ErrUnknown):
				unknown++
			case errors.Is(err, store.ErrAway):
				away++
			default:
				t.Error(err)
			}
		}
	}()
	enough := int64(15)
	if testing.Short() {
		enough = 4
	}
	begun := time.Now()
	found := func() (n uint64) {
		for _, s := range handles {
			n += s.(linear).Counts().Unknown
		}
		return n
	}
	for injected.Load() < enough || found() == 0 {
		if time.Since(begun) > time.Minute {
			t.Error("no fault was in force")
			break
		}
		h := storetest.NewHistory()
		storetest.Drive(h, handles, 2, 20, func(err error) bool { told <- err; return false })
		for _, s := range handles { // a doubtful outcome must not appear in the next history
			eventually(t, "all outcomes are known", func() bool { return !s.(linear).inDoubt() })
		}
		h.Check(t)
		update(t, direct, func(tx store.Tx) error {
			all := map[string]string{}
			err := scanInto(all, tx)
			for key := range all {
				err = errors.Join(err, tx.Delete([]byte(key)))
			}
			return err
		})
	}
	close(stop)
	wg.Wait()
	close(told)
	<-counted
	t.Logf("%d faults: %d outcomes had to be found out, %d stayed unknown to the caller, %d calls were refused",
		injected.Load(), found(), unknown, away)
}

// faulty makes a relay misbehave for some time.
func faulty(r *relay, kind int, long time.Duration, stop <-chan struct{}) {
	r.set([]way{pass, hold, pass, lose}[kind], []way{lose, pass, pass, pass}[kind])
	if kind == 2 {
		r.kick()
	}
	select {
	case <-stop:
	case <-time.After(long):
	}
	if kind == 1 {
		r.set(pass, pass) // what was held back arrives now
	} else {
		r.heal()
	}
}
