package driver

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"berth/internal/ipam"
	"berth/store"

	api "github.com/docker/go-plugins-helpers/ipam"
)

// TestReleaseUnknown tests that the release of something unknown succeeds and changes nothing for others. The engine
// only logs an error on a release and forgets the address (LN-2, LN-4, C24, C50, C67).
func TestReleaseUnknown(t *testing.T) {
	b := newBench(t)
	p := b.pool("local", "10.0.0.0/24", "", nil).PoolID
	held := b.take(p, "", mac(1))
	for _, pool := range []string{ipam.NewID().String(), "LocalDefault/10.0.0.0/24"} {
		b.give(pool, held)
		b.drop(pool)
	}
	b.give(p, "10.0.0.99")
	b.holds(held, mac(1))
	for range 2 {
		b.give(p, held)
	}
	for range 2 {
		b.drop(p)
	}
	b.give(p, held)
	if got := b.subnets(""); len(got) != 0 {
		t.Errorf("subnets left: %v", got)
	}
	b.check()
}

// TestReleaseRefused tests that an unreadable release is an error, especially one with an empty id (C67).
func TestReleaseRefused(t *testing.T) {
	b := newBench(t)
	p := b.pool("local", "10.0.0.0/24", "", nil).PoolID
	for _, row := range []struct {
		pool, addr string
		want       []string
	}{
		{"", "10.0.0.1", []string{"names no pool"}},
		{p, "", []string{"address"}},
		{p, "10.0.0.1/24", []string{"10.0.0.1/24", "not a single address"}},
		{p, "::ffff:10.0.0.1", []string{"mapped", "10.0.0.1"}},
		{p, "ten", []string{`"ten"`}},
	} {
		wantText(t, b.send("ReleaseAddress", api.ReleaseAddressRequest{PoolID: row.pool, Address: row.addr},
			&struct{}{}), row.want...)
	}
	wantText(t, b.send("ReleasePool", api.ReleasePoolRequest{}, &struct{}{}), "names no pool")
}

// betweenUpdates is a store that calls a function once, after a given number of further updates.
type betweenUpdates struct {
	store.Store
	mu    sync.Mutex
	after int
	call  func()
}

func (s *betweenUpdates) arm(after int, call func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.after, s.call = after, call
}

func (s *betweenUpdates) Update(ctx context.Context, fn func(store.Tx) error) error {
	err := s.Store.Update(ctx, fn)
	s.mu.Lock()
	s.after--
	call := s.call
	if s.after != 0 {
		call = nil
	}
	s.mu.Unlock()
	if call != nil {
		call()
	}
	return err
}

// TestReleaseOfTwoAttachments tests that two networks on one subnet end at the same time, one between two transactions
// of the other. Both releases succeed, and nothing is left that the next start refuses (LN-2, LN-10).
func TestReleaseOfTwoAttachments(t *testing.T) {
	for after := 1; after <= 3; after++ {
		for _, renew := range []bool{false, true} {
			t.Run(fmt.Sprintf("after update %d, renew %v", after, renew), func(t *testing.T) {
				b := newBench(t)
				between := &betweenUpdates{Store: b.store}
				b.use(between)
				first := b.pool("local", "10.0.0.0/24", "", nil).PoolID
				second := b.pool("local", "10.0.0.0/24", "", nil).PoolID
				b.take(first, "", mac(1))
				b.take(second, "", mac(2))
				between.arm(after, func() {
					b.drop(second)
					if renew {
						b.pool("local", "10.0.0.0/24", "", nil)
					}
				})
				b.drop(first)
				b.check()
				b.reopen()
				if got := len(b.subnets("")); got > 1 || got == 1 && !renew {
					t.Errorf("subnets left: %v", b.subnets(""))
				}
				b.check()
			})
		}
	}
}
