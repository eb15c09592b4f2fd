package elastic_test

import (
	"net/netip"
	"testing"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

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
