package ledger

import (
	"net/netip"

	"berth/internal/ipam"
)

// Editing is what a change keeps for edits of the plan.
type Editing struct {
	Collects bool
	Changes  []ipam.Event   // what was written, where it collects
	Match    uint64         // the revision that the first network edited must have; 0: any
	Swept    []*ipam.Subnet // that were removed, whose leases are to go
	Strays   []Stray
	Leaving  bool // a network is left to be removed in pages
	Ended    bool // attachments are left to be ended in pages

	At       int // which of the edits is made now
	Capacity Capacity
}

// Capacity is what one request, of however many edits, wants of pools besides what is there already (BO-7). Its
// refusal is to say how much that is in all, what was free before it, and who goes without. So a request that has
// come to a wish for which nothing is free goes on as if that were fulfilled, and is refused at its end: nothing of
// it is committed.
type Capacity struct {
	Needs []Need
	Short *Shortage // the first one; nil: there was enough
	Edit  int       // whose it is
}

// Need is an address that a request wants and that its owner does not have.
type Need struct {
	Network ipam.ID
	Owner   string
	Wish    ipam.Wish
	Addr    netip.Addr // zero: nothing was free
}

// Shortage is the refusal of one wish for which no pool has an address.
type Shortage struct {
	*ipam.Refusal // what it says where nothing else is wanted
	Wish          ipam.Wish
	Network       ipam.ID
	Where         string
	Open          []OpenPool // where the wish looks
	Full          string     // how that is taken
}

// Helps says that there can be more.
func (s *Shortage) Helps() []ipam.Advice { return []ipam.Advice{ipam.Advise(ipam.DoEnlargePools)} }

func (s *Shortage) Unwrap() error { return s.Refusal }
