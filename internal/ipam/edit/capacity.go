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

// capacity collects what all edits of one request need from pools, in addition to existing reservations. A
// refusal must report the total need, the free addresses, and who gets none. So the request continues after a wish that
// finds no address, and is refused at its end. Nothing is committed then.
type capacity struct {
	needs []need
	short []*shortage // in order; none: there was enough
}

// need is an address that a request wants and its owner does not have.
type need struct {
	Network ipam.ID
	Owner   string
	Wish    ipam.Wish
	Addr    netip.Addr // zero: nothing was free
}

// shortage is the refusal of one wish for which no pool has an address.
type shortage struct {
	error   // the refusal if nothing else is wanted
	Wish    ipam.Wish
	Network ipam.ID
	Where   string
	Open    []ledger.OpenPool // the pools in which the wish looks
	Full    string            // how those are used
	Edit    int               // the index of its edit in the request
}

func (s *shortage) Unwrap() error { return s.error }

// needed records the result of a wish that needs an address. A shortage is no error until the end of the request.
func (p *Plan) needed(owner string, w ipam.Wish, addr netip.Addr, err error) error {
	var short *shortage
	if err != nil && !errors.As(err, &short) {
		return err
	}
	had := &p.run.capacity
	if short != nil {
		short.Edit = p.run.at
		had.short = append(had.short, short)
	}
	had.needs = append(had.needs, need{Network: p.N.ID, Owner: owner, Wish: w, Addr: addr})
	return nil
}

// refusedEdit is the refusal of one edit of a request.
type refusedEdit struct {
	edit int
	err  error
}

// refusals returns one refusal for each distinct shortage of a request. A shortage that looks in the same place as an
// earlier one is counted with that.
func refusals(c *capacity) (all []refusedEdit) {
	var told []*shortage
	for _, s := range c.short {
		counted := slices.ContainsFunc(told, func(o *shortage) bool { return o.Network == s.Network && same(o, s.Wish) })
		if !counted {
			told = append(told, s)
			all = append(all, refusedEdit{s.Edit, refusal(c, s)})
		}
	}
	return all
}

// refusal returns the refusal for one shortage, with the counts of the whole request.
func refusal(c *capacity, s *shortage) error {
	free := 0
	var without []need
	for _, n := range c.needs {
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
		return s.error
	}
	return ipam.RefuseAs(ipam.NotEnoughCapacity, ipam.ErrExhausted, "too few addresses are free in %s (%d wanted, %d "+
		"free), so none is left for %s: with the rest of this request, %s", s.Where, len(without)+free, free,
		whose(without), s.Full).Advise(ipam.DoEnlargePools)
}

// same reports whether a wish looks in the same place as the shortage, or in an overlapping one.
func same(s *shortage, w ipam.Wish) bool {
	overlaps := func(a, b string) bool { return a == b || a == "" || b == "" }
	return overlaps(s.Wish.Pool, w.Pool) && overlaps(s.Wish.Subnet, w.Subnet) &&
		(s.Wish.Family == w.Family || s.Wish.Family == 0 || w.Family == 0)
}

// whose names the owners without an address, each once, with their slots if needed. It names at most eight.
func whose(without []need) string {
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
