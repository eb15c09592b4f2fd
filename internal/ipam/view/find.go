package view

import (
	"cmp"
	"context"
	"iter"
	"net/netip"
	"slices"

	"berth/internal/allocator"
	"berth/internal/ipam"
	"berth/internal/ipam/edit"
	"berth/internal/ipam/ledger"
)

// Find yields all matches of a word, in the order of their marks: spaces, networks and their parts, what is known of
// each address, elastic addresses, accounts and hosts. An error is the last value. It reads the index from memory, and
// the records of addresses, which have the notes, in pages. It refuses a word that cannot match anything with
// ErrInvalid.
func (s Views) Find(ctx context.Context, f ipam.FindFilter) iter.Seq2[ipam.Found, error] {
	byMark := func(a, b ipam.Found) int { return a.Mark().Compare(b.Mark()) }
	return ledger.MergedEach(s.homes, 0, byMark, func(l *ledger.Ledger) iter.Seq2[ipam.Found, error] {
		return find(ctx, s.homes, l, f)
	})
}

func find(ctx context.Context, homes ledger.Homes, s *ledger.Ledger, f ipam.FindFilter) iter.Seq2[ipam.Found, error] {
	return func(yield func(ipam.Found, error) bool) {
		w, err := readWord(&f)
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			yield(ipam.Found{}, err)
			return
		}
		if known := s.Known(); w.container != "" && known.Containers != nil {
			w.containers = known.Containers(w.container)
		}
		q := &finding{homes: homes, s: s, f: &f, w: w, yield: yield}
		q.planned()
		if q.giveKept() && q.addresses(ctx) && q.owners(ctx) {
			q.others()
		}
	}
}

// finding is one search in progress.
type finding struct {
	homes ledger.Homes
	s     *ledger.Ledger
	f     *ipam.FindFilter
	w     *word
	plan  []ipam.Found // matches in the plan, which are yielded in order
	yield func(ipam.Found, error) bool
}

// wants reports whether the search includes things of a kind in a space.
func (q *finding) wants(kind, space string) bool {
	return (len(q.f.Kinds) == 0 || slices.Contains(q.f.Kinds, kind)) && (q.f.Space == "" || q.f.Space == space)
}

// give yields a match, and reports whether to continue.
func (q *finding) give(one ipam.Found, m matches) bool {
	if len(m.all) == 0 || !q.wants(one.Kind, one.Space) || one.Mark().Compare(q.f.After) <= 0 {
		return true
	}
	one.Why = m.all
	return q.yield(one, nil)
}

// keep saves a match for giveKept.
func (q *finding) keep(one ipam.Found, m matches) {
	if len(m.all) > 0 && q.wants(one.Kind, one.Space) {
		one.Why = m.all
		q.plan = append(q.plan, one)
	}
}

// giveKept yields the saved matches in order, and reports whether to continue.
func (q *finding) giveKept() bool {
	slices.SortFunc(q.plan, func(a, b ipam.Found) int { return a.Mark().Compare(b.Mark()) })
	for _, one := range q.plan {
		if one.Mark().Compare(q.f.After) > 0 && !q.yield(one, nil) {
			return false
		}
	}
	q.plan = nil
	return true
}

func (q *finding) matches() matches { return matches{w: q.w} }

// planned searches spaces, networks and their parts.
func (q *finding) planned() {
	for _, name := range ledger.Ask(q.s, (*ledger.Index).Spaces) {
		if !q.homes.Has(q.s, name) {
			continue
		}
		m := q.matches()
		m.name("name", name)
		q.keep(ipam.Found{Kind: ipam.FoundSpace, What: name, Space: name}, m)
	}
	for _, id := range networkIDs(q.s, ipam.NetworkFilter{Space: q.f.Space}) {
		q.s.Read(func(ix *ledger.Index) { // one lock for each network, so that a long list blocks nobody
			if nx := ix.NetworkIndex(id); nx.Record() != nil {
				q.network(ix, nx)
			}
		})
	}
}

func (q *finding) network(ix *ledger.Index, nx *ledger.NetworkIndex) {
	n := nx.Record()
	in := ipam.Found{Space: n.Space, Network: q.s.ShownName(ix, n), NetworkID: n.ID}
	m := q.matches()
	m.name("name", in.Network)
	if n.Name != in.Network {
		m.name("name", n.Name)
	}
	m.id(n.ID)
	m.tags(n.Tags)
	one := in
	one.Kind, one.What, one.ID = ipam.FoundNetwork, in.Network, n.ID
	q.keep(one, m)
	for _, id := range nx.Subnets() {
		q.subnet(ix, ix.Subnet(id).Record(), in)
	}
}

func (q *finding) subnet(ix *ledger.Index, sub *ipam.Subnet, in ipam.Found) {
	in.Subnet = sub.CIDR
	m := q.matches()
	m.cidr(sub.CIDR)
	m.name("name", sub.Name)
	m.text("note", sub.Note)
	m.id(sub.ID)
	for _, id := range sub.Attachments {
		m.id(id)
		if at := ix.Attachment(id); at != nil {
			m.name("asked_network", at.AskedNetwork)
		}
	}
	one := in
	one.Kind, one.What, one.ID = ipam.FoundSubnet, sub.CIDR.String(), sub.ID
	q.keep(one, m)
	for _, p := range sub.Pools {
		m := q.matches()
		m.name("name", p.Name)
		m.addresses(p.Range)
		one := in
		one.Kind, one.What, one.Name = ipam.FoundPool, p.Range.String(), p.Name
		q.keep(one, m)
	}
	for _, x := range sub.Exclusions {
		m := q.matches()
		m.addresses(x.Range)
		m.text("note", x.Note)
		one := in
		one.Kind, one.What = ipam.FoundExclusion, x.Range.String()
		q.keep(one, m)
	}
}

// ofAddresses are the kinds that come from the record of an address.
var ofAddresses = []string{ipam.LeaseTenure, ipam.FoundAddress, ipam.ReservationTenure}

// addresses searches the record of each address, and reports whether to continue. A search for exactly one address
// reads no other record.
func (q *finding) addresses(ctx context.Context) bool {
	group := ipam.FoundGroup(ipam.LeaseTenure)
	wanted := func(kind string) bool { return q.wants(kind, q.f.Space) }
	if q.f.After.Group > group || !slices.ContainsFunc(ofAddresses, wanted) {
		return true
	}
	all := subnets(q.s, q.f.Space, describe)
	begin := ipam.AddressFilter{AfterSpace: q.f.After.Space}
	if q.f.After.Group == group {
		begin.After = q.f.After.Addr
	}
	for i := range all {
		sub := &all[i]
		if past(&begin, sub) || q.w.exact && q.w.addr.IsValid() && !sub.CIDR.Contains(q.w.addr) {
			continue
		}
		for l, err := range q.recordsIn(ctx, sub) {
			if err != nil {
				q.yield(ipam.Found{}, err)
				return false
			}
			if !q.record(sub, l) {
				return false
			}
		}
	}
	return true
}

// recordsIn yields the records of a subnet that can match the word.
func (q *finding) recordsIn(ctx context.Context, sub *ipam.SubnetInfo) iter.Seq2[*ipam.Lease, error] {
	if q.w.exact && q.w.addr.IsValid() {
		return recordAt(ctx, q.s, sub.ID, q.w.addr, netip.Addr{})
	}
	return records(ctx, q.s, sub.ID, netip.Addr{})
}

// record searches the record of one address: its present or last holder, and its owner. It reports whether to continue.
func (q *finding) record(sub *ipam.SubnetInfo, l *ipam.Lease) bool {
	one := ipam.Found{What: l.Address.String(), Space: sub.Space, Network: sub.Network, NetworkID: sub.NetworkID,
		Subnet: sub.CIDR, Address: l.Address}
	if l.Kind != 0 {
		m := q.matches()
		m.address("address", l.Address)
		m.mac(l.MAC)
		m.number("id", l.ID)
		had := one
		had.Kind, had.State, had.Name, had.MAC, had.Host = ipam.LeaseTenure, "held", l.Name, l.MAC, l.Host
		switch {
		case !l.Held():
			had.State = "remembered"
			m.name("name", l.Name)
			m.container(l.Name)
		case l.Kind == ipam.External:
			had.Kind = ipam.FoundAddress
			m.name("owner", l.Name)
			m.text("note", l.Note)
		default:
			m.name("name", l.Name)
			had.MAC = q.endpoint(&m, sub.Space, l)
			if l.Kind == ipam.Gateway && l.Address == sub.Gateway {
				m.text("note", sub.GatewayNote)
			}
		}
		if !q.give(had, m) {
			return false
		}
	}
	r := l.Reservation
	if r == nil || !r.Until.IsZero() && !r.Until.After(q.s.Now()) {
		return true
	}
	m := q.matches()
	m.address("address", l.Address)
	m.name("owner", r.Owner)
	m.text("note", r.Note)
	one.Kind, one.Name = ipam.ReservationTenure, r.Owner
	return q.give(one, m)
}

// endpoint searches what the witness knows of the endpoint of a lease, and returns its MAC. If the request had none,
// this is the engine's.
func (q *finding) endpoint(m *matches, space string, l *ipam.Lease) ipam.MAC {
	if len(q.w.containers) == 0 && !q.w.asMAC() {
		return l.MAC
	}
	seen := q.s.Known().Sighting(space, l)
	if l.Attachment != (ipam.ID{}) {
		m.container(cmp.Or(seen.Container, l.Name))
	}
	if l.MAC != (ipam.MAC{}) {
		return l.MAC
	}
	m.mac(seen.MAC)
	return seen.MAC
}

// owners searches the owners in dynamic networks that have no address there.
func (q *finding) owners(ctx context.Context) bool {
	known, err := edit.DynamicReservations(ctx, q.s, ipam.AddressFilter{})
	if err != nil {
		q.yield(ipam.Found{}, err)
		return false
	}
	for _, info := range known {
		m := q.matches()
		m.name("owner", info.Owner)
		m.text("note", info.Note)
		q.keep(ipam.Found{Kind: ipam.ReservationTenure, What: info.Owner, Space: info.Space, Network: info.Network,
			NetworkID: info.NetworkID, Name: info.Owner}, m)
	}
	return q.giveKept()
}

// others searches what belongs to no network, and the address itself if it has no record.
func (q *finding) others() {
	q.s.Read(func(ix *ledger.Index) {
		for _, sx := range ix.Subnets() {
			q.free(ix, sx)
		}
		for addr, e := range ix.Elastics() {
			q.elastic(ix, addr, e)
		}
		for name := range ix.Accounts() {
			m := q.matches()
			m.name("name", name)
			q.keep(ipam.Found{Kind: ipam.FoundAccount, What: name}, m)
		}
		for id, r := range ix.ElasticRanges() {
			m := q.matches()
			m.addresses(r.Range)
			m.id(id)
			q.keep(ipam.Found{Kind: ipam.FoundRange, What: r.Range.String(), ID: id, Host: r.Host}, m)
		}
		for name, h := range ix.Hosts() {
			m := q.matches()
			m.name("name", name)
			m.id(h.ID)
			q.keep(ipam.Found{Kind: ipam.FoundHost, What: name, ID: h.ID, State: string(h.State)}, m)
		}
	})
	q.giveKept()
}

// free keeps the searched address if it is in a subnet and has no record.
func (q *finding) free(ix *ledger.Index, sx *ledger.SubnetIndex) {
	sub := sx.Record()
	n := ix.Network(sub.Network)
	if !q.w.addr.IsValid() || !sub.CIDR.Contains(q.w.addr) || sx.HasRecord(q.w.addr) || n == nil || n.Stage != "" {
		return
	}
	m := q.matches()
	m.address("address", q.w.addr)
	why := allocator.NotHost(sub.CIDR, q.w.addr)
	within := netip.PrefixFrom(q.w.addr, q.w.addr.BitLen())
	if state := newCounting(sx, within, q.s.Now()).state(q.w.addr); state != ipam.AddressFree {
		why = cmp.Or(why, string(state))
	}
	q.keep(ipam.Found{Kind: ipam.FoundFree, What: q.w.addr.String(), Space: sub.Space,
		Network: q.s.ShownName(ix, n), NetworkID: n.ID, Subnet: sub.CIDR, Address: q.w.addr, State: why}, m)
}

func (q *finding) elastic(ix *ledger.Index, addr netip.Addr, e *ipam.Elastic) {
	one := ipam.Found{Kind: ipam.ElasticTenure, What: addr.String(), ID: ipam.ElasticID(addr), Address: addr,
		State: string(e.State)}
	m := q.matches()
	m.address("address", addr)
	m.id(one.ID)
	if a := e.Association; a != nil {
		one.Name = a.Instance
		if n := ix.Network(a.Network); n != nil {
			one.Network, one.NetworkID, one.Space = q.s.ShownName(ix, n), n.ID, n.Space
		}
		m.name("instance", a.Instance)
		m.address("guest", a.Guest)
	}
	q.keep(one, m)
}
