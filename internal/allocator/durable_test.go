package allocator_test

import (
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
	"berth/internal/ipam/ledger"
	"berth/internal/ipam/service"
	"berth/store/mem"
)

var must = ipamtest.Must

// The next start completes a release of a large pool that was interrupted between two of its transactions, whether the
// subnet is removed or stays.
func TestReleaseCutOff(t *testing.T) { // LN-10
	for _, shared := range []bool{false, true} {
		t.Run(fmt.Sprintf("shared=%t", shared), func(t *testing.T) {
			st := ipamtest.OpenStore(t, filepath.Join(t.TempDir(), "berth.db"))
			t.Cleanup(func() { st.Close() })
			s := ipamtest.OpenService(t, st, time.Now)
			req := ipam.PoolRequest{CIDR: netip.MustParsePrefix("10.1.0.0/20")}
			pool := ipamtest.MustPool(t, s, req)
			kept := 0
			if shared {
				other := ipamtest.MustPool(t, s, req)
				ipamtest.MustTake(t, s, ipam.AddressRequest{Pool: other.ID, MAC: ipamtest.MAC(1 << 20)})
				kept = 1
			}
			for i := range 1500 {
				ipamtest.MustTake(t, s, ipam.AddressRequest{Pool: pool.ID, MAC: ipamtest.MAC(i + 1)})
			}
			dying := &ipamtest.Failing{Store: st, Left: 1000}
			s = ipamtest.OpenService(t, dying, time.Now)
			dying.Left = 2
			if err := s.ReleasePool(ctx, pool.ID); !errors.Is(err, ipamtest.ErrDied) {
				t.Fatalf("the release was not cut off: %v", err)
			}
			s = ipamtest.OpenService(t, st, time.Now)
			if got := ipamtest.HeldAddrs(t, s); len(got) != kept {
				t.Fatalf("%d addresses are held after the restart, want %d", len(got), kept)
			}
			if problems, err := s.Check(ctx); err != nil || len(problems) > 0 {
				t.Fatalf("%q, %v", problems, err)
			}
			if !shared && ipamtest.CountKeys(t, st, 'l') != 0 {
				t.Fatal("leases of the subnet that is gone were left behind")
			}
			if _, err := s.RequestAddress(ctx, ipam.AddressRequest{Pool: pool.ID}); !errors.Is(err, ipam.ErrNotFound) {
				t.Fatalf("the released pool gives addresses: %v", err)
			}
		})
	}
}

func TestMemoriesAreBounded(t *testing.T) {
	s := ipamtest.NewService(t, time.Now) // the service remembers six addresses
	pool := ipamtest.MustPool(t, s, ipam.PoolRequest{CIDR: netip.MustParsePrefix("10.0.0.0/24")})
	for i := range 20 {
		ipamtest.MustTake(t, s, ipam.AddressRequest{Pool: pool.ID, MAC: ipamtest.MAC(i + 1)})
	}
	for _, a := range ipamtest.HeldAddrs(t, s) {
		must(t, s.ReleaseAddress(ctx, pool.ID, netip.MustParseAddr(a)))
	}
	leases := ipamtest.ListLeases(t, s, ipam.LeaseFilter{Remembered: true})
	if len(leases) != 6 || leases[0].Address.String() != "10.0.0.15" {
		t.Fatalf("%d are remembered: %+v", len(leases), leases)
	}
	if got := ipamtest.MustTake(t, s, ipam.AddressRequest{Pool: pool.ID, MAC: ipamtest.MAC(20)}); got.String() !=
		"10.0.0.20" {
		t.Fatalf("the last one came back to %v", got)
	}
}

// The end of an attachment keeps no more memories than single releases do.
func TestMemoriesOfAnAttachmentAreBounded(t *testing.T) {
	s := ipamtest.NewService(t, time.Now)
	req := ipam.PoolRequest{CIDR: netip.MustParsePrefix("10.0.0.0/20")}
	pool := ipamtest.MustPool(t, s, req)
	ipamtest.MustPool(t, s, req) // this keeps the subnet
	for i := range 1100 {
		ipamtest.MustTake(t, s, ipam.AddressRequest{Pool: pool.ID, MAC: ipamtest.MAC(i + 1)})
	}
	must(t, s.ReleasePool(ctx, pool.ID))
	if left := ipamtest.ListLeases(t, s, ipam.LeaseFilter{Remembered: true}); len(left) != ipamtest.Memories ||
		left[0].State != "remembered" {
		t.Fatalf("%d records are left, want %d memories", len(left), ipamtest.Memories)
	}
}

// Events stay within their limits of number and bytes. The newest are kept. A reader that has read up to one of the
// kept events misses none, and any other reader learns that some are missing.
func TestRetentionOfThrowAways(t *testing.T) {
	for name, keep := range map[string]ipam.Retention{"bytes": {Bytes: 64 << 10}, "count": {Count: 701}} {
		t.Run(name, func(t *testing.T) { retains(t, keep) })
	}
}

func retains(t *testing.T, keep ipam.Retention) {
	clock, st := ipamtest.NewClock(), mem.New()
	s, err := service.Open(ctx, service.Config{Store: st, Host: "h", Now: clock.Now, Retention: keep})
	must(t, err)
	pool := ipamtest.MustPool(t, s, ipam.PoolRequest{CIDR: netip.MustParsePrefix("10.0.0.0/20")})
	begin, err := s.LastEvent(ctx)
	must(t, err)
	for i := range 3000 {
		addr := ipamtest.MustTake(t, s, ipam.AddressRequest{Pool: pool.ID, Name: fmt.Sprintf("job-%200d", i)})
		must(t, s.ReleaseAddress(ctx, pool.ID, addr))
	}
	select {
	case <-s.Ledger.TrimWanted():
	default:
		t.Fatal("nobody is told that there are too many")
	}
	all := events(t, s)
	must(t, s.Trim(ctx))
	kept, size := events(t, s), int64(0)
	for key, value := range ipamtest.Dump(t, st) {
		if key[1] == ledger.EventKeys {
			size += int64(len("e12345678") + len(value))
		}
	}
	most := keep.WithDefaults()
	if size > most.Bytes || len(kept) > most.Count || size < most.Bytes/2 && len(kept) < most.Count-10 {
		t.Fatalf("%d of %d events are kept, of %d bytes", len(kept), len(all), size)
	}
	if !reflect.DeepEqual(kept, all[len(all)-len(kept):]) {
		t.Fatalf("the %d events that are kept of %d are not the newest", len(kept), len(all))
	}
	for name, c := range map[string]struct {
		from  ipam.EventMark
		lacks bool
		want  []ipam.Event
	}{
		"before what is gone": {begin, true, kept},
		"at the first":        {ipam.EventMark{Own: ipam.StoreMark{After: kept[0].ID}}, false, kept[1:]},
	} {
		lacks, err := s.MayLack(ctx, c.from, clock.Time)
		if err != nil || lacks != c.lacks {
			t.Errorf("%s: some are missing: %t, %v", name, lacks, err)
		}
		page, err := s.EventsBehind(ctx, c.from, len(all), func(*ipam.Event) bool { return true })
		must(t, err)
		if !reflect.DeepEqual(page.Events, c.want) {
			t.Errorf("%s: it is told %d events, and not the %d that there are", name, len(page.Events), len(c.want))
		}
	}
}

// The events of short-lived containers take a sixth of the bytes of separate events. Events of other containers
// between them, and events after a pause, have their own records.
func TestThrowAwayRecords(t *testing.T) {
	clock, st := ipamtest.NewClock(), mem.New()
	s, err := service.Open(ctx, service.Config{Store: st, Host: "h", Now: clock.Now})
	must(t, err)
	pool := ipamtest.MustPool(t, s, ipam.PoolRequest{CIDR: netip.MustParsePrefix("10.0.0.0/20")})
	sum := func() ledger.EventSum { return ledger.Ask(s.Ledger, (*ledger.Index).Events) }
	throwAway := func() {
		addr := ipamtest.MustTake(t, s, ipam.AddressRequest{Pool: pool.ID, Name: "job"})
		must(t, s.ReleaseAddress(ctx, pool.ID, addr))
	}
	records := func() int { return ipamtest.CountKeys(t, st, ledger.EventKeys) }
	begin, before := sum(), records()
	for range 1000 {
		throwAway()
	}
	alone := int64(0)
	for _, e := range events(t, s)[begin.Count:] {
		alone += int64(len(ipam.EncodeEvent(nil, &e)))
	}
	if got := sum(); got.Count-begin.Count != 2000 || 6*(got.Bytes-begin.Bytes) > alone {
		t.Errorf("%d events take %d bytes, and by themselves %d", got.Count-begin.Count, got.Bytes-begin.Bytes, alone)
	}
	if n := records() - before; n > 100 {
		t.Errorf("there are %d records", n)
	}
	before = records()
	clock.Time = clock.Time.Add(time.Hour)
	throwAway()
	ipamtest.MustTake(t, s, ipam.AddressRequest{Pool: pool.ID, Name: "stays"})
	throwAway()
	if n := records() - before; n != 3 {
		t.Errorf("what does not come right behind leaves %d records", n)
	}
}

func events(t *testing.T, s *service.Service) []ipam.Event {
	t.Helper()
	all, err := s.Events(ctx, ipam.EventFilter{})
	must(t, err)
	return all
}

func TestRetention(t *testing.T) {
	c := ipamtest.NewClock()
	st := ipamtest.OpenStore(t, filepath.Join(t.TempDir(), "berth.db"))
	t.Cleanup(func() { st.Close() })
	s, err := service.Open(ctx,
		service.Config{Store: st, Host: "h", Now: c.Now, Retention: ipam.Retention{Age: time.Hour, Count: 700}})
	must(t, err)
	pool := ipamtest.MustPool(t, s, ipam.PoolRequest{CIDR: netip.MustParsePrefix("10.0.0.0/20")})
	for i := range 1500 {
		ipamtest.MustTake(t, s, ipam.AddressRequest{Pool: pool.ID, MAC: ipamtest.MAC(i + 1)})
	}
	must(t, s.Trim(ctx))
	events, err := s.Events(ctx, ipam.EventFilter{})
	if err != nil || len(events) != 700 {
		t.Fatalf("%d events are kept, %v", len(events), err)
	}
	if last := events[699]; last.Verb != ipam.LeaseTaken || last.Lease != last.ID || last.MAC != ipamtest.MAC(1500) {
		t.Fatalf("the last event is %+v", last)
	}
	c.Time = c.Time.Add(2 * time.Hour)
	must(t, s.Trim(ctx))
	if events, err := s.Events(ctx, ipam.EventFilter{}); err != nil || len(events) != 0 {
		t.Fatalf("%d events are older than an hour and kept, %v", len(events), err)
	}
	// New ids are greater than those of the leases, although the events of these leases are gone and the clock was
	// set back.
	c.Time = c.Time.Add(-5 * time.Hour)
	s, err = service.Open(ctx, service.Config{Store: st, Host: "h", Now: c.Now})
	must(t, err)
	ipamtest.MustTake(t, s, ipam.AddressRequest{Pool: pool.ID, MAC: ipamtest.MAC(9999)})
	leases := ipamtest.ListLeases(t, s, ipam.LeaseFilter{})
	for _, l := range leases[:1500] {
		if l.ID >= leases[1500].ID {
			t.Fatalf("lease %d of %v is not older than the new one, %d", l.ID, l.Address, leases[1500].ID)
		}
	}
}
