package cluster

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"berth/internal/ipam"
	"berth/internal/ipam/service"
	"berth/store"
	"berth/store/mem"
)

// runs runs the daemon's loop until the test ends or stop is called.
func (h *sharingHost) runs(t *testing.T) (stop func() error) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- h.Run(ctx) }()
	stop = sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
	t.Cleanup(func() { _ = stop() })
	return stop
}

// comes waits for a condition.
func comes(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it did not come to this:", what)
		}
	}
}

// The loop does it all by itself: it opens the store as soon as it answers, tells what waits, claims headroom,
// and does so again after the next outage. No goroutine is left running.
func TestSharedRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
		common, a, pool := newLan(t, 2)
		addr := a.take(ipam.AddressRequest{Pool: pool, MAC: testMAC(1)})
		a.handle.Cut(errCut)
		a.boot()
		a.give(pool, addr)
		stop := a.runs(t)
		comes(t, "the store was tried", func() bool { return errors.Is(a.State().Err, errCut) })
		used := a.take(ipam.AddressRequest{Pool: pool, MAC: testMAC(2)})
		a.handle.Heal()
		comes(t, "all is told", func() bool {
			return a.State().Err == nil && a.State().Waiting == 0 && a.State().Headroom[0].Claimed == 2
		})
		isFree(t, common, addr)
		isLease(t, common, used, ipam.Automatic, testMAC(2))
		a.free(pool)

		a.handle.Cut(errCut)
		a.give(pool, used)
		again := a.take(ipam.AddressRequest{Pool: pool, MAC: testMAC(3)})
		a.handle.Heal()
		comes(t, "it is told again", func() bool { return a.State().Waiting == 0 && a.State().Headroom[0].Claimed == 2 })
		isFree(t, common, used)
		isLease(t, common, again, ipam.Automatic, testMAC(3))
		fine(t, stop())
		if len(a.warned) > 0 {
			t.Fatal(a.warned)
		}
	})
}

// The running loop notices that a network gets headroom, that a Docker network is made or ended on it, and that
// the host is drained.
func TestSharedNotices(t *testing.T) {
	common, a, pool := newLan(t, 0)
	b := newSharingHost(t, common, "b")
	b.open()
	a.runs(t)
	claimed := func(n int) func() bool {
		return func() bool {
			all := 0
			for _, h := range a.State().Headroom {
				all += h.Claimed
			}
			return all == n
		}
	}
	two := 2
	b.edit(&ipam.ModifyNetwork{Network: "lan", Headroom: &two})
	comes(t, "the headroom that another host has given", claimed(2))
	second := a.pool()
	comes(t, "that of the second network", claimed(4))
	fine(t, a.ReleasePool(t.Context(), pool))
	comes(t, "names are unique", claimed(2))
	if len(a.free(second)) != 2 || len(inStore(t, common)) != 2 {
		t.Fatal(inStore(t, common))
	}
	b.edit(&ipam.DrainHost{Name: "a"})
	comes(t, "none", claimed(0))
}

// An error that waiting cannot mend ends the loop, and every caller gets it then. The loop may be run again.
func TestSharedRefused(t *testing.T) {
	errForeign := errors.New("this is another cluster")
	common := mem.New()
	a := newSharingHost(t, common, "a")
	open := a.Shared.open
	a.Shared.open = func(context.Context) (*service.Service, error) { return nil, errForeign }
	if err := a.Run(t.Context()); !errors.Is(err, errForeign) {
		t.Fatal(err)
	}
	if _, err := a.service(); !errors.Is(err, errForeign) {
		t.Fatal(err)
	}
	if _, err := a.RequestPool(t.Context(), ipam.PoolRequest{Space: ipam.GlobalSpace}); !errors.Is(err, errForeign) {
		t.Fatal(err)
	}
	if !errors.Is(a.State().Err, errForeign) {
		t.Fatal(a.State())
	}
	a.Shared.open = open
	stop := a.runs(t)
	comes(t, "it is opened", func() bool { return a.State().Err == nil })
	a.edit(lanWith(1, lanCIDR))
	pool := a.pool()

	// Another daemon with the same host's name and id takes over.
	b := newSharingHost(t, common, "a")
	b.id = a.id
	b.boot()
	b.open()
	comes(t, "the first one is refused", func() bool {
		_, err := a.ask(ipam.AddressRequest{Pool: pool, MAC: testMAC(1)})
		return errors.Is(err, ipam.ErrHost)
	})
	comes(t, "the loop ends", func() bool { return errors.Is(a.State().Err, ipam.ErrHost) })
	if err := stop(); err != nil && !errors.Is(err, ipam.ErrHost) {
		t.Fatal(err)
	}
}

// asked is a context that reports when a caller begins to wait for it.
type asked struct {
	context.Context
	waits chan struct{}
	once  sync.Once
}

func (c *asked) Done() <-chan struct{} {
	c.once.Do(func() { close(c.waits) })
	return c.Context.Done()
}

// A request during the first opening of the store waits for that, and for nothing after it.
func TestFirstRequestWaits(t *testing.T) {
	for _, opens := range []bool{true, false} {
		_, a, pool := newLan(t, 0)
		a.boot()
		open, gate := a.Shared.open, make(chan struct{})
		a.Shared.open = func(ctx context.Context) (*service.Service, error) {
			<-gate
			if !opens {
				return nil, store.ErrAway
			}
			return open(ctx)
		}
		a.runs(t)
		ctx := &asked{Context: t.Context(), waits: make(chan struct{})}
		answered := make(chan error, 1)
		go func() {
			_, err := a.RequestAddress(ctx, ipam.AddressRequest{Pool: pool, MAC: testMAC(1)})
			answered <- err
		}()
		<-ctx.waits
		select {
		case err := <-answered:
			t.Fatal("it did not wait:", err)
		default:
		}
		close(gate)
		switch err := <-answered; {
		case opens && err != nil:
			t.Fatal(err)
		case !opens && (!errors.Is(err, ipam.ErrAway) || !strings.Contains(err.Error(), "out of reach")):
			t.Fatal(err)
		}
	}
}

// Many endpoints ask and release at once while the store comes and goes. Each has its own address, and in the
// end the store holds nothing else.
func TestSharedInParallel(t *testing.T) {
	common, a, pool := newLan(t, 8)
	a.runs(t)
	var wg sync.WaitGroup
	over := make(chan struct{})
	wg.Go(func() {
		for i := 0; ; i++ {
			switch i % 4 {
			case 0:
				a.handle.CutNext(i%8 == 0, errCut)
			case 1:
				a.handle.Cut(errCut)
			default:
				a.handle.Heal()
			}
			select {
			case <-over:
				return
			case <-time.After(3 * time.Millisecond):
			}
		}
	})
	var mu sync.Mutex
	hands := map[string]ipam.MAC{}
	var endpoints sync.WaitGroup
	for i := range 12 {
		endpoints.Go(func() {
			mac := testMAC(i + 1)
			for range 150 {
				addr, err := a.ask(ipam.AddressRequest{Pool: pool, MAC: mac})
				if err != nil {
					if !isAway(err) && !isUnknown(err) {
						t.Error(err)
					}
					continue
				}
				mu.Lock()
				if other, ok := hands[addr.String()]; ok {
					t.Errorf("%s is in the hands of %s and %s", addr, other, mac)
				}
				hands[addr.String()] = mac
				mu.Unlock()
				if again, err := a.ask(ipam.AddressRequest{Pool: pool, MAC: mac, Preferred: addr}); err == nil {
					t.Errorf("%s was given to a second one with the MAC %s: %s", addr, mac, again)
				}
				mu.Lock()
				delete(hands, addr.String())
				mu.Unlock()
				if err := a.ReleaseAddress(t.Context(), pool, addr); err != nil {
					t.Error(err)
				}
			}
		})
	}
	endpoints.Wait()
	close(over)
	wg.Wait()
	comes(t, "the last loss is over", func() bool {
		a.handle.Heal()
		_, err := a.RequestPool(t.Context(), ipam.PoolRequest{Network: "lan", CIDR: lanCIDR})
		return err == nil
	})
	comes(t, "nothing waits", func() bool { return a.State().Waiting == 0 && len(leasesIn(t, common)) == 16 })
	if len(a.warned) > 0 {
		t.Fatal(a.warned)
	}
	a.sound()
}
