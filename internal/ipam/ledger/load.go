package ledger

import (
	"context"
	"fmt"
	"slices"

	"berth/internal/ipam"
	"berth/store"
)

// Load builds the index by one scan of the store. It refuses a state of another format.
func (s *Ledger) Load(ctx context.Context) error {
	if err := s.checkFormat(ctx); err != nil {
		return err
	}
	read := func(tx store.Tx) error {
		ix := newIndex()
		if err := ix.load(tx); err != nil {
			return err
		}
		ix.suspectAll()
		s.mu.Lock()
		defer s.mu.Unlock()
		s.index = ix
		return nil
	}
	if s.member == nil {
		return s.store.View(ctx, read)
	}
	return s.Shared().Follow(ctx, read, s.follow)
}

// load reads all records into an empty index.
func (ix *Index) load(tx store.Tx) error {
	for _, step := range []func(*Index, store.Tx) error{loadMending, loadHosts, loadSpaces, loadNetworks,
		loadSubnets, loadAttachments, loadOwners, loadElastics} {
		if err := step(ix, tx); err != nil {
			return err
		}
	}
	fill := newFiller()
	defer fill.end()
	if err := ix.loadLeases(tx, fill); err != nil {
		return err
	}
	return loadEvents(ix, tx)
}

// LoadPlan builds an index without leases and events, to examine a store that no daemon has open. wrong has an error
// for each kind of record that could not be read completely.
func LoadPlan(tx store.Tx) (ix *Index, wrong []error) {
	ix = newIndex()
	for _, step := range []func(*Index, store.Tx) error{loadSpaces, loadNetworks, loadSubnets, loadAttachments,
		loadElastics} {
		if err := step(ix, tx); err != nil {
			wrong = append(wrong, err)
		}
	}
	return ix, wrong
}

func loadHosts(ix *Index, tx store.Tx) error {
	for h, err := range EachJSON[ipam.Host](tx, KindRange(HostKeys), "a host") {
		if err != nil {
			return err
		}
		ix.hosts[h.Value.Name] = h.Cached
	}
	return nil
}

func loadSpaces(ix *Index, tx store.Tx) error {
	for rec, err := range tx.Scan(KindRange(SpaceKeys)) {
		if err != nil {
			return err
		}
		ix.space(string(rec.Key[1:]))
	}
	return nil
}

func loadNetworks(ix *Index, tx store.Tx) error {
	for n, err := range EachJSON[ipam.Network](tx, KindRange(NetworkKeys), "a network") {
		if err != nil {
			return err
		}
		ix.setNetwork(n.Value.ID, n.Cached)
	}
	return nil
}

func loadSubnets(ix *Index, tx store.Tx) error {
	for record, err := range EachJSON[ipam.Subnet](tx, KindRange(SubnetKeys), "a subnet") {
		if err != nil {
			return err
		}
		sub := record.Value
		if other, overlaps := ix.space(sub.Space).Blocks.Overlap(sub.CIDR); overlaps {
			return ipam.Help(fmt.Errorf("%w: the subnets %s and %s of space %s overlap", ipam.ErrDamaged, sub.CIDR,
				other, sub.Space), ipam.Advise(ipam.DoRestore))
		}
		ix.addSubnet(sub, record.Raw)
	}
	return nil
}

func loadAttachments(ix *Index, tx store.Tx) error {
	for a, err := range EachJSON[ipam.Attachment](tx, KindRange(AttachmentKeys), "a pool") {
		if err != nil {
			return err
		}
		ix.attachments[a.Value.ID] = a.Cached
	}
	return nil
}

// loadLeases reads the leases subnet by subnet, in the order of their keys, while the filler indexes them. It notes the
// leases of removed subnets as orphans, which are swept later.
func (ix *Index) loadLeases(tx store.Tx, fill *filler) error {
	var subnet ipam.ID
	for rec, err := range tx.Scan(KindRange(LeaseKeys)) {
		if err != nil {
			return err
		}
		id, addr, ok := LeaseKeyParts(rec.Key)
		if !ok {
			return fmt.Errorf("%w: the key %x is not the key of an address", ipam.ErrDamaged, rec.Key)
		}
		if id != subnet {
			subnet = id
			fill.turn(ix.subnets[id])
			if fill.subnet == nil {
				ix.orphans = append(ix.orphans, catchAll(id, addr))
			}
		}
		l, err := ipam.DecodeLease(addr, rec.Value)
		if err != nil {
			return err
		}
		switch sx := fill.subnet; {
		case sx != nil && !sx.usable.Contains(addr) && l.Remembered() && l.Reservation == nil:
			ix.strays = append(ix.strays, Stray{id, addr})
			continue
		case sx != nil:
			fill.add(l)
		}
		ix.lastEvent = max(ix.lastEvent, l.ID)
	}
	fill.turn(nil)
	return nil
}

// loadEvents counts the events and finds the last one. New ids are greater than its id, and than the ids of leases
// whose events were trimmed.
func loadEvents(ix *Index, tx store.Tx) error {
	for rec, err := range tx.Scan(KindRange(EventKeys)) {
		if err != nil {
			return err
		}
		ix.events.add(sumOf(rec.Value))
		ix.lastEvent = max(ix.lastEvent, EventID(rec.Key))
		ix.sane.see(RecordTime(rec))
	}
	return nil
}

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
