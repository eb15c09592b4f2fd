package ledger

import (
	"net/netip"
	"time"

	"berth/internal/ipam"
)

// Turnover is what was given back through an attachment last.
type Turnover struct {
	Addr    netip.Addr
	At      time.Time
	Crowded bool // another one was given back shortly before, so that nobody knows who comes back
}

// TakenSince notes a take: whoever comes next is another one.
func (c *Change) TakenSince(at ipam.ID) {
	if _, was := c.index.turnover[at]; was {
		c.SetTurnover(at, Turnover{})
	}
}

// SetTurnover notes t, nothing where it is zero.
func (c *Change) SetTurnover(at ipam.ID, t Turnover) {
	before, was := c.index.turnover[at]
	c.undo = append(c.undo, func() {
		if was {
			c.index.turnover[at] = before
		} else {
			delete(c.index.turnover, at)
		}
	})
	if t == (Turnover{}) {
		delete(c.index.turnover, at)
	} else {
		c.index.turnover[at] = t
	}
}

// settled forgets the doubts about a lease that ends.
func (c *Change) settled(id uint64) {
	for _, marks := range []map[uint64]bool{c.index.leftBehind, c.index.answered, c.index.used} {
		if marks[id] {
			delete(marks, id)
			c.undo = append(c.undo, func() { marks[id] = true })
		}
	}
}
