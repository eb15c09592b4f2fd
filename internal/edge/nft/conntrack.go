package nft

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"berth/internal/edge"

	"github.com/vishvananda/netlink"
	"sigs.k8s.io/knftables"
)

// touched are the elastic addresses whose connections are to be looked at; nil are all that are or were in a range.
type touched map[netip.Addr]bool

// touchedBy is whom a change of contents is about.
func touchedBy(d delta) *touched {
	all := touched{}
	for _, family := range []knftables.Family{knftables.IPv4Family, knftables.IPv6Family} {
		in, out := d[place{family, mapIn}], d[place{family, mapOut}]
		for _, changed := range []elements{in.remove, in.add} {
			for elastic := range changed {
				all[addrOf(elastic)] = true
			}
		}
		for _, changed := range []elements{out.remove, out.add} {
			for _, elastic := range changed {
				all[addrOf(elastic)] = true
			}
		}
	}
	return &all
}

// has: there is one of the family, or no telling.
func (t *touched) has(family netlink.InetFamily) bool {
	if t == nil {
		return true
	}
	for a := range *t {
		if a.Is4() == (family == netlink.FAMILY_V4) {
			return true
		}
	}
	return false
}

// contradiction finds connections that were decided when their elastic address had another guest, or none.
type contradiction struct {
	touched *touched
	ranges  []edge.Range
	guestOf map[netip.Addr]netip.Addr // whose outgoing connections carry the elastic address
	inbound map[netip.Addr]bool
}

func contradictionOf(s edge.State, t *touched) contradiction {
	c := contradiction{
		touched: t, ranges: s.Ranges,
		guestOf: map[netip.Addr]netip.Addr{}, inbound: map[netip.Addr]bool{},
	}
	for _, m := range s.Mappings {
		if t != nil && !(*t)[m.Elastic] {
			continue
		}
		c.guestOf[m.Elastic] = m.Guest
		c.inbound[m.Elastic] = m.Inbound()
	}
	return c
}

func (c contradiction) asked(a netip.Addr) bool {
	if c.touched != nil {
		return (*c.touched)[a]
	}
	_, found := edge.Find(c.ranges, a)
	return found
}

// MatchConntrackFlow is netlink.CustomConntrackFilter's: the connection is to be forgotten.
func (c contradiction) MatchConntrackFlow(f *netlink.ConntrackFlow) bool {
	to, answeredBy := address(f.Forward.DstIP), address(f.Reverse.SrcIP)
	if c.asked(to) {
		target := to // nobody's: it goes on to where the address is now
		if c.inbound[to] {
			target = c.guestOf[to]
		}
		if answeredBy != target {
			return true
		}
	}
	from, answeredTo := address(f.Forward.SrcIP), address(f.Reverse.DstIP)
	if !c.asked(answeredTo) || from == answeredTo {
		return false // or the elastic address is the source itself: this host's own, or a client elsewhere
	}
	return from != c.guestOf[answeredTo]
}

func address(ip net.IP) netip.Addr {
	a, _ := netip.AddrFromSlice(ip)
	return a.Unmap()
}

// forget makes the kernel decide anew about connections that contradict the state, and about no other.
func (p *Provider) forget(t *touched) error {
	c := contradictionOf(*p.state, t)
	if t == nil {
		c.ranges = p.everyRange()
	}
	for _, family := range []netlink.InetFamily{netlink.FAMILY_V4, netlink.FAMILY_V6} {
		if !t.has(family) {
			continue
		}
		n, err := netlink.ConntrackDeleteFilters(netlink.ConntrackTable, family, c)
		if errors.Is(err, netlink.ErrDumpInterrupted) { // it was changed while it was read: the rest in a second look
			var more uint
			more, err = netlink.ConntrackDeleteFilters(netlink.ConntrackTable, family, c)
			n += more
		}
		p.forgotten.Add(int64(n))
		if err != nil && !errors.Is(err, netlink.ErrDumpInterrupted) {
			return fmt.Errorf("cannot end connections of changed mappings: %w", err)
		}
	}
	return nil
}

// everyRange are the ranges that are set, and those that the kernel still knew at the last look.
func (p *Provider) everyRange() []edge.Range {
	return mergeRanges(p.state.Ranges, p.former)
}
