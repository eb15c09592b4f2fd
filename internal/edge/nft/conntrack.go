package nft

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"berth/internal/edge"

	"golang.org/x/sys/unix"
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

// walk is how many connections are written down in the time in which the kernel walks through its table once.
const walk = 10_000

// of are those of a family.
func (t *touched) of(family byte) (all []netip.Addr) {
	for a := range *t {
		if a.Is4() == (family == unix.AF_INET) {
			all = append(all, a)
		}
	}
	return all
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

// of: the connection is to be forgotten.
func (c contradiction) of(one *connection) bool {
	if c.asked(one.to) {
		target := one.to // nobody's: it goes on to where the address is now
		if c.inbound[one.to] {
			target = c.guestOf[one.to]
		}
		if one.answeredBy != target {
			return true
		}
	}
	if !c.asked(one.answeredTo) || one.from == one.answeredTo {
		return false // or the elastic address is the source itself: this host's own, or a client elsewhere
	}
	return one.from != c.guestOf[one.answeredTo]
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
	k, err := openTracked()
	if err != nil {
		return err
	}
	for _, family := range []byte{unix.AF_INET, unix.AF_INET6} {
		n, failed := c.forget(k, family)
		p.forgotten.Add(int64(n))
		err = errors.Join(err, failed)
	}
	err = errors.Join(err, k.close())
	if err != nil {
		return fmt.Errorf("cannot end connections of changed mappings: %w", err)
	}
	return nil
}

// forget forgets those of a family, and counts them.
func (c contradiction) forget(k tracked, family byte) (n int, err error) {
	all, err := c.candidates(k, family)
	if err != nil {
		return 0, err
	}
	for i := range all {
		if !c.of(&all[i]) {
			continue
		}
		there, err := k.forget(family, &all[i])
		if err != nil {
			return n, err
		}
		if there {
			n++
		}
	}
	return n, nil
}

// candidates are the connections of a family that can be contradictions; some may be there twice.
func (c contradiction) candidates(k tracked, family byte) (all []connection, err error) {
	if c.touched == nil {
		return k.list(family, 0, netip.Addr{})
	}
	some, directions := c.touched.of(family), []uint16{attrOriginal, attrReply}
	if len(some) == 0 {
		return nil, nil
	}
	if more := len(some)*len(directions) - 1; more*walk >= connectionCount() { // a walk for each of them takes longer
		return k.list(family, 0, netip.Addr{})
	}
	for _, a := range some {
		for _, direction := range directions {
			more, err := k.list(family, direction, a)
			if err != nil {
				return nil, err
			}
			all = append(all, more...)
		}
	}
	return all, nil
}

// everyRange are the ranges that are set, and those that the kernel still knew at the last look.
func (p *Provider) everyRange() []edge.Range {
	return mergeRanges(p.state.Ranges, p.former)
}
