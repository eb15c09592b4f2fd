package elastic_test

import (
	"net/netip"
	"testing"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// TestStaged: what goes out of a reserved guest is mapped before its container starts, what comes in only while it
// runs; a stop keeps the association (CS-8).
func TestStaged(t *testing.T) {
	b := begin(t)
	b.reserve("web", "10.20.0.9")
	b.edit(&ipam.AssociateElastic{Address: addr(elastic), Instance: "web"})
	id := b.wanted().Set[0].Association
	want := ipam.EdgeMapping{Elastic: addr(elastic), Guest: addr("10.20.0.9"), Subnet: netip.MustParsePrefix(lan),
		Staged: true, Association: id}
	if got := b.wanted(); len(got.Set) != 1 || got.Set[0] != want || len(got.Ranges) != 1 {
		t.Errorf("before the start an edge is told %+v", got)
	}
	ip := b.start("web")
	want.Staged = false
	if got := b.wanted().Set; len(got) != 1 || got[0] != want {
		t.Errorf("while it runs an edge is told %+v", got)
	}
	b.stop(ip)
	want.Staged = true
	if got := b.wanted().Set; len(got) != 1 || got[0] != want {
		t.Errorf("after its stop an edge is told %+v", got)
	}
	if _, err := b.RequestAddress(t.Context(), ipam.AddressRequest{Pool: b.pool,
		MAC: ipam.MAC{2, 0, 0, 0, 0, 9}, Preferred: addr("10.20.0.9")}); err != nil {
		t.Fatal(err)
	}
	if got := b.wanted().Set; len(got) != 1 || got[0].Staged {
		t.Errorf("one without a name may be the owner, and an edge is told %+v", got)
	}
}

// TestUnreserved: a container without a reservation is mapped while it runs, wherever it gets its address, and both ways
// (Incus #1965: inbound only at first, #3833: only for static addresses).
func TestUnreserved(t *testing.T) {
	b := begin(t)
	b.refused(&ipam.AssociateElastic{Address: addr(elastic), Instance: "job"}, ipam.GuestUnclear, "job", "IPv4")
	ip := b.start("job")
	b.edit(&ipam.AssociateElastic{Address: addr(elastic), Instance: "job"})
	bothWays := func(when string, guest netip.Addr) {
		t.Helper()
		if got := b.wanted().Set; len(got) != 1 || got[0].Guest != guest || got[0].Staged || got[0].EgressOnly {
			t.Errorf("%s an edge is told %+v", when, got)
		}
	}
	bothWays("at first", ip)
	b.stop(ip)
	if got := b.wanted().Set; len(got) != 0 {
		t.Errorf("of one that does not run an edge is told %+v", got)
	}
	b.edit(&ipam.TakeAddress{Network: "net1", Owner: "printer", Interface: ipam.Interface{
		Wishes: []ipam.Wish{{Address: ip}}}})
	if other := b.start("job"); other == ip {
		t.Fatal("it has its address again, which the printer has")
	} else {
		bothWays("at its new address", other)
	}
	if got := b.show(elastic); !got.Associated || got.Instance != "job" || got.Host != "h1" {
		t.Errorf("it is shown as %+v", got)
	}
}

// TestReleasing: an address is free at once where no edge has mapped it, else as soon as that has said so, and can be
// asked for meanwhile by its account. Nothing is stuck.
func TestReleasing(t *testing.T) {
	b := begin(t)
	b.reserve("web", "10.20.0.9")
	b.edit(&ipam.AssociateElastic{Address: addr(elastic), Instance: "web"})
	m := b.wanted().Set[0]
	applied := ipam.EdgeApplied{Address: m.Elastic, Association: m.Association, Guest: m.Guest}
	b.report(ipam.EdgeReport{Whole: true, Applied: []ipam.EdgeApplied{applied}})
	if got := b.show(elastic).Applied; got == nil || got.Host != "h1" || got.Error != "" || got.Since.IsZero() {
		t.Errorf("it is mapped, and shown as %+v", got)
	}
	since := b.show(elastic).Applied.Since
	b.report(ipam.EdgeReport{Applied: []ipam.EdgeApplied{applied}})
	if got := b.show(elastic).Applied.Since; !got.Equal(since) {
		t.Errorf("said again, it is mapped since %s and not since %s", got, since)
	}
	b.refused(&ipam.ReleaseElastic{Address: addr(elastic)}, ipam.AddressAssociated, "web", "10.20.0.9", "h1")
	b.edit(&ipam.DisassociateElastic{Address: addr(elastic)})
	b.edit(&ipam.ReleaseElastic{Address: addr(elastic)})
	b.again(false)
	if got := b.show(elastic); got.State != ipam.ElasticReleasing || got.Account != ipam.DefaultAccount {
		t.Errorf("it is shown as %+v", got)
	}
	b.edit(&ipam.CreateAccount{Account: "shop"})
	b.refused(&ipam.AllocateElastic{Account: "shop", Address: addr(elastic)}, ipam.AddressAllocated, "default", "h1")
	b.refused(&ipam.AssociateElastic{Address: addr(elastic), Instance: "web"}, ipam.AddressNotAllocated)
	b.edit(&ipam.ReleaseElastic{Address: addr(elastic)})
	b.edit(&ipam.DisassociateElastic{Address: addr(elastic)})
	b.edit(&ipam.AllocateElastic{Address: addr(elastic)})
	if got := b.show(elastic).State; got != ipam.ElasticAllocated {
		t.Errorf("asked for by its account it is %s", got)
	}
	b.edit(&ipam.ReleaseElastic{Address: addr(elastic)})
	b.report(ipam.EdgeReport{Whole: true})
	if got := b.show(elastic).State; got != ipam.ElasticFree {
		t.Errorf("no edge maps it, and it is %s", got)
	}
	b.edit(&ipam.ReleaseElastic{Address: addr(next)})
	if got := b.show(next).State; got != ipam.ElasticFree {
		t.Errorf("it was never mapped, and is %s", got)
	}
}

// TestFailed: what an edge cannot map is told with the reason, and that a new association is not the old one's.
func TestFailed(t *testing.T) {
	b := begin(t)
	b.reserve("web", "10.20.0.9")
	b.edit(&ipam.AssociateElastic{Address: addr(elastic), Instance: "web"})
	m := b.wanted().Set[0]
	b.report(ipam.EdgeReport{Applied: []ipam.EdgeApplied{{Address: m.Elastic, Association: m.Association,
		Guest: m.Guest, Error: "no such device"}}})
	if got := b.show(elastic).Applied; got == nil || got.Error != "no such device" {
		t.Errorf("it is shown as %+v", got)
	}
	b.edit(&ipam.AssociateElastic{Address: addr(elastic), Instance: "web", EgressOnly: true})
	if got := b.show(elastic); got.Applied != nil || !got.EgressOnly {
		t.Errorf("what was said of the association before is shown of the new one: %+v", got)
	}
}

// TestPublishes: a container with published ports is refused, naming them (CS-13).
func TestPublishes(t *testing.T) {
	b := begin(t)
	b.reserve("shop/web/1", "10.20.0.9")
	b.published["shop-web-1"] = []string{"8080/tcp"}
	b.refused(&ipam.AssociateElastic{Address: addr(elastic), Instance: "shop/web/1"}, ipam.PublishesPorts, "shop-web-1",
		"8080/tcp")
	delete(b.published, "shop-web-1")
	b.published["other"] = []string{"8080/tcp"}
	b.edit(&ipam.AssociateElastic{Address: addr(elastic), Instance: "shop/web/1"})
}

// TestUnsuited: what goes past the host's own network cannot be mapped (CS-16).
func TestUnsuited(t *testing.T) {
	b := begin(t)
	b.reserve("web", "10.20.0.9")
	b.driver = "macvlan"
	b.refused(&ipam.AssociateElastic{Address: addr(elastic), Instance: "web"}, ipam.NetworkUnsuited, "macvlan")
	b.driver = "bridge"
	b.edit(&ipam.AssociateElastic{Address: addr(elastic), Instance: "web"})
}

// TestOfOtherAccounts: the pattern that says most claims a container, and by a MAC nobody gets around it (CS-14).
func TestOfOtherAccounts(t *testing.T) {
	b := begin(t)
	b.edit(&ipam.CreateAccount{Account: "shop", Owners: []string{"shop/*"}})
	b.edit(&ipam.CreateAccount{Account: "db", Owners: []string{"shop/db/*"}})
	b.reserve("shop/db/1", "10.20.0.9")
	b.refused(&ipam.AssociateElastic{Address: addr(elastic), Instance: "shop/db/1"}, ipam.OtherAccount, "default", "db")
	b.edit(&ipam.AllocateElastic{Account: "db"})
	b.edit(&ipam.AssociateElastic{Address: addr("203.0.113.12"), Instance: "shop/db/1"})
	b.edit(&ipam.DisassociateElastic{Address: addr("203.0.113.12")})
	b.refused(&ipam.AssociateElastic{Address: addr(elastic), Instance: "shop-db-1"}, ipam.OtherAccount)

	mac := ipam.MAC{2, 0, 0, 0, 0, 7}
	b.reserve(mac.String(), "10.20.0.30")
	b.edit(&ipam.AssociateElastic{Address: addr(elastic), Instance: mac.String()})
	if _, err := b.RequestAddress(t.Context(), ipam.AddressRequest{Pool: b.pool, Name: "shop-cart-1",
		MAC: mac}); err != nil {
		t.Fatal(err)
	}
	if got := b.wanted().Set; len(got) != 0 {
		t.Errorf("the container that runs is another account's, and an edge is told %+v", got)
	}
}

// TestEnds: an association ends with its owner, also when that one's time is over, and the address stays with its
// account (CS-8).
func TestEnds(t *testing.T) {
	b := begin(t)
	b.reserve("web", "10.20.0.9")
	b.edit(&ipam.AssociateElastic{Address: addr(elastic), Instance: "web"})
	b.edit(&ipam.ReleaseOwner{Owner: "web"})
	if got := b.show(elastic); got.Associated || got.State != ipam.ElasticAllocated {
		t.Errorf("its owner has ended, and it is shown as %+v", got)
	}
	b.reserve("web", "10.20.0.9")
	b.edit(&ipam.AssociateElastic{Address: addr(elastic), Instance: "web"})
	b.edit(&ipam.RemoveReservation{Network: "net1", Owner: "web"})
	if got := b.show(elastic); !got.Associated {
		t.Error("its owner has no reservation any more, and has not ended")
	}
	b.refused(&ipam.RemoveNetwork{Network: "net1"}, "")
}

// TestDryRun changes nothing.
func TestDryRun(t *testing.T) {
	b := begin(t)
	b.reserve("web", "10.20.0.9")
	e := &ipam.AssociateElastic{Address: addr(elastic), Instance: "web"}
	if out, err := b.Edit(t.Context(), ipam.EditOptions{DryRun: true}, e); err != nil || len(out.Changes) != 1 {
		t.Fatalf("a dry run comes to %+v, %v", out, err)
	}
	b.consistent()
	if b.show(elastic).Associated {
		t.Error("a dry run has associated it")
	}
}

// TestOff: turned off, an edge is told to map nothing, and what there is lasts (CS-11).
func TestOff(t *testing.T) {
	b := begin(t)
	b.reserve("web", "10.20.0.9")
	b.edit(&ipam.AssociateElastic{Address: addr(elastic), Instance: "web"})
	b.again(true)
	if got := b.wanted(); len(got.Set) != 0 || len(got.Ranges) != 0 || !got.Whole {
		t.Errorf("an edge is told %+v", got)
	}
	b.refused(&ipam.DisassociateElastic{Address: addr(elastic)}, ipam.ElasticTurnedOff)
	b.again(false)
	if got := b.wanted().Set; len(got) != 1 {
		t.Errorf("turned on again, an edge is told %+v", got)
	}
}

// mappedWeb associates an address with a guest, and has the edge say what became of that.
func (b *bench) mappedWeb(failed string) {
	b.t.Helper()
	b.reserve("web", "10.20.0.9")
	b.edit(&ipam.AssociateElastic{Address: addr(elastic), Instance: "web"})
	b.said(failed)
}

// said has the edge say of all that it is told that it has applied it, or has failed.
func (b *bench) said(failed string) {
	b.t.Helper()
	report := ipam.EdgeReport{Whole: true}
	for _, m := range b.wanted().Set {
		report.Applied = append(report.Applied, ipam.EdgeApplied{Address: m.Elastic, Association: m.Association,
			Guest: m.Guest, Error: failed})
	}
	b.report(report)
}

func (b *bench) giveBack() ipam.ElasticState {
	b.t.Helper()
	b.edit(&ipam.DisassociateElastic{Address: addr(elastic)})
	b.edit(&ipam.ReleaseElastic{Address: addr(elastic)})
	return b.show(elastic).State
}

// TestNeverApplied: an address that the edge could not map is free as soon as it is released; one that it mapped before
// it failed is not.
func TestNeverApplied(t *testing.T) {
	b := begin(t)
	b.mappedWeb("no such device")
	if got := b.giveBack(); got != ipam.ElasticFree {
		t.Errorf("it was never mapped, and is %s", got)
	}
	b.edit(&ipam.AllocateElastic{Address: addr(elastic)})
	b.edit(&ipam.AssociateElastic{Address: addr(elastic), Instance: "web"})
	b.said("")
	b.edit(&ipam.AssociateElastic{Address: addr(elastic), Instance: "web", EgressOnly: true})
	b.said("no such device")
	if got := b.giveBack(); got != ipam.ElasticReleasing {
		t.Errorf("it was mapped before the edge failed, and is %s", got)
	}
	b.report(ipam.EdgeReport{Whole: true})
	if got := b.show(elastic).State; got != ipam.ElasticFree {
		t.Errorf("no edge maps it, and it is %s", got)
	}
}

// TestRenamedHost: a store of one host waits for no edge of the name that this had before, and knows its containers
// (CloudStack #5824: an address that is being released for ever).
func TestRenamedHost(t *testing.T) {
	b := begin(t)
	b.mappedWeb("")
	ip := b.start("web")
	if got := b.giveBack(); got != ipam.ElasticReleasing {
		t.Fatalf("it is %s", got)
	}
	b.edit(&ipam.AssociateElastic{Address: addr(next), Instance: "web"})
	b.host = "h2"
	b.again(false)
	if got := b.show(elastic).State; got != ipam.ElasticFree {
		t.Errorf("under another name of its host it is %s", got)
	}
	if got := b.wanted().Set; len(got) != 1 || got[0].Guest != ip || got[0].Staged {
		t.Errorf("under another name the edge is told %+v", got)
	}
	if got := b.show(next).Host; got != "h2" {
		t.Errorf("it is shown at host %s", got)
	}
	b.consistent()
}

// TestOverNoSubnet: an elastic range lies over no subnet, and a subnet is planned over no elastic range, be it asked
// for by a person, by the engine, or carved out of a base.
func TestOverNoSubnet(t *testing.T) {
	b := begin(t)
	over := func(text string) ipam.Edit {
		var r ipam.Range
		if err := r.UnmarshalText([]byte(text)); err != nil {
			t.Fatal(err)
		}
		return &ipam.AddElasticRange{Range: r}
	}
	b.refused(over("10.20.0.128/25"), ipam.ElasticRangeOverlaps, lan, "net1")
	b.edit(over("10.50.0.0/25"))
	prefix := netip.MustParsePrefix("10.50.0.0/24")
	b.refused(&ipam.AddSubnet{Network: "net1", SubnetSpec: ipam.SubnetSpec{CIDR: prefix}}, ipam.ElasticRangeOverlaps,
		"10.50.0.0")
	_, err := b.RequestPool(t.Context(), ipam.PoolRequest{Space: ipam.LocalSpace, CIDR: prefix})
	if ipam.CodeOf(err) != ipam.ElasticRangeOverlaps {
		t.Errorf("the engine is given a subnet over an elastic range: %v", err)
	}
	out := b.edit(&ipam.AddSubnet{Network: "net1", SubnetSpec: ipam.SubnetSpec{Bits: 25, From: prefix}})
	if got := out.Results[0].CIDR; got != netip.MustParsePrefix("10.50.0.128/25") {
		t.Errorf("%s is carved beside the elastic range", got)
	}
}

// TestStaysSuited: a network with elastic addresses is not linked past the host's own network (CS-16).
func TestStaysSuited(t *testing.T) {
	b := begin(t)
	link := &ipam.ModifyNetwork{Network: "net1", Links: []ipam.Link{{Host: "h1", Mode: "macvlan", Link: "eth0"}}}
	b.refused(link, ipam.NetworkUnsuited, "net1", "macvlan", "h1")
	off := "off"
	b.edit(&ipam.ModifyNetwork{Network: "net1", Elastic: &off})
	b.edit(link)
}

// TestFsck: what contradicts itself among records of elastic addresses is told.
func TestFsck(t *testing.T) {
	b := begin(t)
	b.reserve("web", "10.20.0.9")
	b.edit(&ipam.AssociateElastic{Address: addr(elastic), Instance: "web"})
	if wrong, err := b.Check(t.Context()); err != nil || len(wrong) != 0 {
		t.Fatalf("what is right is found wrong: %q %v", wrong, err)
	}
	for name, spoil := range map[string]func(e *ipam.Elastic) netip.Addr{
		"an account that is not there": func(e *ipam.Elastic) netip.Addr { e.Account = "nobody"; return e.Address },
		"a network that is not there":  func(e *ipam.Elastic) netip.Addr { e.Association.Network = ipam.ID{1}; return e.Address },
		"no range":                     func(e *ipam.Elastic) netip.Addr { e.Address = addr("192.0.2.1"); return e.Address },
		"another's guest":              func(e *ipam.Elastic) netip.Addr { e.Address = addr(next); return e.Address },
		"a record of another":          func(*ipam.Elastic) netip.Addr { return addr(next) },
		"released and associated":      func(e *ipam.Elastic) netip.Addr { e.State = ipam.ElasticReleasing; return e.Address },
	} {
		err := b.Ledger.Update(t.Context(), func(c *ledger.Change) error {
			e := *c.Index().Elastic(addr(elastic))
			a := *e.Association
			e.Association = &a
			return c.SetElastic(spoil(&e), &e)
		})
		if err != nil {
			t.Fatal(err)
		}
		found, err := b.Check(t.Context())
		if err != nil || len(found) == 0 {
			t.Errorf("%s is not found (%v)", name, err)
		}
		b = begin(t)
		b.reserve("web", "10.20.0.9")
		b.edit(&ipam.AssociateElastic{Address: addr(elastic), Instance: "web"})
	}
}
