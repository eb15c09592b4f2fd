package driver

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"berth/internal/ipam"
	"berth/store"

	api "github.com/docker/go-plugins-helpers/ipam"
)

// TestReleaseUnknown: the engine only logs an error on a release and forgets the address, so a release of what is not
// there succeeds, and changes nothing for those who hold something (LN-2, LN-4, C24, C50, C67).
func TestReleaseUnknown(t *testing.T) {
	b := newBench(t)
	p := b.pool("local", "10.0.0.0/24", "", nil).PoolID
	other := b.pool("local", "10.0.1.0/24", "", nil).PoolID
	gateway := b.take(p, "", gatewayType)
	held := b.take(p, "", mac(1))
	for _, row := range []struct{ name, pool, addr string }{
		{"free address", p, "10.0.0.99"},
		{"address of another subnet", p, "10.0.1.99"},
		{"address of the other family", p, "fd00::1"},
		{"through the pool of another subnet", other, held},
		{"the subnet's gateway", p, gateway},
		{"the network's address", p, "10.0.0.0"},
		{"unknown pool", ipam.NewID().String(), held},
		{"id of another driver", "LocalDefault/10.0.0.0/24", held},
	} {
		t.Run(row.name, func(t *testing.T) {
			b.give(row.pool, row.addr)
			_, refused := b.tryTake(p, held, mac(2))
			wantText(t, refused, held, "held by", macText(1))
			_, refused = b.tryTake(p, gateway, mac(2))
			wantText(t, refused, gateway, "gateway")
		})
	}
	b.drop(ipam.NewID().String())
	b.drop("LocalDefault/10.0.0.0/24")
	b.give(p, held)
	b.give(p, held)
	b.drop(p)
	b.drop(p)
	b.give(p, held)
	if got := b.subnets("local"); !slices.Equal(got, []string{"10.0.1.0/24"}) {
		t.Errorf("subnets left: %v", got)
	}
	b.check()
}

// TestReleaseRefused: what cannot be read at all is an error, an empty id above all (C67).
func TestReleaseRefused(t *testing.T) {
	b := newBench(t)
	p := b.pool("local", "10.0.0.0/24", "", nil).PoolID
	for _, row := range []struct {
		pool, addr string
		want       []string
	}{
		{"", "10.0.0.1", []string{"names no pool"}},
		{p, "", []string{"address"}},
		{p, "10.0.0.1/24", []string{"10.0.0.1/24", "not one address"}},
		{p, "::ffff:10.0.0.1", []string{"mapped", "10.0.0.1"}},
		{p, "ten", []string{`"ten"`}},
	} {
		wantText(t, b.send("ReleaseAddress", api.ReleaseAddressRequest{PoolID: row.pool, Address: row.addr},
			&struct{}{}), row.want...)
	}
	wantText(t, b.send("ReleasePool", api.ReleasePoolRequest{}, &struct{}{}), "names no pool")
}

// TestReleaseEverything: a network's end gives back its gateway, its auxiliary addresses and its pool, also where the
// engine leaks some of them (LN-10).
func TestReleaseEverything(t *testing.T) {
	b := newBench(t)
	for _, leak := range []bool{false, true} {
		p := b.pool("local", "10.0.0.0/24", "10.0.0.128/25", nil).PoolID
		gateway := b.take(p, "10.0.0.9", gatewayType)
		aux := b.take(p, "10.0.0.5", nil)
		held := b.take(p, "", mac(1))
		if !leak {
			b.give(p, held)
			b.give(p, gateway)
			b.give(p, aux)
		}
		b.drop(p)
		if got := b.subnets(""); len(got) != 0 {
			t.Errorf("leak %v: subnets left: %v", leak, got)
		}
		for l, err := range b.service.Leases(context.Background(), ipam.LeaseFilter{Remembered: true}) {
			t.Errorf("leak %v: a lease is left: %v %v", leak, l, err)
		}
	}
	b.check()
}

// betweenUpdates is a store that calls a function once, after a given number of further updates have been answered.
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

// TestReleaseOfTwoAttachments: two networks on one subnet end at the same time, one between two transactions of the
// other. Both releases succeed, and nothing is left that the next start falls over (LN-2, LN-10).
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

// TestReleaseLeavesOthersPool: the range that is written as the whole subnet, and no range at all, are the same. The
// end of one attachment leaves the other its addresses (LN-6).
func TestReleaseLeavesOthersPool(t *testing.T) {
	const cidr = "10.0.0.0/24"
	for _, row := range []struct{ name, first, second string }{
		{"whole written out, then none", cidr, ""},
		{"none, then whole written out", "", cidr},
		{"twice none", "", ""},
		{"twice the same", "10.0.0.64/26", "10.0.0.64/26"},
		{"two beside one another", "10.0.0.64/26", "10.0.0.128/26"},
	} {
		t.Run(row.name, func(t *testing.T) {
			b := newBench(t)
			first := b.pool("local", cidr, row.first, nil).PoolID
			second := b.pool("local", cidr, row.second, nil).PoolID
			b.drop(first)
			b.take(second, "", mac(1))
			b.check()
			b.drop(second)
			if got := b.subnets(""); len(got) != 0 {
				t.Errorf("subnets left: %v", got)
			}
		})
	}
}
