package ledger

import (
	"net/netip"
	"time"

	"berth/internal/ipam"
)

// Turnover is the last release through an attachment.
type Turnover struct {
	Addr    netip.Addr
	At      time.Time
	Crowded bool // another release came shortly before, so nobody knows which container returns
}

// TakenSince notes that an address was taken: the next request is not from the released endpoint.
func (c *Change) TakenSince(at ipam.ID) {
	if _, was := c.index.turnover[at]; was {
		c.SetTurnover(at, Turnover{})
	}
}

// SetTurnover sets the last release of an attachment. The zero t removes it.
func (c *Change) SetTurnover(at ipam.ID, t Turnover) {
	restore(c, c.index.turnover, at)
	if t == (Turnover{}) {
		delete(c.index.turnover, at)
	} else {
		c.index.turnover[at] = t
	}
}

// settled removes the marks of a lease that ends.
func (c *Change) settled(id uint64) {
	for _, marks := range []map[uint64]bool{c.index.leftBehind, c.index.answered, c.index.used} {
		if marks[id] {
			restore(c, marks, id)
			delete(marks, id)
		}
	}
}
