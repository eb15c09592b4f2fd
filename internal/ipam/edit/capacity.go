package edit

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// needed notes what became of a wish that needs an address. A shortage is no error until the request has been gone
// through.
func (p *Plan) needed(owner string, w ipam.Wish, addr netip.Addr, err error) (netip.Addr, error) {
	var short *ledger.Shortage
	if err != nil && !errors.As(err, &short) {
		return netip.Addr{}, err
	}
	had := &p.Edit.Capacity
	if short != nil && had.Short == nil {
		had.Short, had.Edit = short, p.Edit.At
	}
	had.Needs = append(had.Needs, ledger.Need{Network: p.N.ID, Owner: owner, Wish: w, Addr: addr})
	return addr, nil
}

// refusal is that of a request which has too little: of the addresses where the first shortage was. Others are
// counted to it that look for theirs in the same place.
func refusal(c *ledger.Capacity) error {
	s := c.Short
	free := 0
	var without []ledger.Need
	for _, n := range c.Needs {
		switch {
		case n.Network != s.Network:
		case !n.Addr.IsValid():
			if same(s, n.Wish) {
				without = append(without, n)
			}
		case slices.ContainsFunc(s.Open, func(p ledger.OpenPool) bool { return p.Contains(n.Addr) }):
			free++
		}
	}
	if len(without) == 1 && free == 0 {
		return ipam.Help(s.Refusal, s.Helps()...)
	}
	return ipam.Help(ipam.RefuseAs(ipam.NotEnoughCapacity, ipam.ErrExhausted,
		"too few addresses are free in %s (%d wanted, %d free), so "+
			"that nothing is given for %s: with the rest of this request %s",
		s.Where, len(without)+free, free, whose(without), s.Full), ipam.Advise(ipam.DoEnlargePools))
}

// same tells whether a wish looks for its address in the same place, or in one that is a part of it.
func same(s *ledger.Shortage, w ipam.Wish) bool {
	overlaps := func(a, b string) bool { return a == b || a == "" || b == "" }
	return overlaps(s.Wish.Pool, w.Pool) && overlaps(s.Wish.Subnet, w.Subnet) &&
		(s.Wish.Family == w.Family || s.Wish.Family == 0 || w.Family == 0)
}

// whose names those who go without, each once, and which addresses where they want several; at most eight of them.
func whose(without []ledger.Need) string {
	const shown = 8
	slots := map[string][]string{}
	var owners []string
	for _, n := range without {
		if slots[n.Owner] == nil {
			owners = append(owners, n.Owner)
		}
		slots[n.Owner] = append(slots[n.Owner], fmt.Sprintf("ip%d", n.Wish.Slot))
	}
	names := make([]string, 0, shown)
	for _, owner := range owners[:min(len(owners), shown)] {
		if own := slots[owner]; len(own) > 1 || own[0] != "ip0" {
			owner += " (" + strings.Join(own, ", ") + ")"
		}
		names = append(names, owner)
	}
	text := strings.Join(names, ", ")
	if more := len(owners) - shown; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
