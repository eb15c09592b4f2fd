package stores_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
	"berth/internal/ipam/ledger"
	"berth/internal/ipam/service"
	"berth/internal/ipam/stores"
	"berth/store"
)

var ctx = context.Background()

// TestCopySpaces copies all but the local space to a shared store and back. Each store shows the same as the one
// before, also to the engine.
func TestCopySpaces(t *testing.T) {
	r := newCopyRoom(t).withElastic()
	own, cluster := r.both()
	want, home, records := seen(t, own, "global", "lab"), seen(t, own, "local"), ipamtest.Dump(t, r.Store)

	plan := mustCopy(t, own, cluster, ipam.CopyOptions{DryRun: true})
	if diff := cmp.Diff(records, ipamtest.Dump(t, r.Store)); diff != "" {
		t.Fatalf("a dry run writes:\n%s", diff)
	}
	done := 0
	report := mustCopy(t, own, cluster, ipam.CopyOptions{Progress: func(n, total int) {
		if n < done || n > total {
			t.Errorf("it is at %d of %d, behind %d", n, total, done)
		}
		done = n
	}})
	for i, space := range report.Spaces {
		if plan.Spaces[i].Events != space.Events || len(plan.Spaces[i].Networks) != len(space.Networks) {
			t.Errorf("%+v was foretold, and %+v copied", plan.Spaces[i], space)
		}
		for j, n := range space.Networks {
			if len(n.Digest) != 64 {
				t.Errorf("network %s has the digest %q", n.Name, n.Digest)
			}
			if n.Digest = ""; n != plan.Spaces[i].Networks[j] {
				t.Errorf("%+v was foretold, and %+v copied", plan.Spaces[i].Networks[j], n)
			}
		}
	}
	if diff := cmp.Diff(want, seen(t, cluster, "global", "lab")); diff != "" {
		t.Fatalf("the target shows:\n%s", diff)
	}
	if left := seen(t, own); !slices.Equal(left, home) {
		t.Fatalf("the source shows:\n%s", cmp.Diff(home, left))
	}
	other := r.other(2)
	if diff := cmp.Diff(want, seen(t, other, "global", "lab")); diff != "" {
		t.Fatalf("another host sees:\n%s", diff)
	}
	r.Open() // the daemon is not refused
	checked(t, r.S, cluster, other)
	if _, err := stores.CopySpaces(ctx, own.Ledger, cluster.Ledger, ipam.CopyOptions{}); !errors.Is(err,
		ipam.ErrNotFound) {
		t.Errorf("nothing is left to copy, and: %v", err)
	}

	edits(t, cluster, `edit host.remove {"name": "h2", "off": true}`) // elastic addresses that it shares would stay
	back := ipamtest.New(t)
	again := r.opened("h1", back.Store)
	mustCopy(t, cluster, again, ipam.CopyOptions{})
	back.Open()
	checked(t, back.S, cluster, other)
	local := ipamtest.Dump(t, r.Store)
	if diff := cmp.Diff(copiedKinds(records, local), copiedKinds(ipamtest.Dump(t, back.Store), local)); diff != "" {
		t.Fatalf("after the way back:\n%s", diff)
	}
	if diff := cmp.Diff(want, seen(t, back.S, "global", "lab")); diff != "" {
		t.Fatalf("after the way back it shows:\n%s", diff)
	}
	if left := append(seen(t, cluster), seen(t, other)...); len(left) > 0 {
		t.Fatalf("the shared store shows:\n%s", strings.Join(left, "\n"))
	}
}

// The engine can use its pools in the store to which they were copied: every id stays the same.
func TestCopiedPoolsGoOn(t *testing.T) {
	r := newCopyRoom(t)
	own, cluster := r.both()
	mustCopy(t, own, cluster, ipam.CopyOptions{Spaces: []string{"global"}})
	if _, err := own.RequestAddress(ctx,
		ipam.AddressRequest{Pool: r.Pools["A"], MAC: ipamtest.MAC(7)}); ipamtest.KindOf(err) != "notfound" {
		t.Errorf("the source still gives addresses: %v", err)
	}
	for n, want := range map[int]string{2: "192.0.2.14/24", 3: "192.0.2.15/24"} { // each had it before
		if got, err := cluster.RequestAddress(ctx, ipam.AddressRequest{Pool: r.Pools["A"],
			MAC: ipamtest.MAC(n)}); err != nil ||
			got.String() != want {
			t.Errorf("MAC %d gets %v, %v, and not %s", n, got, err, want)
		}
	}
	if err := cluster.ReleaseAddress(ctx, r.Pools["A"], netip.MustParseAddr("192.0.2.15")); err != nil {
		t.Error(err)
	}
	if err := cluster.ReleasePool(ctx, r.Pools["A"]); err != nil {
		t.Error(err)
	}
	if n, err := cluster.Network(ctx, "lan"); err != nil || n.Docker != 0 || n.Use.Leased != 3 {
		t.Errorf("%+v, %v", n, err)
	}
	if _, err := own.RequestAddress(ctx, ipam.AddressRequest{Pool: r.Pools["B"], MAC: ipamtest.MAC(7)}); err != nil {
		t.Errorf("the space lab was not copied, and its pool is gone: %v", err)
	}
	r.Open()
	checked(t, r.S, cluster)
}

// A copy that collides is refused before anything is written. The refusal names both sides.
func TestCopyCollides(t *testing.T) {
	for name, tc := range map[string]struct {
		there string
		want  []string
	}{
		"name": {"network lan space=else", []string{"a different network named lan", "space else", "space global"}},
		"subnet": {"network x space=global subnet=192.0.2.0/24",
			[]string{"192.0.2.0/24 of network lan overlaps 192.0.2.0/24, which network x of space global"}},
		"overlap": {"network x space=lab subnet=10.0.64.0/18",
			[]string{"10.0.0.0/16 of network wide overlaps 10.0.64.0/18, which network x of space lab"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newCopyRoom(t)
			own, cluster := r.both()
			edits(t, cluster, tc.there)
			before, there := ipamtest.Dump(t, r.Store), ipamtest.Dump(t, r.common)
			_, err := stores.CopySpaces(ctx, own.Ledger, cluster.Ledger, ipam.CopyOptions{})
			var wrong *ipam.PlanError
			if !errors.As(err, &wrong) {
				t.Fatalf("copied: %v", err)
			}
			for _, part := range tc.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q does not say %q", err, part)
				}
			}
			if diff := cmp.Diff(before, ipamtest.Dump(t, r.Store)) + cmp.Diff(there,
				ipamtest.Dump(t, r.common)); diff != "" {
				t.Errorf("it was written:\n%s", diff)
			}
		})
	}
}

// Copies are refused for other reasons than collisions. Nothing is written.
func TestCopyRefused(t *testing.T) {
	r := newCopyRoom(t)
	own, cluster := r.both()
	other := r.other(2)
	edits(t, other, "network theirs space=far subnet=10.5.0.0/24,pool")
	if _, err := other.RequestPool(ctx, ipam.PoolRequest{Space: "far", Network: "theirs"}); err != nil {
		t.Fatal(err)
	}
	before, there := ipamtest.Dump(t, r.Store), ipamtest.Dump(t, r.common)
	for _, tc := range []struct {
		from, to *service.Service
		opt      ipam.CopyOptions
		want     string
	}{
		{own, cluster, ipam.CopyOptions{Spaces: []string{"local"}}, "belongs to one host"},
		{own, cluster, ipam.CopyOptions{Spaces: []string{"labs"}}, `no network to copy in the space "labs"`},
		{own, cluster, ipam.CopyOptions{Undo: true}, "nothing to undo"},
		{cluster, own, ipam.CopyOptions{}, "host h2 has a Docker network on the subnet 10.5.0.0/24 of network theirs"},
	} {
		if _, err := stores.CopySpaces(ctx, tc.from.Ledger, tc.to.Ledger, tc.opt); err == nil ||
			!strings.Contains(err.Error(), tc.want) {
			t.Errorf("%+v: %v, want %q", tc.opt, err, tc.want)
		}
	}
	if diff := cmp.Diff(before, ipamtest.Dump(t, r.Store)) + cmp.Diff(there, ipamtest.Dump(t, r.common)); diff != "" {
		t.Errorf("it was written:\n%s", diff)
	}
}

// A host's own store belongs to it. Leases that it took under another host name are copied as its own.
func TestCopiedHost(t *testing.T) {
	r := newCopyRoom(t)
	own := r.opened("renamed", r.Store)
	cluster := r.cluster("renamed", r.member)
	mustCopy(t, own, cluster, ipam.CopyOptions{})
	for _, l := range ipamtest.ListLeases(t, cluster, ipam.LeaseFilter{}) {
		if l.Pool != (ipam.ID{}) && l.Host != "renamed" {
			t.Errorf("%s is of host %s", l.Address, l.Host)
		}
	}
	hosts, err := cluster.Hosts(ctx)
	if err != nil || len(hosts) != 1 || hosts[0].Pools != 4 || hosts[0].Leases != 4 {
		t.Errorf("%+v, %v", hosts, err)
	}
	checked(t, cluster)
}

// An event whose id is taken in the target gets the next free id.
func TestCopyMeetsEvents(t *testing.T) {
	r := newCopyRoom(t)
	own, cluster := r.both()
	events, err := own.Events(ctx, ipam.EventFilter{})
	fine(t, err)
	var ids []uint64
	for _, e := range events {
		if e.Space == "lab" {
			ids = append(ids, e.ID)
		}
	}
	want, key := seen(t, own, "lab"), func(id uint64) []byte { return binary.BigEndian.AppendUint64([]byte{'e'}, id) }
	records := map[uint64]string{}
	err = own.Ledger.View(ctx, func(tx store.Tx) error {
		for _, e := range events {
			alone, err := ledger.EventAlone(tx, e.ID)
			if err != nil {
				return err
			}
			records[e.ID] = string(alone)
		}
		return nil
	})
	fine(t, err)
	taken := []uint64{ids[0], ids[2], ids[2] + 1}
	theirs := records[events[0].ID] // an event outside the copied spaces
	err = r.common.Update(ctx, func(tx store.Tx) error {
		for _, id := range taken {
			if err := tx.Put(key(id), []byte(theirs)); err != nil {
				return err
			}
		}
		return nil
	})
	fine(t, err)
	report := mustCopy(t, own, cluster, ipam.CopyOptions{Spaces: []string{"lab"}})
	got := seen(t, cluster, "lab")
	if report.Spaces[0].Events != len(ids) || len(got) != len(want) || cmp.Equal(got, want) {
		t.Errorf("%d events were copied of %d; %d lines are shown, and were %d", report.Spaces[0].Events, len(ids),
			len(got), len(want))
	}
	there := ipamtest.Dump(t, r.common)
	at := uint64(0)
	for len(ids) > 0 { // they are in the same order, each at most a little later
		at = max(at+1, ids[0])
		if at > ids[0]+100 {
			break
		}
		if there[fmt.Sprintf("%q", key(at))] == records[ids[0]] {
			ids = ids[1:]
		}
	}
	if len(ids) > 0 {
		t.Errorf("the events from %d on are not there", ids[0])
	}
	back := ipamtest.New(t)
	own = r.opened("h1", back.Store)
	mustCopy(t, cluster, own, ipam.CopyOptions{})
	for _, id := range taken {
		if ipamtest.Dump(t, r.common)[fmt.Sprintf("%q", key(id))] != theirs {
			t.Errorf("the other's event %d went away", id)
		}
	}
}
