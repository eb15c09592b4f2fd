package ipam

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"berth/store"

	"go4.org/netipx"
)

// described is an index as lines that can be compared: all that it says of the records, and nothing of how it has come to say so.
func (ix *index) described() map[string]bool {
	d := description{}
	d.line("events %d", ix.events)
	for name, sp := range ix.spaces {
		d.line("space %s: %d blocks", name, sp.blocks.Len())
		for p, id := range sp.ids {
			inside, _ := sp.blocks.Overlap(p)
			d.line("space %s: subnet %s is %s (%t)", name, p, id, inside == p)
		}
	}
	for name, id := range ix.names {
		d.line("the name %s is %s", name, id)
	}
	for name, h := range ix.hosts {
		d.line("host %s: %s", name, h.raw)
	}
	for id, at := range ix.attachments {
		d.line("attachment %s: %s", id, at.raw)
	}
	for id, nx := range ix.networks {
		d.line("network %s: %s, its subnets %v", id, nx.record.raw, nx.subnets)
		for name, sub := range nx.names {
			d.line("network %s: the subnet named %s is %s", id, name, sub)
		}
	}
	for id, sx := range ix.subnets {
		if slices.Contains(ix.unread, id) {
			d.line("subnet %s: to be read", id)
			continue
		}
		d.subnet(id.String(), sx)
	}
	for what, end := range ix.ends.at {
		switch sx := what.sx; {
		case sx == nil:
			d.line("owner %s of network %s ends at %s", what.owner, what.network, end.UTC())
		case ix.subnets[sx.record.value.ID] == sx: // of one that is gone it is forgotten when it is due
			d.line("subnet %s: the reservation of %s ends at %s", sx.record.value.ID, what.addr, end.UTC())
		}
	}
	return d
}

type description map[string]bool

func (d description) line(format string, args ...any) { d[fmt.Sprintf(format, args...)] = true }

// subnet describes one of at most some hundred addresses.
func (d description) subnet(id string, sx *subnetIndex) {
	d.line("subnet %s: %s, usable %s, %d records, %d idle, %d reserved, %d memories", id, sx.record.raw, sx.usable, sx.recorded.Len(), sx.idle, sx.reserved, len(sx.memories))
	for addr := sx.record.value.CIDR.Addr(); sx.record.value.CIDR.Contains(addr); addr = addr.Next() {
		if sx.recorded.Contains(addr) {
			d.line("subnet %s: %s has a record", id, addr)
		}
	}
	order, last := 0, time.Time{}
	for e := sx.released.Front(); e != nil; e = e.Next() {
		m := e.Value.(memory)
		d.line("subnet %s: %s was released at %s, in quarantine until %s (%t)", id, m.addr, m.released.UTC(), m.until.Truncate(time.Microsecond).UTC(), sx.memories[m.addr] == e)
		if m.released.Before(last) {
			order++
		}
		last = m.released
	}
	d.line("subnet %s: %d memories are out of order", id, order)
	for at, n := range sx.live {
		d.line("subnet %s: %d leases of pool %s", id, n, at)
	}
	for at, addrs := range sx.headroom {
		for addr := range addrs {
			d.line("subnet %s: %s is headroom of pool %s", id, addr, at)
		}
	}
	describePlaces(d, id+": MAC", &sx.byMAC)
	describePlaces(d, id+": name", &sx.byName)
	describePlaces(d, id+": owner", &sx.byOwner)
}

func describePlaces[K comparable](d description, what string, p *places[K]) {
	for k := range p.latest {
		addrs := slices.SortedFunc(p.of(k), netip.Addr.Compare)
		d.line("subnet %s %v at %v", what, k, addrs)
	}
	for k := range p.older {
		if _, ok := p.latest[k]; !ok {
			d.line("subnet %s %v has older places and no latest one", what, k)
		}
	}
}

// indexProblem compares the index of a Service with one that is loaded from what it sees of the store; empty: they say the same.
func indexProblem(ctx context.Context, s *Service) string {
	fresh := newIndex()
	err := s.store.View(ctx, func(tx store.Tx) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		return loadAll(fresh, tx)
	})
	if err != nil {
		return err.Error()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	got, want := s.ix.described(), fresh.described()
	for id := range s.ix.subnets {
		if slices.Contains(s.ix.unread, id) { // what is said of it comes with the next change
			about := "subnet " + id.String()
			forget := func(line string, _ bool) bool { return strings.HasPrefix(line, about) }
			maps.DeleteFunc(got, forget)
			maps.DeleteFunc(want, forget)
		}
	}
	var wrong []string
	for line := range got {
		if !want[line] {
			wrong = append(wrong, "  - "+line)
		}
	}
	for line := range want {
		if !got[line] {
			wrong = append(wrong, "  + "+line)
		}
	}
	if s.ix.lastEvent < fresh.lastEvent {
		wrong = append(wrong, fmt.Sprintf("  the last event is %d, the index says %d", fresh.lastEvent, s.ix.lastEvent))
	}
	for _, end := range s.ix.ends.at {
		if s.ix.ends.next.IsZero() || end.Before(s.ix.ends.next) {
			wrong = append(wrong, fmt.Sprintf("  something ends at %s, and nothing is looked for before %s", end, s.ix.ends.next))
		}
	}
	if len(wrong) == 0 {
		return ""
	}
	slices.Sort(wrong)
	return "the index (-) and the records (+) differ:\n" + strings.Join(wrong, "\n")
}

func loadAll(ix *index, tx store.Tx) error {
	for _, step := range []func(*index, store.Tx) error{loadHosts, loadSpaces, loadNetworks, loadSubnets, loadAttachments, loadOwners, loadLeases, loadEvents} {
		if err := step(ix, tx); err != nil {
			return err
		}
	}
	return nil
}

// rangeOf reads "from-to".
func rangeOf(s string) Range { return Range{netipx.MustParseIPRange(s)} }
