package ledger

import (
	"time"

	"berth/internal/ipam"
)

// isFar reports whether a quarantine ends later than one that begins now.
func isFar(until, now time.Time, quarantine time.Duration) bool {
	return until.After(now.Add(quarantine + clockSlack))
}

// suspect makes FarMemories examine the memories of a subnet.
func (ix *Index) suspect(id ipam.ID, sx *SubnetIndex) {
	if sx != nil && sx.released.Len() > 0 {
		ix.suspects[id] = true
	}
}

func (ix *Index) suspectAll() {
	for id, sx := range ix.subnets {
		ix.suspect(id, sx)
	}
}

// FarMemories lists memories whose quarantine is too long, at most a page of one subnet. They were released while the
// clock was ahead or the network's quarantine was longer. It searches only after a start, a step of the clock back, a
// shorter quarantine, or a release on another host.
func (s *Ledger) FarMemories() (all []Stray) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ix, now := s.index, s.now()
	if now.Before(ix.clock) {
		ix.suspectAll()
	}
	ix.clock = now
	for id := range ix.suspects {
		if sx := ix.subnets[id]; sx != nil {
			all = sx.far(now, ix.Policy(sx.Record()).Quarantine, s.page)
		}
		if len(all) > 0 {
			return all
		}
		delete(ix.suspects, id)
	}
	return nil
}

func (sx *SubnetIndex) far(now time.Time, quarantine time.Duration, most int) (all []Stray) {
	for e := sx.released.Front(); e != nil && len(all) < most; e = e.Next() {
		if m := e.Value.(Memory); isFar(m.QuarantineUntil, now, quarantine) {
			all = append(all, Stray{sx.Record().ID, m.Addr})
		}
	}
	return all
}

// BringNearer shortens the quarantines of memories to that of a release now.
func (c *Change) BringNearer(all []Stray) error {
	for _, one := range all {
		sx := c.index.subnets[one.Subnet]
		if sx == nil {
			continue
		}
		l, err := c.Lease(one.Subnet, one.Addr)
		if err != nil {
			return err
		}
		quarantine := c.index.Policy(sx.Record()).Quarantine
		if !l.Remembered() || !isFar(l.QuarantineUntil, c.now, quarantine) {
			sx.Move(one.Addr, l, l) // the index was wrong
			continue
		}
		after := *l
		after.QuarantineUntil = c.now.Add(quarantine)
		if err := c.SetLease(one.Subnet, one.Addr, l, &after); err != nil {
			return err
		}
	}
	return nil
}
