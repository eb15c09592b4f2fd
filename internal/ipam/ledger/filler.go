package ledger

import (
	"slices"

	"berth/internal/ipam"
)

// fillPage is the number of leases that are passed to the goroutine at once.
const fillPage = 512

// filler puts leases into the indexes of their subnets on a goroutine, while the caller reads the next ones. Until end
// returns, nobody else may use these indexes.
type filler struct {
	subnet   *SubnetIndex // the subnet whose leases are being read; nil: it was removed
	leases   []*ipam.Lease
	memories []*ipam.Lease // of the subnet; indexed after all were read, in the order of release

	full  chan filling
	ended chan struct{}
}

// filling is a page of leases for one index.
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

// turn continues with the leases of another subnet, or with none if to is nil.
func (f *filler) turn(to *SubnetIndex) {
	f.pass()
	if len(f.memories) > 0 {
		slices.SortFunc(f.memories, byLastUse)
		f.full <- filling{f.subnet, f.memories}
		f.memories = nil
	}
	f.subnet = to
}

// add passes a lease of the current subnet.
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

// end waits until all leases are in the indexes.
func (f *filler) end() {
	close(f.full)
	<-f.ended
}
