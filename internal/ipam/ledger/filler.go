package ledger

import (
	"slices"

	"berth/internal/ipam"
)

// fillPage is how many leases are put in at once.
const fillPage = 512

// filler puts leases into the indexes of their subnets on a goroutine of its own, while the next ones are read. Nobody
// else touches these indexes until it has ended.
type filler struct {
	subnet   *SubnetIndex // whose leases are being read; nil: one that is gone
	leases   []*ipam.Lease
	memories []*ipam.Lease // of the subnet; they are put in when all are there, the last one released at the end

	full  chan filling
	ended chan struct{}
}

// filling is what is to be put into an index.
type filling struct {
	subnet *SubnetIndex
	leases []*ipam.Lease
}

func newFiller() *filler {
	f := &filler{full: make(chan filling, 8), ended: make(chan struct{})}
	go func() {
		defer close(f.ended)
		for one := range f.full {
			one.subnet.put(one.leases)
		}
	}()
	return f
}

// turn goes on with the leases of another subnet; nil: there is nothing to be filled.
func (f *filler) turn(to *SubnetIndex) {
	f.pass()
	if len(f.memories) > 0 {
		slices.SortFunc(f.memories, byLastUse)
		f.full <- filling{f.subnet, f.memories}
		f.memories = nil
	}
	f.subnet = to
}

// add has a lease of the subnet put in.
func (f *filler) add(l *ipam.Lease) {
	if l.Remembered() {
		f.memories = append(f.memories, l)
		return
	}
	if f.leases == nil {
		f.leases = make([]*ipam.Lease, 0, fillPage)
	}
	if f.leases = append(f.leases, l); len(f.leases) == fillPage {
		f.pass()
	}
}

func (f *filler) pass() {
	if len(f.leases) > 0 {
		f.full <- filling{f.subnet, f.leases}
		f.leases = nil
	}
}

// end waits until all is put in that was passed on.
func (f *filler) end() {
	close(f.full)
	<-f.ended
}
