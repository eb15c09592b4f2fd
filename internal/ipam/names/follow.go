package names

import (
	"context"
	"maps"
	"net/netip"
	"slices"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
	"berth/store"

	"go4.org/netipx"
)

// page is the number of records read in one transaction.
const page = 512

// follower remembers the records of networks, subnets and elastic ranges. It does not remember what it has sent about
// addresses.
type follower struct {
	ledger   *ledger.Ledger
	networks map[ipam.ID]*ipam.Network
	shown    map[ipam.ID]string // the names that people see
	subnets  map[string]*ipam.Subnet
	places   map[ipam.ID]string // the keys of subnets, by id
	ranges   map[string]*ipam.ElasticRange
}

func newFollower(l *ledger.Ledger) *follower {
	return &follower{ledger: l, networks: map[ipam.ID]*ipam.Network{}, shown: map[ipam.ID]string{},
		subnets: map[string]*ipam.Subnet{}, places: map[ipam.ID]string{}, ranges: map[string]*ipam.ElasticRange{}}
}

// each yields the records of a range, in pages, each of which is one transaction.
func (f *follower) each(ctx context.Context, in store.Range, visit func(store.Record)) error {
	in.Limit = page
	for {
		n := 0
		err := f.ledger.View(ctx, func(tx store.Tx) error {
			for rec, err := range tx.Scan(in) {
				if err != nil {
					return err
				}
				visit(rec)
				in.From = append(slices.Clone(rec.Key), 0)
				n++
			}
			return nil
		})
		if err != nil || n < page {
			return err
		}
	}
}

// whole reads everything. It skips records that cannot be read, because other readers report them.
func (f *follower) whole(ctx context.Context) (ipam.NameNews, error) {
	clear(f.networks)
	clear(f.subnets)
	clear(f.places)
	clear(f.ranges)
	note := func(rec store.Record) { f.note(string(rec.Key), rec.Value) }
	for _, kind := range []byte{ledger.NetworkKeys, ledger.SubnetKeys, ledger.ElasticRangeKeys} {
		if err := f.each(ctx, ledger.KindRange(kind), note); err != nil {
			return ipam.NameNews{}, err
		}
	}
	news := ipam.NameNews{Whole: true}
	f.callNetworks()
	for _, id := range slices.SortedFunc(maps.Keys(f.places), compareIDs) {
		f.tellSubnet(&news, f.subnets[f.places[id]])
	}
	for _, r := range f.ranges {
		f.tellRange(&news, r)
	}
	told := map[ipam.ID]bool{}
	for _, r := range news.Ranges {
		told[r.ID] = true
	}
	err := f.each(ctx, ledger.KindRange(ledger.LeaseKeys), func(rec store.Record) {
		if id, _, ok := ledger.LeaseKeyParts(rec.Key); ok && told[id] {
			f.tellLease(&news, rec.Key, rec.Value)
		}
	})
	if err != nil {
		return news, err
	}
	return news, f.elastics(ctx, &news, nil)
}

func compareIDs(a, b ipam.ID) int { return slices.Compare(a[:], b[:]) }

// note remembers a record of a network, a subnet or an elastic range. No value means that it was deleted.
func (f *follower) note(key string, value []byte) {
	switch key[0] {
	case ledger.NetworkKeys:
		if len(key) != 17 {
			return
		}
		if n, ok := ledger.Decoded[ipam.Network](value); ok {
			f.networks[ipam.ID([]byte(key[1:]))] = n.Value
		} else {
			delete(f.networks, ipam.ID([]byte(key[1:])))
		}
	case ledger.SubnetKeys:
		if was := f.subnets[key]; was != nil && f.places[was.ID] == key {
			delete(f.places, was.ID)
		}
		delete(f.subnets, key)
		if sub, ok := ledger.Decoded[ipam.Subnet](value); ok {
			f.subnets[key] = sub.Value
			f.places[sub.Value.ID] = key
		}
	case ledger.ElasticRangeKeys:
		delete(f.ranges, key)
		if r, ok := ledger.Decoded[ipam.ElasticRange](value); ok {
			f.ranges[key] = r.Value
		}
	}
}

// callNetworks gets the names of networks that people see. It takes a few at a time, because that locks the ledger.
func (f *follower) callNetworks() {
	clear(f.shown)
	var ids []ipam.ID // those that may have Docker's name
	for id, n := range f.networks {
		if f.shown[id] = n.Name; !n.Planned {
			ids = append(ids, id)
		}
	}
	for part := range slices.Chunk(ids, 64) {
		f.ledger.Read(func(ix *ledger.Index) {
			for _, id := range part {
				f.shown[id] = f.ledger.ShownName(ix, f.networks[id])
			}
		})
	}
}

// tellSubnet adds a subnet to news, unless its network is missing, and reports whether it did.
func (f *follower) tellSubnet(news *ipam.NameNews, sub *ipam.Subnet) bool {
	n := f.networks[sub.Network]
	if n == nil || n.Stage != "" {
		return false
	}
	news.Ranges = append(news.Ranges, ipam.NamedRange{ID: sub.ID, Space: sub.Space, Network: f.shown[n.ID],
		NetworkID: n.ID, Range: ipam.Range{IPRange: netipx.RangeOfPrefix(sub.CIDR)}})
	return true
}

func (f *follower) tellRange(news *ipam.NameNews, r *ipam.ElasticRange) {
	if !r.Moving {
		news.Ranges = append(news.Ranges, ipam.NamedRange{ID: r.ID, Range: r.Range, Elastic: true})
	}
}

// tellLease adds an address to news from its record. No value means that it has none.
func (f *follower) tellLease(news *ipam.NameNews, key, value []byte) {
	id, addr, ok := ledger.LeaseKeyParts(key)
	if !ok {
		return
	}
	one := ipam.NamedAddress{In: id, Address: addr}
	sub := f.subnets[f.places[id]]
	if sub == nil || f.networks[sub.Network] == nil {
		return // it is sent together with its subnet
	}
	if value != nil {
		if l, err := ipam.DecodeLease(addr, value); err == nil {
			if one.Owner, one.Name, ok = f.networks[sub.Network].NamedBy(l); ok {
				one.Held = l.Held()
				news.Set = append(news.Set, one)
				return
			}
		}
	}
	if !news.Whole {
		news.Removed = append(news.Removed, ipam.NamedAddress{In: id, Address: addr})
	}
}

// elastics adds all elastic addresses of a range to news, or of all ranges if only is nil.
func (f *follower) elastics(ctx context.Context, news *ipam.NameNews, only *ipam.ElasticRange) error {
	if f.ledger.NoElastic() {
		return nil
	}
	return f.each(ctx, ledger.KindRange(ledger.ElasticKeys), func(rec store.Record) {
		if addr, ok := netip.AddrFromSlice(rec.Key[1:]); ok && (only == nil || only.Range.Contains(addr)) {
			f.tellElastic(news, addr, rec.Value)
		}
	})
}

// tellElastic adds an elastic address to news from its record. No value means that it is free.
func (f *follower) tellElastic(news *ipam.NameNews, addr netip.Addr, value []byte) {
	for _, r := range f.ranges {
		if r.Moving || !r.Range.Contains(addr) {
			continue
		}
		one := ipam.NamedAddress{In: r.ID, Address: addr}
		if e, ok := ledger.Decoded[ipam.Elastic](value); ok && e.Value.Association != nil && !f.ledger.NoElastic() {
			one.Owner, one.Held = e.Value.Association.Instance, true
			news.Set = append(news.Set, one)
		} else if !news.Whole {
			news.Removed = append(news.Removed, one)
		}
		return
	}
}

// after returns the news from some commits. called: the names of networks may have changed.
func (f *follower) after(ctx context.Context, seen map[string][]byte, called bool) (news ipam.NameNews, err error) {
	anew := map[ipam.ID]bool{} // subnets to send as a whole
	if plan := planned(seen); len(plan) > 0 || called {
		err = f.replan(ctx, &news, plan, anew)
	}
	if err == nil {
		f.tellOthers(&news, seen, anew)
	}
	return news, err
}

// planned returns those commits that are about networks, subnets and elastic ranges.
func planned(seen map[string][]byte) map[string][]byte {
	plan := map[string][]byte{}
	for key, value := range seen {
		switch key[0] {
		case ledger.NetworkKeys, ledger.SubnetKeys, ledger.ElasticRangeKeys:
			plan[key] = value
		}
	}
	return plan
}

// replan remembers commits of networks, subnets and elastic ranges, and adds those that changed to news. anew gets the
// subnets to send as a whole.
func (f *follower) replan(ctx context.Context, news *ipam.NameNews, plan map[string][]byte,
	anew map[ipam.ID]bool) error {
	networks, shown, was := maps.Clone(f.networks), maps.Clone(f.shown), maps.Clone(f.places)
	var ranges []*ipam.ElasticRange
	for _, deleted := range []bool{true, false} { // a subnet with a new CIDR is deleted and written
		for key, value := range plan {
			if (value == nil) != deleted {
				continue
			}
			before, old := f.subnets[key], f.ranges[key]
			f.note(key, value)
			if now := f.subnets[key]; now != nil && !samePlace(before, now) {
				anew[now.ID] = true
			}
			if old != nil {
				news.Gone = append(news.Gone, old.ID)
			}
			if now := f.ranges[key]; now != nil {
				ranges = append(ranges, now)
			}
		}
	}
	f.callNetworks()
	for id, key := range f.places {
		n := f.subnets[key].Network
		if other(networks[n], f.networks[n]) || shown[n] != f.shown[n] {
			anew[id] = true
		}
	}
	for id := range was {
		if f.places[id] == "" {
			news.Gone = append(news.Gone, id)
		}
	}
	return f.tellAnew(ctx, news, anew, ranges)
}

// samePlace reports whether two records of a subnet are the same for names.
func samePlace(a, b *ipam.Subnet) bool {
	return a != nil && a.ID == b.ID && a.CIDR == b.CIDR && a.Network == b.Network
}

// other reports whether two records of a network differ for names.
func other(a, b *ipam.Network) bool {
	if a == nil || b == nil {
		return a != b
	}
	return a.Name != b.Name || a.Stage != b.Stage || !slices.Equal(a.Rules, b.Rules)
}

// tellAnew adds subnets and elastic ranges to news with all of their addresses.
func (f *follower) tellAnew(ctx context.Context, news *ipam.NameNews, subnets map[ipam.ID]bool,
	ranges []*ipam.ElasticRange) error {
	for id := range subnets {
		sub := f.subnets[f.places[id]]
		if sub == nil {
			continue
		}
		if !f.tellSubnet(news, sub) {
			news.Gone = append(news.Gone, id)
			continue
		}
		err := f.each(ctx, ledger.LeasesOf(id), func(rec store.Record) { f.tellLease(news, rec.Key, rec.Value) })
		if err != nil {
			return err
		}
	}
	for _, r := range ranges {
		f.tellRange(news, r)
		if err := f.elastics(ctx, news, r); err != nil {
			return err
		}
	}
	return nil
}

// tellOthers adds the addresses of all other subnets to news. A commit is never older than what was read of a whole
// subnet.
func (f *follower) tellOthers(news *ipam.NameNews, seen map[string][]byte, anew map[ipam.ID]bool) {
	for name, value := range seen {
		key := []byte(name)
		switch key[0] {
		case ledger.LeaseKeys:
			if id, _, ok := ledger.LeaseKeyParts(key); ok && !anew[id] {
				f.tellLease(news, key, value)
			}
		case ledger.ElasticKeys:
			if addr, ok := netip.AddrFromSlice(key[1:]); ok {
				f.tellElastic(news, addr, value)
			}
		}
	}
}
