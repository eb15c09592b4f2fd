package ipam_test

import (
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"berth/internal/ipam"
)

// ownerModel is the rules of owners at their slowest and plainest: some networks of one subnet each, and what is known of each of
// their addresses. Where Berth is free to choose an address, the model is told which one it chose, and says whether it might.
type ownerModel struct {
	nets   map[string]*ownedNet
	now    time.Time
	unsure bool // one of several addresses in hand was chosen without being told which
}

type ownedNet struct {
	kind    string // manual or vip
	cidr    netip.Prefix
	hosts   []netip.Addr
	pools   map[string]ipam.Range // by name; the nameless one is there
	static  []ipam.Range
	ruled   bool // api-* is prod/api/*, and web* takes from the pool web
	records map[netip.Addr]ownedRecord
}

// ownedRecord is what is known of an address: who has it, and whose it is.
type ownedRecord struct {
	held     bool
	external bool
	name     string
	mac      ipam.MAC
	docker   ipam.ID

	owner    string // "": nobody's
	kind     ipam.Kind
	nic      int
	slot     int
	replaced bool
	until    time.Time
}

// verdict is what the model says to a step: the codes with which it may be refused, or none; and whether what was chosen was free
// to be.
type verdict struct {
	codes []ipam.Code
	wrong string
}

func (v verdict) refused() bool { return len(v.codes) > 0 }

func no(codes ...ipam.Code) verdict { return verdict{codes: codes} }

func (m *ownerModel) clone() *ownerModel {
	c := &ownerModel{nets: map[string]*ownedNet{}, now: m.now}
	for name, n := range m.nets {
		other := *n
		other.static, other.records = slices.Clone(n.static), maps.Clone(n.records)
		c.nets[name] = &other
	}
	return c
}

func (rec ownedRecord) unowned() ownedRecord {
	rec.owner, rec.kind, rec.nic, rec.slot, rec.replaced, rec.until = "", 0, 0, 0, false, time.Time{}
	return rec
}

func (rec ownedRecord) unheld() ownedRecord {
	rec.held, rec.external, rec.name, rec.mac, rec.docker = false, false, "", ipam.MAC{}, ipam.ID{}
	return rec
}

// put writes a record, or none where it says nothing.
func (n *ownedNet) put(a netip.Addr, rec ownedRecord) {
	if rec == (ownedRecord{}) {
		delete(n.records, a)
		return
	}
	n.records[a] = rec
}

// owners are whom a name can mean, of those that there are in the tests; of the table's names each is a row.
func (n *ownedNet) owners(name string) []string {
	switch name {
	case "":
		return nil
	case "shop-web-1", "shop_web_1", "0123456789ab_shop-web-1":
		return []string{"shop/web/1"}
	case "api-1":
		if n.ruled {
			return []string{"prod/api/1"}
		}
		return nil
	}
	return []string{name}
}

// poolOf is the pool that a rule gives a name or an owner; "" for any.
func (n *ownedNet) poolOf(name string) string {
	if n.ruled && strings.HasPrefix(name, "web") {
		return "web"
	}
	return ""
}

func (n *ownedNet) inBand(a netip.Addr) bool {
	return slices.ContainsFunc(n.static, func(r ipam.Range) bool { return r.Contains(a) })
}

// open tells whether anybody may be given an address out of the pools of a name.
func (n *ownedNet) open(a netip.Addr, pool string) bool {
	if !slices.Contains(n.hosts, a) || n.inBand(a) {
		return false
	}
	for name, r := range n.pools {
		if r.Contains(a) && (pool == "" || pool == name) {
			return true
		}
	}
	return false
}

// choice judges an address that Berth chose freely out of pools, the nameless one first. Where it chose none, because it refuses
// something, it is told one.
func (n *ownedNet) choice(got netip.Addr, pool string) (netip.Addr, verdict) {
	if n.kind == "vip" {
		return got, no(ipam.WrongType)
	}
	for _, name := range []string{"", "web"} {
		free := func(a netip.Addr) bool {
			rec := n.records[a]
			return n.pools[name].Contains(a) && n.open(a, pool) && !rec.held && rec.owner == ""
		}
		at := slices.IndexFunc(n.hosts, free)
		switch {
		case at < 0:
		case !got.IsValid():
			return n.hosts[at], verdict{}
		case !free(got):
			return got, verdict{wrong: "it gave " + got.String() + ", which is not free, or not in the first pool that has a free one"}
		default:
			return got, verdict{}
		}
	}
	return got, no(ipam.NotEnoughCapacity)
}

// wanted lists the addresses that are reserved for an owner and wanted, by slot.
func (n *ownedNet) wanted(owner string) (all []netip.Addr) {
	for a, rec := range n.records {
		if rec.owner == owner && owner != "" && !rec.replaced {
			all = append(all, a)
		}
	}
	slices.SortFunc(all, func(a, b netip.Addr) int {
		x, y := n.records[a], n.records[b]
		return (x.nic-y.nic)*100 + x.slot - y.slot
	})
	return all
}

// ask is the request of a Docker network for an address; got is what it was given.
func (n *ownedNet) ask(req ipam.AddressRequest, got netip.Addr) verdict {
	take := func(v verdict) verdict {
		if !v.refused() && v.wrong == "" {
			rec := n.records[got]
			rec.held, rec.name, rec.mac, rec.docker = true, req.Name, req.MAC, req.Pool
			n.records[got] = rec
		}
		return v
	}
	repeats := func(rec ownedRecord) bool {
		return rec.held && rec.mac == req.MAC && rec.docker == req.Pool && (req.Name == "" || req.Name == rec.name)
	}
	if req.Preferred.IsValid() {
		rec := n.records[req.Preferred]
		switch {
		case !slices.Contains(n.hosts, req.Preferred):
			return no(ipam.OutsideSubnet)
		case repeats(rec):
			return n.given(got, req.Preferred)
		case rec.held:
			return no(ipam.AlreadyInUse)
		case rec.owner != "" && req.Name != "" && rec.owner != req.MAC.String() && !slices.Contains(n.owners(req.Name), rec.owner):
			return no(ipam.AlreadyInUse)
		}
		return take(n.given(got, req.Preferred))
	}
	for _, a := range n.hosts {
		if repeats(n.records[a]) {
			if !repeats(n.records[got]) {
				return verdict{wrong: "it is a repetition, and was given " + got.String()}
			}
			return verdict{}
		}
	}
	for _, owner := range append(n.owners(req.Name), req.MAC.String()) {
		own := n.wanted(owner)
		for _, a := range own {
			if !n.records[a].held {
				return take(n.given(got, a))
			}
		}
		if len(own) > 0 {
			return no(ipam.AlreadyInUse)
		}
	}
	_, v := n.choice(got, n.poolOf(req.Name))
	return take(v)
}

// given is the verdict on an address that can be no other.
func (n *ownedNet) given(got, want netip.Addr) verdict {
	if got != want && got.IsValid() {
		return verdict{wrong: "it gave " + got.String() + " and not " + want.String()}
	}
	return verdict{}
}

// release gives an address back.
func (n *ownedNet) release(a netip.Addr) { n.put(a, n.records[a].unheld()) }

// reserve is one AddReservation: the wishes for given addresses first. got is what was given, by slot.
func (m *ownerModel) reserve(e *ipam.AddReservation, got []netip.Addr, chosen func(ipam.Wish) bool) verdict {
	n := m.nets[e.Network]
	if twice(e.Wishes) {
		return no(ipam.AlreadyExists, ipam.AlreadyInUse, ipam.OutsideSubnet, ipam.WrongType, ipam.NotEnoughCapacity) // whatever is seen first
	}
	for _, a := range n.wanted(e.Owner) {
		if n.records[a].nic != e.Number {
			return no(ipam.AlreadyExists)
		}
	}
	wishes := slices.DeleteFunc(slices.Clone(e.Wishes), func(w ipam.Wish) bool { return !chosen(w) })
	if e.Replace {
		n.changePlaces(e, wishes)
	}
	for _, byAddress := range []bool{true, false} {
		for _, w := range wishes {
			if w.Address.IsValid() != byAddress {
				continue
			}
			var a netip.Addr
			if w.Slot < len(got) {
				a = got[w.Slot]
			}
			if v := m.reserveSlot(n, e, w, a); v.refused() || v.wrong != "" {
				return v
			}
		}
	}
	return verdict{}
}

// twice tells whether an address is wished for in two places.
func twice(wishes []ipam.Wish) bool {
	seen := map[netip.Addr]bool{}
	for _, w := range wishes {
		if w.Address.IsValid() && seen[w.Address] {
			return true
		}
		seen[w.Address] = true
	}
	return false
}

// changePlaces gives addresses of the owner, wished for in other slots, these slots; what was there before is replaced, unless it
// has moved itself.
func (n *ownedNet) changePlaces(e *ipam.AddReservation, wishes []ipam.Wish) {
	moved := map[netip.Addr]bool{}
	into := map[int]bool{}
	before := maps.Clone(n.records)
	for _, w := range wishes {
		if rec := before[w.Address]; w.Address.IsValid() && rec.owner == e.Owner && !rec.replaced && rec.slot != w.Slot {
			rec.slot = w.Slot
			n.records[w.Address] = rec
			moved[w.Address], into[w.Slot] = true, true
		}
	}
	for a, rec := range before {
		if rec.owner == e.Owner && !rec.replaced && !moved[a] && into[rec.slot] {
			rec.replaced = true
			n.records[a] = rec
		}
	}
}

func (m *ownerModel) reserveSlot(n *ownedNet, e *ipam.AddReservation, w ipam.Wish, got netip.Addr) verdict {
	has, there := netip.Addr{}, false
	for _, a := range n.wanted(e.Owner) {
		if n.records[a].slot == w.Slot {
			has, there = a, true
		}
	}
	meets := func(a netip.Addr) bool {
		return w.Address.IsValid() && w.Address == a || !w.Address.IsValid() && (w.Pool == "" || n.pools[w.Pool].Contains(a))
	}
	static := w.Address.IsValid() && !e.Automatic
	if e.Automatic && w.Address.IsValid() && there && meets(has) && (n.kind == "vip" || n.inBand(has)) {
		return no(ipam.WrongType)
	}
	switch {
	case there && meets(has):
		rec := n.records[has]
		if static || w.Address.IsValid() || n.kind != "vip" && !n.inBand(has) {
			rec.kind = map[bool]ipam.Kind{true: ipam.Static, false: ipam.Automatic}[static]
		}
		rec.until = m.end(e, rec.until)
		n.records[has] = rec
		return n.given(got, has)
	case there && !e.Replace:
		return no(ipam.AlreadyExists)
	}
	a, v := m.toReserve(n, e, w, got, meets)
	if e.Automatic && w.Address.IsValid() && (n.kind == "vip" || n.inBand(a)) {
		return no(append(v.codes, ipam.WrongType)...)
	}
	if v.refused() || v.wrong != "" {
		return v
	}
	if there {
		old := n.records[has]
		old.replaced = true
		n.records[has] = old
	}
	rec := n.records[a]
	rec.owner, rec.nic, rec.slot, rec.replaced, rec.until = e.Owner, e.Number, w.Slot, false, m.end(e, time.Time{})
	if static || w.Address.IsValid() || n.kind != "vip" && !n.inBand(a) { // else it is the static one that it was
		rec.kind = map[bool]ipam.Kind{true: ipam.Static, false: ipam.Automatic}[static]
	}
	n.records[a] = rec
	return verdict{}
}

// end is when an owner's time is over, as a wish says or as it was.
func (m *ownerModel) end(e *ipam.AddReservation, before time.Time) time.Time {
	if e.For > 0 {
		return m.now.Add(time.Duration(e.For))
	}
	return before
}

// toReserve is the address for a wish that nothing meets yet: the one it names, one of the owner's that was replaced in the same
// slot, one that the owner has in hand, or a free one.
func (m *ownerModel) toReserve(n *ownedNet, e *ipam.AddReservation, w ipam.Wish, got netip.Addr, meets func(netip.Addr) bool) (netip.Addr, verdict) {
	if a := w.Address; a.IsValid() {
		rec := n.records[a]
		own := n.holds(rec, e.Owner)
		switch {
		case !slices.Contains(n.hosts, a):
			return a, no(ipam.OutsideSubnet)
		case rec.owner != "" && rec.owner != e.Owner, rec.held && !own && !e.Force:
			return a, no(ipam.AlreadyInUse)
		case rec.owner == e.Owner && !rec.replaced:
			return a, no(ipam.AlreadyExists)
		}
		return a, n.given(got, a)
	}
	pool := w.Pool
	if pool == "" {
		pool = n.poolOf(e.Owner)
	}
	for _, from := range []func(netip.Addr, ownedRecord) bool{
		func(a netip.Addr, rec ownedRecord) bool {
			return rec.owner == e.Owner && rec.replaced && rec.nic == e.Number && rec.slot == w.Slot && meets(a)
		},
		func(a netip.Addr, rec ownedRecord) bool {
			return n.kind != "vip" && rec.held && rec.owner == "" && n.holds(rec, e.Owner) && n.open(a, pool)
		},
	} {
		all := slices.DeleteFunc(slices.Clone(n.hosts), func(a netip.Addr) bool { return !from(a, n.records[a]) })
		switch {
		case len(all) == 0:
		case !got.IsValid():
			m.unsure = m.unsure || len(all) > 1
			return all[0], verdict{}
		case !from(got, n.records[got]):
			return got, verdict{wrong: "it gave " + got.String() + ", though the owner has had another one"}
		default:
			return got, verdict{}
		}
	}
	return n.choice(got, pool)
}

// holds tells whether what is held is in the hands of an owner.
func (n *ownedNet) holds(rec ownedRecord, owner string) bool {
	return rec.held && (slices.Contains(n.owners(rec.name), owner) || rec.mac != (ipam.MAC{}) && rec.mac.String() == owner)
}

// bind makes what is wanted what is reserved; got is what was given, in the order of the owners.
func (m *ownerModel) bind(e *ipam.BindReservations, got []netip.Addr) verdict {
	wishes := func(net, owner string, nic, slot int) bool {
		return slices.ContainsFunc(e.Wanted, func(one ipam.AddReservation) bool {
			return one.Network == net && one.Owner == owner && one.Number == nic &&
				slices.ContainsFunc(one.Wishes, func(w ipam.Wish) bool { return w.Slot == slot })
		})
	}
	seen := map[[2]string]bool{}
	for _, one := range e.Wanted {
		if twice(one.Wishes) {
			return m.reserve(&one, nil, nil)
		}
		if seen[[2]string{one.Network, one.Owner}] {
			return no(ipam.AlreadyExists)
		}
		seen[[2]string{one.Network, one.Owner}] = true
		for net, n := range m.nets {
			for a, rec := range n.records {
				if rec.owner == one.Owner && !wishes(net, one.Owner, rec.nic, rec.slot) {
					rec.replaced = true
					n.records[a] = rec
				}
			}
		}
	}
	for _, byAddress := range []bool{true, false} {
		rest := got
		for _, one := range e.Wanted {
			one.Replace = true
			var mine []netip.Addr
			if len(rest) >= len(one.Wishes) {
				mine, rest = rest[:len(one.Wishes)], rest[len(one.Wishes):]
			}
			v := m.reserve(&one, mine, func(w ipam.Wish) bool { return w.Address.IsValid() || !byAddress })
			if v.refused() || v.wrong != "" {
				return v
			}
		}
	}
	return verdict{}
}

// end is ReleaseOwner.
func (m *ownerModel) endOwner(e *ipam.ReleaseOwner) {
	of := func(name string) bool { return name == e.Owner || e.Under && strings.HasPrefix(name, e.Owner+"/") }
	if e.Replaced {
		m.endReplaced(of)
		return
	}
	for _, n := range m.nets {
		for a, rec := range n.records {
			if of(rec.owner) {
				rec = rec.unowned()
			}
			if rec.external && of(rec.name) {
				rec = rec.unheld()
			}
			n.put(a, rec)
		}
	}
}

// endReplaced ends what was replaced where what replaced it is in use: the address in the same place, or, where there is none,
// any of the owner's.
func (m *ownerModel) endReplaced(of func(string) bool) {
	before := m.clone()
	for name, n := range m.nets {
		for a, rec := range before.nets[name].records {
			if !of(rec.owner) || !rec.replaced {
				continue
			}
			there, runs, any := false, false, false
			for other, x := range before.nets {
				for _, w := range x.records {
					if w.owner != rec.owner || w.replaced {
						continue
					}
					any = any || w.held
					if other == name && w.nic == rec.nic && w.slot == rec.slot {
						there, runs = true, w.held
					}
				}
			}
			if there && runs || !there && any {
				n.put(a, n.records[a].unowned())
			}
		}
	}
}

// unreserve ends the reservation of one address, or with the zero one of all. Where a wanted one goes, one that it had replaced is
// wanted again: again is which.
func (m *ownerModel) unreserve(e *ipam.RemoveReservation, again func(netip.Addr) bool) verdict {
	n := m.nets[e.Network]
	var gone []ownedRecord
	for a, rec := range n.records {
		if rec.owner == e.Owner && (!e.Address.IsValid() || e.Address == a) {
			gone = append(gone, rec)
			n.put(a, rec.unowned())
		}
	}
	if len(gone) == 0 {
		return no(ipam.IPMissing)
	}
	if !e.Address.IsValid() || gone[0].replaced {
		return verdict{}
	}
	candidates, chosen := 0, 0
	for a, rec := range n.records {
		if rec.owner != e.Owner || !rec.replaced || rec.nic != gone[0].nic || rec.slot != gone[0].slot {
			continue
		}
		if candidates++; again(a) {
			chosen++
			rec.replaced = false
			n.records[a] = rec
		}
	}
	if chosen != min(candidates, 1) {
		return verdict{wrong: "what was replaced is not wanted again"}
	}
	return verdict{}
}

// take is TakeAddress for the first place of an owner's first interface.
func (n *ownedNet) take(owner string, w ipam.Wish, got netip.Addr) verdict {
	for a, rec := range n.records {
		if !rec.external || rec.name != owner {
			continue
		}
		if w.Address.IsValid() && w.Address != a || w.Pool != "" && !n.pools[w.Pool].Contains(a) {
			return no("") // of no code: the interface is there, and otherwise
		}
		return n.given(got, a)
	}
	_, v := n.choice(got, w.Pool)
	own := n.wanted(owner)
	at := slices.IndexFunc(own, func(a netip.Addr) bool { return !n.records[a].held && (w.Pool == "" || n.open(a, w.Pool)) })
	rec := n.records[w.Address]
	switch {
	case w.Address.IsValid() && !slices.Contains(n.hosts, w.Address):
		return no(ipam.OutsideSubnet)
	case w.Address.IsValid() && (rec.held || rec.owner != "" && rec.owner != owner):
		return no(ipam.AlreadyInUse)
	case w.Address.IsValid():
		v = n.given(got, w.Address)
	case at >= 0:
		v = n.given(got, own[at])
	}
	if !v.refused() && v.wrong == "" {
		rec := n.records[got]
		rec.held, rec.external, rec.name = true, true, owner
		n.records[got] = rec
	}
	return v
}
