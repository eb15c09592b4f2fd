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

// touched are the elastic addresses whose connections must be checked. nil means all that are or were in a range.
type touched map[netip.Addr]bool

// touchedBy returns the addresses that a change of contents concerns.
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

// walk is the number of connections that can be listed in the time of one walk through the kernel's table.
const walk = 10_000

// of returns the addresses of a family.
func (t *touched) of(family byte) (all []netip.Addr) {
	for a := range *t {
		if a.Is4() == (family == unix.AF_INET) {
			all = append(all, a)
		}
	}
	return all
}

// contradiction finds connections from the time when their elastic address had another guest or none.
type contradiction struct {
	touched *touched
	ranges  []edge.Range
	guestOf map[netip.Addr]netip.Addr // by elastic address: the guest whose outgoing connections use it
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

// of reports whether the connection must be removed.
func (c contradiction) of(one *connection) bool {
	if c.asked(one.to) {
		target := one.to // without a guest, it goes to the address itself
		if c.inbound[one.to] {
			target = c.guestOf[one.to]
		}
		if one.answeredBy != target {
			return true
		}
	}
	if !c.asked(one.answeredTo) || one.from == one.answeredTo {
		return false // the elastic address is the source itself: this host's own connection, or a client elsewhere
	}
	return one.from != c.guestOf[one.answeredTo]
}

func address(ip net.IP) netip.Addr {
	a, _ := netip.AddrFromSlice(ip)
	return a.Unmap()
}

// forget removes connections that contradict the state, and no others. The kernel then translates them again.
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

// forget removes the contradicting connections of a family, and returns their number.
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

// candidates returns the connections of a family that can be contradictions. Some may be listed twice.
func (c contradiction) candidates(k tracked, family byte) (all []connection, err error) {
	if c.touched == nil {
		return k.list(family, 0, netip.Addr{})
	}
	some, directions := c.touched.of(family), []uint16{attrOriginal, attrReply}
	if len(some) == 0 {
		return nil, nil
	}
	if more := len(some)*len(directions) - 1; more*walk >= connectionCount() { // a walk for each takes longer
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

// everyRange returns the current ranges, and those that the kernel had at the last read.
func (p *Provider) everyRange() []edge.Range {
	return mergeRanges(p.state.Ranges, p.former)
}
