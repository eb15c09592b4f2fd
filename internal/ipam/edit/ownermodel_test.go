package edit_test

import (
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"berth/internal/ipam"
)

// ownerModel is the slow, obvious model of the rules for owners: some networks of one subnet each, and what is known
// of each address. If Berth is free to choose an address, the model gets the chosen one and checks it.
type ownerModel struct {
	nets   map[string]*ownedNet
	now    time.Time
	wanted []ipam.AddReservation // all of the judged request, if it binds several
	unsure bool                  // one of several held addresses was chosen, and the model does not know which
}

type ownedNet struct {
	kind    string // manual or vip
	cidr    netip.Prefix
	hosts   []netip.Addr
	pools   map[string]ipam.Range // by name; the unnamed one exists
	static  []ipam.Range
	ruled   bool // api-* is prod/api/*, and web* takes from the pool web
	records map[netip.Addr]ownedRecord
	again   bool // the judged step ran before, too, and its outcome was hidden
}

// ownedRecord is what is known of an address: its holder and its owner.
type ownedRecord struct {
	held   bool
	old    bool // held since before the daemon's start, so its holder is in doubt
	name   string
	mac    ipam.MAC
	docker ipam.ID

	owner    string // "": nobody's
	kind     ipam.Kind
	nic      int
	slot     int
	replaced bool
	until    time.Time
}

// verdict is the model's answer to a step: the codes of a refusal, or none, and what is wrong with a chosen address.
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
	rec.held, rec.old, rec.name, rec.mac, rec.docker = false, false, "", ipam.MAC{}, ipam.ID{}
	return rec
}

// put writes a record, or deletes an empty one.
func (n *ownedNet) put(a netip.Addr, rec ownedRecord) {
	if rec == (ownedRecord{}) {
		delete(n.records, a)
		return
	}
	n.records[a] = rec
}

// owners returns the owners that a name can mean.
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

// poolOf returns the pool that a rule gives to a name or an owner; "" means any.
func (n *ownedNet) poolOf(name string) string {
	if n.ruled && strings.HasPrefix(name, "web") {
		return "web"
	}
	return ""
}

func (n *ownedNet) inBand(a netip.Addr) bool {
	return slices.ContainsFunc(n.static, func(r ipam.Range) bool { return r.Contains(a) })
}

// open reports whether Berth may choose an address from the pools of a name.
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

// choice checks an address that Berth chose from the pools, first from those without a name. If Berth refused
// something, it returns one.
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
			return got, verdict{wrong: "it gave " + got.String() +
				", which is not free, or not in the first pool that has a free one"}
		default:
			return got, verdict{}
		}
	}
	return got, no(ipam.NotEnoughCapacity)
}

// wanted lists an owner's wanted reservations by slot.
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

// ask is a request of a Docker network; got is its answer.
func (n *ownedNet) ask(req ipam.AddressRequest, got netip.Addr) verdict {
	take := func(v verdict) verdict {
		if !v.refused() && v.wrong == "" {
			rec := n.records[got]
			rec.held, rec.old, rec.name, rec.mac, rec.docker = true, false, req.Name, req.MAC, req.Pool
			n.records[got] = rec
		}
		return v
	}
	repeats := func(rec ownedRecord) bool {
		return rec.held && rec.old && rec.mac == req.MAC && rec.docker == req.Pool &&
			(req.Name == "" || req.Name == rec.name)
	}
	if req.Preferred.IsValid() {
		rec := n.records[req.Preferred]
		switch {
		case !slices.Contains(n.hosts, req.Preferred):
			return no(ipam.OutsideSubnet)
		case repeats(rec):
			return take(n.given(got, req.Preferred))
		case rec.held:
			return no(ipam.AlreadyInUse)
		case rec.owner != "" && req.Name != "" && rec.owner != req.MAC.String() &&
			!slices.Contains(n.owners(req.Name), rec.owner):
			return no(ipam.AlreadyInUse)
		}
		return take(n.given(got, req.Preferred))
	}
	for _, a := range n.hosts {
		if repeats(n.records[a]) {
			if n.again && !n.records[got].held {
				break // the first call gave this one, and the last one counts
			}
			if !repeats(n.records[got]) {
				return verdict{wrong: "it is a repetition, and was given " + got.String()}
			}
			return take(verdict{})
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

// given checks an address that can only be one.
func (n *ownedNet) given(got, want netip.Addr) verdict {
	if got != want && got.IsValid() {
		return verdict{wrong: "it gave " + got.String() + " and not " + want.String()}
	}
	return verdict{}
}

// release gives an address back.
func (n *ownedNet) release(a netip.Addr) { n.put(a, n.records[a].unheld()) }
