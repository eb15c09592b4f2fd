package ledger

import (
	"bytes"
	"fmt"
	"iter"
	"maps"
	"net/netip"

	"go4.org/netipx"

	"berth/internal/alloc"
	"berth/internal/ipam"
	"berth/store"
)

// elastics is the index of elastic addresses: accounts, ranges, addresses with their associations, and what the edges
// have applied.
type elastics struct {
	accounts  map[string]Cached[ipam.Account]
	ranges    map[ipam.ID]Cached[ipam.ElasticRange]
	addresses map[netip.Addr]Cached[ipam.Elastic]
	applied   map[AppliedAt]Cached[ipam.Applied]
	sessions  map[string]Cached[ipam.EdgeSession] // by host

	byInstance places[InstanceAt, netip.Addr] // by the associated instance
	byGuest    places[netip.Addr, netip.Addr] // by the guest found for the association
	use        elasticUse
}

// InstanceAt is an instance on a network. Its name has the form of ipam.RememberedName.
type InstanceAt struct {
	Network  ipam.ID
	Instance string
}

func instanceAt(network ipam.ID, instance string) InstanceAt {
	return InstanceAt{network, ipam.RememberedName(instance)}
}

// AppliedAt identifies what a host's edge reported about an address.
type AppliedAt struct {
	Host    string
	Address netip.Addr
}

func newElastics() elastics {
	return elastics{
		accounts:  map[string]Cached[ipam.Account]{},
		ranges:    map[ipam.ID]Cached[ipam.ElasticRange]{},
		addresses: map[netip.Addr]Cached[ipam.Elastic]{},
		applied:   map[AppliedAt]Cached[ipam.Applied]{},
		sessions:  map[string]Cached[ipam.EdgeSession]{},
		use:       newElasticUse(),
	}
}

// AccountKey is the key of an account.
func AccountKey(name string) []byte { return append([]byte{AccountKeys}, name...) }

// ElasticRangeKey is the key of a range of elastic addresses.
func ElasticRangeKey(id ipam.ID) []byte { return append([]byte{ElasticRangeKeys}, id[:]...) }

// ElasticKey is the key of an elastic address that is not free.
func ElasticKey(addr netip.Addr) []byte { return ipam.AppendAddr([]byte{ElasticKeys}, addr) }

// AppliedKey is the key of an edge's report about an address.
func AppliedKey(at AppliedAt) []byte {
	return ipam.AppendAddr(append(append([]byte{AppliedKeys}, at.Host...), 0), at.Address)
}

// appliedAt is the reverse of AppliedKey.
func appliedAt(key []byte) (at AppliedAt, ok bool) {
	host, rest, found := bytes.Cut(key[1:], []byte{0})
	addr, fits := netip.AddrFromSlice(rest)
	return AppliedAt{string(host), addr}, found && fits
}

// loadElastics reads all records of elastic addresses. One that does not decode is ipam.ErrDamaged.
func loadElastics(ix *Index, tx store.Tx) error {
	for _, kind := range []byte{AccountKeys, ElasticRangeKeys, ElasticKeys, AppliedKeys, SessionKeys} {
		for rec, err := range tx.Scan(KindRange(kind)) {
			if err != nil {
				return err
			}
			if !ix.takeElastic(rec.Key, append([]byte(nil), rec.Value...)) {
				return ipam.Help(fmt.Errorf("%w: the record %q of an elastic address or its account cannot be read",
					ipam.ErrDamaged, rec.Key), ipam.Advise(ipam.DoRestore))
			}
		}
	}
	return nil
}

// takeElastic puts one record of elastic addresses into the index; raw is nil if it was deleted. It reports whether the
// record could be decoded.
func (ix *Index) takeElastic(key, raw []byte) bool {
	switch key[0] {
	case AccountKeys:
		return takeCached(ix.elastic.accounts, string(key[1:]), raw)
	case ElasticRangeKeys:
		return len(key) == 17 && takeCached(ix.elastic.ranges, ipam.ID(key[1:]), raw)
	case ElasticKeys:
		addr, ok := netip.AddrFromSlice(key[1:])
		return ok && ix.elastic.takeAddress(addr, raw)
	case SessionKeys:
		return takeCached(ix.elastic.sessions, string(key[1:]), raw)
	default:
		at, ok := appliedAt(key)
		return ok && takeCached(ix.elastic.applied, at, raw)
	}
}

// takeAddress puts the record of an elastic address into the index.
func (e *elastics) takeAddress(addr netip.Addr, raw []byte) bool {
	before := e.addresses[addr].Value
	ok := takeCached(e.addresses, addr, raw)
	e.place(addr, before, e.addresses[addr].Value)
	return ok
}

// place moves an address from the instance and guest of one record to those of the next. nil means no record.
func (e *elastics) place(addr netip.Addr, before, after *ipam.Elastic) {
	e.use.move(addr, before, after)
	if before != nil && before.Association != nil {
		a := before.Association
		e.byInstance.remove(instanceAt(a.Network, a.Instance), addr)
		e.byGuest.remove(a.Guest, addr)
	}
	if after != nil && after.Association != nil {
		a := after.Association
		e.byInstance.add(instanceAt(a.Network, a.Instance), addr)
		e.byGuest.add(a.Guest, addr)
	}
}

// takeCached is setCached and reports whether the record could be decoded.
func takeCached[K comparable, T any](in map[K]Cached[T], key K, raw []byte) bool {
	setCached(in, key, raw)
	_, there := in[key]
	return there || raw == nil
}

// Account returns an account, or nil if it has no record.
func (ix *Index) Account(name string) *ipam.Account { return ix.elastic.accounts[name].Value }

// Accounts yields all accounts, in no order.
func (ix *Index) Accounts() iter.Seq2[string, *ipam.Account] { return values(ix.elastic.accounts) }

// ElasticRanges yields the ranges of elastic addresses that are not being copied, in no order.
func (ix *Index) ElasticRanges() iter.Seq2[ipam.ID, *ipam.ElasticRange] {
	return func(yield func(ipam.ID, *ipam.ElasticRange) bool) {
		for id, r := range ix.AllElasticRanges() {
			if !r.Moving && !yield(id, r) {
				return
			}
		}
	}
}

// AllElasticRanges yields all ranges of elastic addresses, in no order.
func (ix *Index) AllElasticRanges() iter.Seq2[ipam.ID, *ipam.ElasticRange] {
	return values(ix.elastic.ranges)
}

// Elastic returns an elastic address, or nil if it is free or no elastic address.
func (ix *Index) Elastic(addr netip.Addr) *ipam.Elastic { return ix.elastic.addresses[addr].Value }

// Elastics yields all elastic addresses that are not free, in no order.
func (ix *Index) Elastics() iter.Seq2[netip.Addr, *ipam.Elastic] { return values(ix.elastic.addresses) }

// AssociatedAs yields the elastic addresses associated with an instance on a network, under any form of its name.
func (ix *Index) AssociatedAs(network ipam.ID, instance string) iter.Seq[netip.Addr] {
	return ix.elastic.byInstance.Of(instanceAt(network, instance))
}

// AssociatedAt yields the elastic addresses whose association found this guest, on any network.
func (ix *Index) AssociatedAt(guest netip.Addr) iter.Seq[netip.Addr] {
	return ix.elastic.byGuest.Of(guest)
}

// Applied is an edge's last report about an address, or nil.
func (ix *Index) Applied(at AppliedAt) *ipam.Applied { return ix.elastic.applied[at].Value }

// AllApplied yields the edges' reports, in no order.
func (ix *Index) AllApplied() iter.Seq2[AppliedAt, *ipam.Applied] { return values(ix.elastic.applied) }

// NoElastic reports whether elastic addresses are turned off on this daemon.
func (c *Change) NoElastic() bool { return c.noElastic }

// NoElastic reports whether elastic addresses are turned off on this daemon.
func (s *Ledger) NoElastic() bool { return s.noElastic }

// SetAccount writes an account, or removes it if a is nil.
func (c *Change) SetAccount(name string, a *ipam.Account) error {
	return writeCached(c, c.index.elastic.accounts, name, AccountKey(name), a)
}

// SetElasticRange writes a range, or removes it if r is nil.
func (c *Change) SetElasticRange(id ipam.ID, r *ipam.ElasticRange) error {
	return writeCached(c, c.index.elastic.ranges, id, ElasticRangeKey(id), r)
}

// SetElastic writes an elastic address, or frees it if e is nil.
func (c *Change) SetElastic(addr netip.Addr, e *ipam.Elastic) error {
	known := &c.index.elastic
	before := known.addresses[addr].Value
	if err := writeCached(c, known.addresses, addr, ElasticKey(addr), e); err != nil {
		return err
	}
	known.place(addr, before, e)
	c.undo = append(c.undo, func() { known.place(addr, e, before) })
	return nil
}

// SetApplied writes an edge's report about an address, or removes it if a is nil.
func (c *Change) SetApplied(at AppliedAt, a *ipam.Applied) error {
	return writeCached(c, c.index.elastic.applied, at, AppliedKey(at), a)
}

// PutElastic writes a record of elastic addresses as bytes from another store, or removes it if raw is nil.
func (c *Change) PutElastic(key, raw []byte) error {
	before, err := c.tx.Get(key)
	if err != nil {
		return err
	}
	if raw == nil {
		err = c.tx.Delete(key)
	} else {
		err = c.tx.Put(key, raw)
	}
	if err != nil {
		return err
	}
	before = append([]byte(nil), before...)
	if len(before) == 0 {
		before = nil
	}
	c.undo = append(c.undo, func() { c.index.takeElastic(key, before) })
	c.index.takeElastic(key, raw)
	return nil
}

// lines describes the index of elastic addresses, for Verify.
func (e *elastics) lines(d description) {
	for name, a := range e.accounts {
		d.line("account %s: %s", name, a.Raw)
	}
	for id, r := range e.ranges {
		d.line("elastic range %s: %s", id, r.Raw)
	}
	for addr, one := range e.addresses {
		d.line("elastic address %s: %s", addr, one.Raw)
	}
	for at, addr := range e.byInstance.All() {
		d.line("elastic address %s is associated with %s of network %s", addr, at.Instance, at.Network)
	}
	for guest, addr := range e.byGuest.All() {
		d.line("elastic address %s was associated with the guest %s", addr, guest)
	}
	e.use.lines(d)
	for at, a := range e.applied {
		d.line("applied on %s: %s", at.Host, a.Raw)
	}
	for host, one := range e.sessions {
		d.line("edge session of %s: %s", host, one.Raw)
	}
}

// elasticUse holds the elastic addresses that are not free, so that the lowest free one is found quickly.
type elasticUse struct {
	taken4, taken6 *alloc.Set
	releasing      map[netip.Addr]struct{} // the released ones that still have a record
	held           map[string]int          // number of addresses by account, without system addresses
}

func newElasticUse() elasticUse {
	return elasticUse{taken4: alloc.NewSet(netip.PrefixFrom(netip.IPv4Unspecified(), 0)),
		taken6:    alloc.NewSet(netip.PrefixFrom(netip.IPv6Unspecified(), 0)),
		releasing: map[netip.Addr]struct{}{}, held: map[string]int{}}
}

func (u *elasticUse) of(addr netip.Addr) *alloc.Set {
	if addr.Is6() {
		return u.taken6
	}
	return u.taken4
}

// move replaces an address's record in the sets. nil means no record.
func (u *elasticUse) move(addr netip.Addr, before, after *ipam.Elastic) {
	if before != nil {
		u.of(addr).Remove(addr)
		delete(u.releasing, addr)
		u.hold(before, -1)
	}
	if after != nil {
		u.of(addr).Add(addr)
		u.hold(after, 1)
		if after.State == ipam.ElasticReleasing {
			u.releasing[addr] = struct{}{}
		}
	}
}

func (u *elasticUse) hold(one *ipam.Elastic, n int) {
	if one.State != ipam.ElasticAllocated || one.System {
		return
	}
	if u.held[one.Account] += n; u.held[one.Account] == 0 {
		delete(u.held, one.Account)
	}
}

func (u *elasticUse) lines(d description) {
	d.line("%d elastic addresses of IPv4 are not free, and %d of IPv6", u.taken4.Len(), u.taken6.Len())
	for addr := range u.releasing {
		d.line("elastic address %s was released", addr)
	}
	for account, n := range u.held {
		d.line("account %s has %d elastic addresses", account, n)
	}
}

// FreeElastic returns the lowest address of r without a record. It returns false if there is none.
func (ix *Index) FreeElastic(r netipx.IPRange) (netip.Addr, bool) {
	return ix.elastic.use.of(r.From()).NextFree(r)
}

// ReleasingElastics yields the released addresses that still have a record, in no order.
func (ix *Index) ReleasingElastics() iter.Seq[netip.Addr] { return maps.Keys(ix.elastic.use.releasing) }

// HeldElastics is the number of an account's addresses, without system addresses.
func (ix *Index) HeldElastics(account string) int { return ix.elastic.use.held[account] }
