package stores

import (
	"context"
	"fmt"
	"net/netip"

	"berth/internal/alloc"
	"berth/internal/allocator"
	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
	"berth/store"
)

// Check reads every record in one view and returns a sentence for each contradiction between them (`berth state
// check`). It changes nothing.
func (s Stores) Check(ctx context.Context) ([]string, error) {
	return CheckStore(ctx, s.homes.Own.Store())
}

// CheckStore is Check for a store that no Service has open.
func CheckStore(ctx context.Context, st store.Store) (problems []string, err error) {
	err = st.View(ctx, func(tx store.Tx) error {
		ix, wrong := ledger.LoadPlan(tx)
		ck := &checker{ix: ix, copied: map[string]*copyMark{}}
		for _, err := range wrong {
			ck.problem("%v", err)
		}
		if err := ck.names(tx); err != nil {
			return err
		}
		if err := ck.marks(tx); err != nil {
			return err
		}
		ck.subnets()
		ck.attachments()
		ck.elastics()
		if err := ck.leases(tx); err != nil {
			return err
		}
		if err := ck.events(tx); err != nil {
			return err
		}
		if err := allocator.CheckStandIns(tx, func(err error) { ck.problem("%v", err) }); err != nil {
			return err
		}
		problems = ck.problems
		return nil
	})
	return problems, err
}

type checker struct {
	ix       *ledger.Index
	copied   map[string]*copyMark // spaces that may be incomplete
	problems []string
}

func (ck *checker) problem(format string, args ...any) {
	ck.problems = append(ck.problems, fmt.Sprintf(format, args...))
}

// names checks that each network has its name, and each name one network.
func (ck *checker) names(tx store.Tx) error {
	found := map[string]bool{}
	for rec, err := range tx.Scan(ledger.KindRange(ledger.NameKeys)) {
		if err != nil {
			return err
		}
		name := string(rec.Key[1:])
		if len(rec.Value) != len(ipam.ID{}) || ck.ix.NetworkNamed(name) != ipam.ID(rec.Value) {
			ck.problem("the name %s leads to a network that does not have that name", name)
		}
		found[name] = true
	}
	for name, id := range ck.ix.Names() {
		if !found[name] {
			ck.problem("network %s: the index does not find it by its name %s", id, name)
		}
	}
	return nil
}

// marks reads which spaces are being copied, and checks that no other network is.
func (ck *checker) marks(tx store.Tx) error {
	marks, err := readMarks(tx)
	if err != nil {
		return err
	}
	for _, m := range marks {
		ck.copied[m.Space] = m
	}
	for _, nx := range ck.ix.Networks() {
		if n := nx.Record(); n != nil && n.Stage == ipam.Moving && ck.copied[n.Space] == nil {
			ck.problem("network %s is marked as being copied, but no copy of its space %s is open", n.Name, n.Space)
		}
	}
	return nil
}

// subnets checks each subnet against its network, its pools and its attachments.
func (ck *checker) subnets() {
	for _, sx := range ck.ix.Subnets() {
		sub := sx.Record()
		if ck.ix.Network(sub.Network) == nil {
			ck.problem("subnet %s of space %s: its network %s is missing", sub.CIDR, sub.Space, sub.Network)
		}
		for i, p := range sub.Pools {
			if !sub.CIDR.Contains(p.Range.From()) || !sub.CIDR.Contains(p.Range.To()) {
				ck.problem("subnet %s of space %s: the pool %s is not inside it", sub.CIDR, sub.Space, p.Range)
			}
			for _, other := range sub.Pools[:i] {
				if other.Range.Overlaps(p.Range.IPRange) {
					ck.problem("subnet %s of space %s: the pools %s and %s overlap", sub.CIDR, sub.Space, other.Range,
						p.Range)
				}
			}
		}
		ck.exclusions(sub)
		if n := ck.ix.Network(sub.Network); len(sub.Attachments) == 0 && (n == nil || !n.Planned) {
			ck.problem("subnet %s of space %s: no Docker network holds it", sub.CIDR, sub.Space)
		}
		for _, id := range sub.Attachments {
			if at := ck.ix.Attachment(id); at == nil || at.Subnet != sub.ID {
				ck.problem("subnet %s of space %s: its pool %s is missing", sub.CIDR, sub.Space, id)
			}
		}
	}
}

// exclusions checks that a subnet's exclusions lie in it, in order and apart. They are found by binary search.
func (ck *checker) exclusions(sub *ipam.Subnet) {
	for i, x := range sub.Exclusions {
		if !ipam.Covers(sub.CIDR, x.Range.IPRange) {
			ck.problem("subnet %s of space %s: the exclusion %s is not inside it", sub.CIDR, sub.Space, x)
		}
		if i > 0 && !sub.Exclusions[i-1].Range.To().Less(x.Range.From()) {
			ck.problem("subnet %s of space %s: the exclusions %s and %s overlap", sub.CIDR, sub.Space,
				sub.Exclusions[i-1], x)
		}
	}
	for i, band := range sub.Static {
		if !ipam.Covers(sub.CIDR, band.IPRange) {
			ck.problem("subnet %s of space %s: the static band %s is not inside it", sub.CIDR, sub.Space, band)
		}
		if i > 0 && !sub.Static[i-1].To().Less(band.From()) {
			ck.problem("subnet %s of space %s: the static bands %s and %s overlap", sub.CIDR, sub.Space,
				sub.Static[i-1], band)
		}
		if _, x := sub.PlaceOfExclusion(band); x != nil {
			ck.problem("subnet %s of space %s: the static band %s and the exclusion %s overlap", sub.CIDR, sub.Space,
				band, x)
		}
	}
}

// attachments checks that each belongs to a subnet that names it, unless it is ending.
func (ck *checker) attachments() {
	for id, at := range ck.ix.Attachments() {
		sx := ck.ix.Subnet(at.Subnet)
		if sx == nil && at.Ended {
			continue // its subnet ended first
		}
		if sx == nil {
			ck.problem("pool %s: its subnet %s is missing", id, at.CIDR)
			continue
		}
		named := false
		for _, other := range sx.Record().Attachments {
			named = named || other == id
		}
		if !named && !at.Ended {
			ck.problem("pool %s: its subnet %s does not list it", id, at.CIDR)
		}
	}
}

// leases checks that each decodes, lies in its subnet, may be given there, and has an existing attachment.
func (ck *checker) leases(tx store.Tx) error {
	gateways := map[ipam.ID]netip.Addr{}
	for rec, err := range tx.Scan(ledger.KindRange(ledger.LeaseKeys)) {
		if err != nil {
			return err
		}
		id, addr, ok := ledger.LeaseKeyParts(rec.Key)
		if !ok {
			ck.problem("the key %x is not the key of an address", rec.Key)
			continue
		}
		l, err := ipam.DecodeLease(addr, rec.Value)
		if err != nil {
			ck.problem("%v", err)
			continue
		}
		sx := ck.ix.Subnet(id)
		if sx == nil {
			continue // the rest of a removed subnet, which the next start sweeps
		}
		ck.lease(sx.Record(), l)
		if l.Held() && l.Kind == ipam.Gateway && l.Attachment == (ipam.ID{}) {
			gateways[id] = addr
		}
	}
	for id, sx := range ck.ix.Subnets() {
		if sub := sx.Record(); sub.Gateway != gateways[id] && ck.copied[sub.Space] == nil {
			ck.problem("subnet %s of space %s: its gateway is %s, but its gateway lease is for %s", sub.CIDR,
				sub.Space, sub.Gateway, gateways[id])
		}
	}
	return nil
}

func (ck *checker) lease(sub *ipam.Subnet, l *ipam.Lease) {
	if !alloc.Usable(sub.CIDR).Contains(l.Address) && (l.Held() || l.Reservation != nil) {
		ck.problem("%s is leased but is not a host address of the subnet %s", l.Address, sub.CIDR)
	}
	if !l.Held() || l.Attachment == (ipam.ID{}) {
		return
	}
	if at := ck.ix.Attachment(l.Attachment); at == nil || at.Subnet != sub.ID {
		ck.problem("%s of the subnet %s is held through pool %s, which does not "+
			"exist", l.Address, sub.CIDR, l.Attachment)
	}
}

// events checks that each event decodes.
func (ck *checker) events(tx store.Tx) error {
	for at, err := range ledger.EventsIn(tx, ledger.EventRange{}) {
		if err != nil {
			return err
		}
		if _, err := at.Decode(); err != nil {
			ck.problem("%v", err)
		}
	}
	return nil
}
