package ledger

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"berth/store"
)

// Verify compares the index with a fresh one from the store. It returns a line per difference: "-" for what only the
// index has, "+" for what only the records have. It holds up all changes meanwhile.
func (s *Ledger) Verify(ctx context.Context) (wrong []string, err error) {
	fresh := newIndex()
	err = s.View(ctx, func(tx store.Tx) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		return fresh.load(tx)
	})
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.index.differences(fresh), nil
}

func (ix *Index) differences(fresh *Index) (wrong []string) {
	got, want := ix.Lines(), fresh.Lines()
	for _, id := range ix.unread { // the next change reads its leases
		about := "subnet " + id.String()
		forget := func(line string, _ bool) bool { return strings.HasPrefix(line, about) }
		maps.DeleteFunc(got, forget)
		maps.DeleteFunc(want, forget)
	}
	for line := range got {
		if !want[line] {
			wrong = append(wrong, "- "+line)
		}
	}
	for line := range want {
		if !got[line] {
			wrong = append(wrong, "+ "+line)
		}
	}
	if ix.lastEvent < fresh.lastEvent {
		wrong = append(wrong, fmt.Sprintf("the last event is %d, but the index says %d", fresh.lastEvent, ix.lastEvent))
	}
	for _, end := range ix.ends.At {
		if ix.ends.Next.IsZero() || end.Before(ix.ends.Next) {
			wrong = append(wrong, fmt.Sprintf("something ends at %s, but the index expects no end before %s", end,
				ix.ends.Next))
		}
	}
	slices.Sort(wrong)
	return wrong
}

// Lines describes the index as lines that can be compared. They depend only on the records, not on the order of
// changes.
func (ix *Index) Lines() map[string]bool {
	d := description{}
	d.line("%d events of %d bytes, %d records ahead", ix.events.Count, ix.events.Bytes, ix.events.Ahead)
	for name, sp := range ix.spaces {
		d.line("space %s: %d blocks", name, sp.Blocks.Len())
		for p, id := range sp.Ids {
			inside, _ := sp.Blocks.Overlap(p)
			d.line("space %s: subnet %s is %s (%t)", name, p, id, inside == p)
		}
	}
	for name, id := range ix.names {
		d.line("the name %s is %s", name, id)
	}
	for name, h := range ix.hosts {
		d.line("host %s: %s", name, h.Raw)
	}
	for id, at := range ix.attachments {
		d.line("attachment %s: %s", id, at.Raw)
	}
	for id, nx := range ix.networks {
		d.line("network %s: %s, its subnets %v", id, nx.record.Raw, nx.subnets)
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
	ix.elastic.lines(d)
	for what, end := range ix.ends.At {
		switch sx := what.Sx; {
		case sx == nil:
			d.line("owner %s of network %s ends at %s", what.Owner, what.Network, end.UTC())
		case ix.subnets[sx.Record().ID] == sx: // for a removed subnet an ending stays until it is due
			d.line("subnet %s: the reservation of %s ends at %s", sx.Record().ID, what.Addr, end.UTC())
		}
	}
	return d
}

type description map[string]bool

func (d description) line(format string, args ...any) { d[fmt.Sprintf(format, args...)] = true }

// subnet describes a subnet of at most a few hundred addresses.
func (d description) subnet(id string, sx *SubnetIndex) {
	d.line("subnet %s: %s, usable %s, %d records, %d idle, %d reserved, %d memories", id, sx.record.Raw, sx.usable,
		sx.recorded.Len(), sx.idle.Len(), sx.reserved, len(sx.memories))
	for addr := sx.Record().CIDR.Addr(); sx.Record().CIDR.Contains(addr); addr = addr.Next() {
		if sx.recorded.Contains(addr) {
			d.line("subnet %s: %s has a record", id, addr)
		}
	}
	order, last := 0, time.Time{}
	for e := sx.released.Front(); e != nil; e = e.Next() {
		m := e.Value.(Memory)
		d.line("subnet %s: %s was released at %s, in quarantine until %s (%t)", id, m.Addr,
			m.Released.UTC(), m.QuarantineUntil.Truncate(time.Microsecond).UTC(), sx.memories[m.Addr] == e)
		if m.Released.Before(last) {
			order++
		}
		last = m.Released
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
	describePlaces(d, id+": taken for", &sx.byTaken)
	describePlaces(d, id+": owner", &sx.byOwner)
}

func describePlaces[K, A comparable](d description, what string, p *places[K, A]) {
	for k := range p.one {
		var at []string
		for addr := range p.Of(k) {
			at = append(at, fmt.Sprint(addr))
		}
		slices.Sort(at)
		d.line("subnet %s %v at %v", what, k, at)
	}
	for k := range p.more {
		if _, ok := p.one[k]; !ok {
			d.line("subnet %s %v has further places and no first one", what, k)
		}
	}
}
