package service_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/internal/ipam"
	"berth/internal/ipam/service"
	"berth/internal/ipam/stores"
	"berth/store"
	"berth/store/mem"
)

// planToCopy has something of every kind, in the spaces global and lab, and in local, which stays.
const planToCopy = `
	network home subnet=10.9.0.0/24,gw=10.9.0.1,pool
	take home printer 0:ip0=10.9.0.7
	network lan space=global subnet=192.0.2.0/24,gw=192.0.2.1,name=lan+2001:db8::/64,pool tag.site=a
	pool lan 192.0.2.10-192.0.2.100 name=front
	exclude lan 192.0.2.60+5 note=printers
	reserve lan web 192.0.2.11
	reserve lan db 192.0.2.12
	take lan rtr 0:ip0=192.0.2.13,ip1=pool
	take lan gone 192.0.2.200
	release lan gone
	network wide space=lab subnet=10.0.0.0/16,pool
	network empty space=lab
	network seen space=global type=dynamic subnet=198.51.100.0/24
	reserve seen vm/1
	reserve seen vm/2
	attach A net=lan space=global
	ask A web mac=1
	ask A mac=2
	ask A mac=3
	wait 1m
	back A 192.0.2.14
	attach B net=wide space=lab
	ask B mac=4
	attach C cidr=203.0.113.0/24 space=lab
	gateway C
	ask C x mac=5
	attach D cidr=203.0.113.0/24 space=lab
	attach H net=home
	ask H mac=9
`

// copyRoom is a host's own store with planToCopy, and a store that it shares.
type copyRoom struct {
	*room
	member *ipam.Member
	common *mem.Store // the first handle
}

func newCopyRoom(t testing.TB) *copyRoom {
	t.Helper()
	r := &copyRoom{room: newRoom(t), common: mem.New(),
		member: &ipam.Member{Host: ipam.ID{1}, Session: ipam.NewID(), Mark: [4]byte{9, 9, 9, 9}}}
	t.Cleanup(func() { r.common.Close() })
	r.run(planToCopy)
	return r
}

// own opens the host's own store for a copy.
func (r *copyRoom) own() *service.Service {
	r.t.Helper()
	s, err := service.Open(ctx,
		service.Config{Store: r.store, Host: "h1", Now: r.clock.Now, Memories: memories, Copying: true})
	if err != nil {
		r.t.Fatal(err)
	}
	return s
}

// cluster opens the shared store as a host, through a handle of its own.
func (r *copyRoom) cluster(host string, member *ipam.Member) *service.Service {
	r.t.Helper()
	s, err := service.Open(ctx,
		service.Config{Store: r.common.Join(), Host: host, Now: r.clock.Now, Memories: memories, Member: member})
	if err != nil {
		r.t.Fatal(err)
	}
	return s
}

func mustCopy(t testing.TB, from, to *service.Service, opt ipam.CopyOptions) ipam.CopyReport {
	t.Helper()
	opt.Command = "berth store copy"
	report, err := stores.CopySpaces(ctx, from.Ledger, to.Ledger, opt)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// seen is all that a service shows, of one space or of all, in an order of its own.
func seen(t testing.TB, s *service.Service, spaces ...string) (lines []string) {
	t.Helper()
	in := func(space string) bool { return len(spaces) == 0 || slices.Contains(spaces, space) }
	networks, err := s.Networks(ctx, ipam.NetworkFilter{})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range networks {
		if in(n.Space) {
			whole, err := s.Network(ctx, n.Name)
			if err != nil {
				t.Fatal(err)
			}
			lines = append(lines, fmt.Sprintf("network %+v", whole))
		}
	}
	for _, l := range listLeases(t, s, ipam.LeaseFilter{Remembered: true}) {
		if in(l.Space) {
			lines = append(lines, fmt.Sprintf("lease %+v", l))
		}
	}
	for info, err := range s.Reservations(ctx, ipam.AddressFilter{}) {
		if err != nil {
			t.Fatal(err)
		}
		if in(info.Space) {
			lines = append(lines, fmt.Sprintf("reservation %+v", info))
		}
	}
	events, err := s.Events(ctx, ipam.EventFilter{})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		if e.Space != "" && in(e.Space) && e.Verb != ipam.SpaceCreated {
			lines = append(lines, fmt.Sprintf("event %+v", e))
		}
	}
	return lines
}

// copiedKinds are the records of the kinds that are copied, less those of before.
func copiedKinds(all, before map[string]string) map[string]string {
	all = maps.Clone(all)
	maps.DeleteFunc(all, func(key, _ string) bool {
		_, stays := before[key]
		return stays || !strings.ContainsAny(key[1:2], "adilnp")
	})
	return all
}

func checked(t testing.TB, services ...*service.Service) {
	t.Helper()
	for _, s := range services {
		if problems, err := s.Check(ctx); err != nil || len(problems) > 0 {
			t.Fatalf("berth fsck says: %q, %v", problems, err)
		}
	}
}

// TestCopySpaces takes all but the local space to a shared store, where it is what it was, for the engine, too, and
// back again.
func TestCopySpaces(t *testing.T) {
	r := newCopyRoom(t)
	own, cluster := r.own(), r.cluster("h1", r.member)
	want, home, records := seen(t, own, "global", "lab"), seen(t, own, "local"), dump(t, r.store)

	plan := mustCopy(t, own, cluster, ipam.CopyOptions{DryRun: true})
	if diff := cmp.Diff(records, dump(t, r.store)); diff != "" {
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
	other := r.cluster("h2", &ipam.Member{Host: ipam.ID{2}, Session: ipam.ID{2}, Mark: r.member.Mark})
	if diff := cmp.Diff(want, seen(t, other, "global", "lab")); diff != "" {
		t.Fatalf("another host sees:\n%s", diff)
	}
	r.open() // its daemon is not refused
	checked(t, r.s, cluster, other)
	if _, err := stores.CopySpaces(ctx, own.Ledger, cluster.Ledger, ipam.CopyOptions{}); !errors.Is(err,
		ipam.ErrNotFound) {
		t.Errorf("nothing is left to copy, and: %v", err)
	}

	back := newRoom(t)
	again, err := service.Open(ctx,
		service.Config{Store: back.store, Host: "h1", Now: r.clock.Now, Memories: memories, Copying: true})
	if err != nil {
		t.Fatal(err)
	}
	mustCopy(t, cluster, again, ipam.CopyOptions{})
	back.open()
	checked(t, back.s, cluster, other)
	local := dump(t, r.store)
	if diff := cmp.Diff(copiedKinds(records, local), copiedKinds(dump(t, back.store), local)); diff != "" {
		t.Fatalf("after the way back:\n%s", diff)
	}
	if left := append(seen(t, cluster), seen(t, other)...); len(left) > 0 {
		t.Fatalf("the shared store shows:\n%s", strings.Join(left, "\n"))
	}
}

// The engine goes on with its pools in the store that they were copied to: every id stays what it is.
func TestCopiedPoolsGoOn(t *testing.T) {
	r := newCopyRoom(t)
	own, cluster := r.own(), r.cluster("h1", r.member)
	mustCopy(t, own, cluster, ipam.CopyOptions{Spaces: []string{"global"}})
	if _, err := own.RequestAddress(ctx,
		ipam.AddressRequest{Pool: r.pools["A"], MAC: mac(7)}); kindOf(err) != "notfound" {
		t.Errorf("the source still gives addresses: %v", err)
	}
	for n, want := range map[int]string{2: "192.0.2.14/24", 3: "192.0.2.15/24"} { // which it had, and has
		if got, err := cluster.RequestAddress(ctx, ipam.AddressRequest{Pool: r.pools["A"], MAC: mac(n)}); err != nil ||
			got.String() != want {
			t.Errorf("MAC %d gets %v, %v, and not %s", n, got, err, want)
		}
	}
	if err := cluster.ReleaseAddress(ctx, r.pools["A"], netip.MustParseAddr("192.0.2.15")); err != nil {
		t.Error(err)
	}
	if err := cluster.ReleasePool(ctx, r.pools["A"]); err != nil {
		t.Error(err)
	}
	if n, err := cluster.Network(ctx, "lan"); err != nil || n.Docker != 0 || n.Held != 3 {
		t.Errorf("%+v, %v", n, err)
	}
	if _, err := own.RequestAddress(ctx, ipam.AddressRequest{Pool: r.pools["B"], MAC: mac(7)}); err != nil {
		t.Errorf("the space lab was not copied, and its pool is gone: %v", err)
	}
	r.open()
	checked(t, r.s, cluster)
}

// What collides is refused before anything is written, and both are named.
func TestCopyCollides(t *testing.T) {
	for name, tc := range map[string]struct {
		there ipam.Edit
		want  []string
	}{
		"name": {&ipam.CreateNetwork{Name: "lan", Space: "else"},
			[]string{"another network lan", "space else", "space global"}},
		"subnet": {&ipam.CreateNetwork{Name: "x", Space: "global",
			Subnets: []ipam.SubnetSpec{{CIDR: netip.MustParsePrefix("192.0.2.0/24")}}},
			[]string{"192.0.2.0/24 of network lan overlaps 192.0.2.0/24, which network x of space global"}},
		"overlap": {&ipam.CreateNetwork{Name: "x", Space: "lab",
			Subnets: []ipam.SubnetSpec{{CIDR: netip.MustParsePrefix("10.0.64.0/18")}}},
			[]string{"10.0.0.0/16 of network wide overlaps 10.0.64.0/18, which network x of space lab"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newCopyRoom(t)
			own, cluster := r.own(), r.cluster("h1", r.member)
			if _, err := cluster.Edit(ctx, ipam.EditOptions{}, tc.there); err != nil {
				t.Fatal(err)
			}
			before, there := dump(t, r.store), dump(t, r.common)
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
			if diff := cmp.Diff(before, dump(t, r.store)) + cmp.Diff(there, dump(t, r.common)); diff != "" {
				t.Errorf("it was written:\n%s", diff)
			}
		})
	}
}

// Refusals that are no collisions. Nothing is written.
func TestCopyRefused(t *testing.T) {
	r := newCopyRoom(t)
	own, cluster := r.own(), r.cluster("h1", r.member)
	other := r.cluster("h2", &ipam.Member{Host: ipam.ID{2}, Session: ipam.ID{2}, Mark: r.member.Mark})
	if _, err := other.Edit(ctx, ipam.EditOptions{},
		&ipam.CreateNetwork{Name: "theirs", Space: "far",
			Subnets: []ipam.SubnetSpec{{CIDR: netip.MustParsePrefix("10.5.0.0/24"), Pool: true}}}); err != nil {
		t.Fatal(err)
	}
	if _, err := other.RequestPool(ctx, ipam.PoolRequest{Space: "far", Network: "theirs"}); err != nil {
		t.Fatal(err)
	}
	before, there := dump(t, r.store), dump(t, r.common)
	for _, tc := range []struct {
		from, to *service.Service
		opt      ipam.CopyOptions
		want     string
	}{
		{own, cluster, ipam.CopyOptions{Spaces: []string{"local"}}, "belongs to one host"},
		{own, cluster, ipam.CopyOptions{Spaces: []string{"labs"}}, `no network in a space "labs"`},
		{own, cluster, ipam.CopyOptions{Undo: true}, "nothing to take back"},
		{cluster, own, ipam.CopyOptions{}, "host h2 has a Docker network on the subnet 10.5.0.0/24 of network theirs"},
	} {
		if _, err := stores.CopySpaces(ctx, tc.from.Ledger, tc.to.Ledger, tc.opt); err == nil ||
			!strings.Contains(err.Error(), tc.want) {
			t.Errorf("%+v: %v, want %q", tc.opt, err, tc.want)
		}
	}
	if diff := cmp.Diff(before, dump(t, r.store)) + cmp.Diff(there, dump(t, r.common)); diff != "" {
		t.Errorf("it was written:\n%s", diff)
	}
}

// The host's own store is its own: what was taken there under another name of the host is this one's.
func TestCopiedHost(t *testing.T) {
	r := newCopyRoom(t)
	own, err := service.Open(ctx,
		service.Config{Store: r.store, Host: "renamed", Now: r.clock.Now, Memories: memories, Copying: true})
	if err != nil {
		t.Fatal(err)
	}
	cluster := r.cluster("renamed", r.member)
	mustCopy(t, own, cluster, ipam.CopyOptions{})
	for _, l := range listLeases(t, cluster, ipam.LeaseFilter{}) {
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

// An event whose id another event of the target has goes to the next one.
func TestCopyMeetsEvents(t *testing.T) {
	r := newCopyRoom(t)
	own, cluster := r.own(), r.cluster("h1", r.member)
	events, err := own.Events(ctx, ipam.EventFilter{})
	if err != nil {
		t.Fatal(err)
	}
	var ids []uint64
	for _, e := range events {
		if e.Space == "lab" {
			ids = append(ids, e.ID)
		}
	}
	want, key := seen(t, own, "lab"), func(id uint64) []byte { return binary.BigEndian.AppendUint64([]byte{'e'}, id) }
	records := dump(t, r.store)
	taken := []uint64{ids[0], ids[2], ids[2] + 1}
	theirs := records[fmt.Sprintf("%q", key(events[0].ID))] // which is of none of the spaces that are copied
	err = r.common.Update(ctx, func(tx store.Tx) error {
		for _, id := range taken {
			if err := tx.Put(key(id), []byte(theirs)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	report := mustCopy(t, own, cluster, ipam.CopyOptions{Spaces: []string{"lab"}})
	got := seen(t, cluster, "lab")
	if report.Spaces[0].Events != len(ids) || len(got) != len(want) || cmp.Equal(got, want) {
		t.Errorf("%d events were copied of %d; %d lines are shown, and were %d", report.Spaces[0].Events, len(ids),
			len(got), len(want))
	}
	there := dump(t, r.common)
	at := uint64(0)
	for len(ids) > 0 { // they are there in their order, each a little later at most
		at = max(at+1, ids[0])
		if at > ids[0]+100 {
			break
		}
		if there[fmt.Sprintf("%q", key(at))] == records[fmt.Sprintf("%q", key(ids[0]))] {
			ids = ids[1:]
		}
	}
	if len(ids) > 0 {
		t.Errorf("the events from %d on are not there", ids[0])
	}
	back := newRoom(t)
	own, err = service.Open(ctx,
		service.Config{Store: back.store, Host: "h1", Now: r.clock.Now, Memories: memories, Copying: true})
	if err != nil {
		t.Fatal(err)
	}
	mustCopy(t, cluster, own, ipam.CopyOptions{})
	for _, id := range taken {
		if dump(t, r.common)[fmt.Sprintf("%q", key(id))] != theirs {
			t.Errorf("the other's event %d went away", id)
		}
	}
}
