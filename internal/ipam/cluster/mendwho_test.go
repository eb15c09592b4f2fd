package cluster

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"berth/internal/allocator"
	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
	"berth/internal/ipam/service"
	"berth/store"
)

// A host that is named gone is not waited for. When it comes back it does its part, which holds up nobody, and where
// its addresses were given to others it says so.
func TestMendWithoutOne(t *testing.T) {
	r, a, b := twoHosts(t, 0)
	b.kill()
	r.back(false)
	a.distrusts()
	if report := a.mend(ipam.MendOptions{}); !slices.Equal(report.Missing, []string{"b"}) {
		t.Fatalf("%+v", report)
	}
	if _, err := a.Mend(t.Context(), ipam.MendOptions{Gone: []string{"z"}}); err == nil ||
		!strings.Contains(err.Error(), "there are a, b") {
		t.Error(err)
	}
	if report := a.mend(ipam.MendOptions{Gone: []string{"b"}}); len(report.Missing) > 0 {
		t.Fatalf("%+v", report)
	}
	a.ready()
	var taken netip.Addr // one that b's container has
	for i := range 220 {
		if addr := a.mustRun(200 + i); b2(r, "b", addr.String()) {
			taken = addr
			break
		}
	}
	if !taken.IsValid() {
		t.Fatal("a was given none of b's addresses")
	}
	b.start()
	b.distrusts()
	report := b.mend(ipam.MendOptions{})
	if len(report.Missing) > 0 || len(report.Collisions) != 1 {
		t.Fatalf("%+v", report)
	}
	c := report.Collisions[0]
	if c.Address != taken || !c.Seen || c.Kept != "b" || !strings.Contains(c.Here, "host b") ||
		!strings.Contains(c.There, "host a") {
		t.Errorf("%+v", c)
	}
	b.ready()
	a.mustRun(400) // it was not held up
	delete(a.runs, taken)
	r.holdsWhatRuns(b)
}

// Two hosts that both run an address: the first one to say so keeps it, and the second one is told.
func TestMendDoubled(t *testing.T) {
	r, a, b := twoHosts(t, 0)
	a.kill()
	b.kill()
	r.back(false)
	// A host that knew nothing of what is lost gives addresses before the others are there.
	for addr := range a.runs {
		b.runs[addr] = testMAC(500) // what the engine says, however that came
		break
	}
	a.start()
	b.start()
	a.distrusts()
	b.distrusts()
	a.mend(ipam.MendOptions{})
	report := b.mend(ipam.MendOptions{})
	if len(report.Collisions) != 1 || report.Collisions[0].Kept != "a" || !report.Collisions[0].Seen {
		t.Fatalf("%+v", report)
	}
	delete(b.runs, report.Collisions[0].Address)
	b.ready()
	r.holdsWhatRuns(b)
}

// Accepting puts nothing back but what runs.
func TestAccept(t *testing.T) {
	r, a, b := twoHosts(t, 4)
	for _, h := range []*backHost{a, b} {
		ended := 0 // that the engine's word is not all that is remembered
		for addr := range h.runs {
			if ended++; ended > 5 {
				delete(h.runs, addr)
			}
		}
	}
	r.back(false)
	a.distrusts()
	b.distrusts()
	if report := a.mend(ipam.MendOptions{Accept: true}); report.Running != 5 || report.Leases+report.Networks+
		report.Reserved+report.Headroom > 0 || !slices.Equal(report.Missing, []string{"b"}) {
		t.Fatalf("%+v", report)
	}
	b.mend(ipam.MendOptions{Accept: true})
	a.ready()
	b.ready()
	r.holdsWhatRuns(a)
	svc, _ := a.Shared.service()
	if n, err := svc.Network(t.Context(), "other"); err == nil {
		t.Errorf("the network that was made since is there: %+v", n)
	}
}

// A host whose own state is lost remembers nothing, and says so; what runs on a Docker network that the store knows is
// held all the same.
func TestMendKnowingNothing(t *testing.T) {
	r, a, b := twoHosts(t, 0)
	b.kill()
	for _, n := range []string{"head", "all"} {
		if err := b.own.Update(t.Context(), func(tx store.Tx) error {
			_, err := ledger.DeleteWhile(tx, ledger.KindRange(recallKeys), func(store.Record) bool { return true })
			return err
		}); err != nil {
			t.Fatal(n, err)
		}
	}
	r.back(false)
	a.distrusts()
	a.mend(ipam.MendOptions{})
	b.start()
	b.comes("it is there", func() bool { svc, _ := b.Shared.service(); return svc != nil })
	report := b.mend(ipam.MendOptions{})
	if report.Remembers && report.Leases > 0 || report.Running != len(b.runs) {
		t.Fatalf("%+v, and %d run", report, len(b.runs))
	}
	b.ready()
	r.holdsWhatRuns(b)

	knows := &mender{s: &service.Service{Ledger: ledger.New(ledger.Config{Host: "x"})}}
	if knows.mem != nil || len(sightings(knows.view)) > 0 {
		t.Error("it knows something")
	}
}

// What a host remembers is its own, and the plan: nothing of what others hold, and nothing that has ended.
func TestRecall(t *testing.T) {
	_, a, b := twoHosts(t, 2)
	a.comes("its headroom is there",
		func() bool { st := a.State().Headroom; return len(st) == 1 && st[0].Claimed == 2 })
	a.remembered()
	mem, err := readRecalled(t.Context(), a.own)
	if err != nil || mem == nil {
		t.Fatal(mem, err)
	}
	own, headroom := 0, 0
	for _, leases := range mem.leases {
		for addr, l := range leases {
			switch {
			case l.Kind == ipam.Headroom:
				headroom++
			case l.Host == "a" && l.Attachment != (ipam.ID{}):
				own++
				if _, runs := a.runs[addr]; !runs || l.ID > mem.head.Last {
					t.Errorf("%s is remembered: %+v", addr, l)
				}
			case l.Host == "b" && l.Attachment != (ipam.ID{}) && l.Held():
				t.Errorf("%s of host b is remembered", addr)
			}
		}
	}
	if own != len(a.runs) || headroom != 2 || len(mem.attachments) != 1 || len(mem.networks) != 2 ||
		len(mem.hosts) != 2 {
		t.Errorf("%d own, %d of headroom, %d holds, %d networks, %d hosts", own, headroom, len(mem.attachments),
			len(mem.networks), len(mem.hosts))
	}
	if counts := mem.head.Trace.Counts; counts[a.id.String()] == 0 || counts[b.id.String()] == 0 ||
		mem.head.Trace.Place == 0 {
		t.Errorf("%+v", mem.head)
	}
}

// Whatever two hosts do before and after a snapshot, and however etcd goes back under them: what runs is never given to
// another, and belongs to whom it runs with after both have mended.
func TestMendKeepsWhatRuns(t *testing.T) {
	t.Parallel()
	for round := range *mendRounds {
		rng := rand.New(rand.NewPCG(uint64(round), 13))
		t.Run(fmt.Sprint(round), func(t *testing.T) {
			t.Parallel()
			keepsWhatRuns(t, rng)
		})
	}
}

func keepsWhatRuns(t *testing.T, rng *rand.Rand) {
	r := newBackRig(t, t)
	t.Cleanup(r.end)
	hosts := []*backHost{r.host("a"), r.host("b")}
	hosts[0].ready()
	if _, err := hosts[0].Edit(t.Context(), ipam.EditOptions{}, lanWith(rng.IntN(5), lanCIDR)); err != nil {
		t.Fatal(err)
	}
	mac := 1
	act := func(n int) {
		for range n {
			h := hosts[rng.IntN(2)]
			if addrs := allocator.SortedAddrs(h.runs); len(addrs) > 0 && rng.IntN(3) == 0 {
				h.end(addrs[rng.IntN(len(addrs))])
				continue
			}
			mac++
			h.mustRun(mac)
		}
	}
	for _, h := range hosts {
		h.attach()
	}
	act(rng.IntN(20))
	r.save()
	for _, h := range hosts {
		h.remembered()
	}
	for _, h := range hosts { // so that each has something to lose
		mac++
		h.mustRun(mac)
	}
	act(rng.IntN(40))
	for _, h := range hosts {
		h.remembered()
	}
	act(rng.IntN(10)) // which the engine knows, and perhaps nobody else
	live := map[*backHost]bool{}
	for _, h := range hosts {
		if live[h] = rng.IntN(2) == 0; !live[h] {
			h.kill()
		}
	}
	r.back(rng.IntN(4) == 0)
	for _, h := range hosts {
		if !live[h] {
			h.start()
		}
		h.distrusts()
	}
	first := rng.IntN(2)
	for _, at := range []int{first, 1 - first} {
		h := hosts[at]
		if addr, err := h.run(mac + 1000); err == nil {
			t.Fatalf("%s was given before all had mended", addr)
		}
		for _, c := range h.mend(ipam.MendOptions{}).Collisions {
			t.Errorf("%+v", c)
		}
	}
	for _, h := range hosts {
		h.ready()
	}
	r.holdsWhatRuns(hosts[0])
	for i := range 60 {
		at := i % 2
		addr, err := hosts[at].run(mac + 2000 + i)
		fine(t, err)
		if b2(r, hosts[1-at].name, addr.String()) {
			t.Fatalf("%s runs on another host, and was given", addr)
		}
	}
	r.holdsWhatRuns(hosts[1])
}
