package stores

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"berth/internal/alloc"
	"berth/internal/ipam"
	"berth/internal/ipam/edit"
	"berth/internal/ipam/ledger"
	"berth/store"
)

// group is a network, or all elastic addresses. It says which records the target must have, and so what is written,
// compared, cleared away and taken back.
type group struct {
	network *ipam.Network // nil: elastic addresses
	// units are the few records, in writing order. Each unit is one transaction.
	units [][]record
	// ranges are the many records: leases and owners
	ranges []*rangeCopy
	// collide notes what the target has in the way of a unit
	collide func(c *ledger.Change, unit int, wrong *ipam.PlanError) error
	first   func(*ledger.Change) error // runs with the first unit

	elastic *elasticCopy
	err     error // the first error of add
}

// record is a record that the target must have.
type record struct {
	what       string
	key, value []byte
}

// add adds a record to the last unit.
func (g *group) add(what string, key []byte, v any) {
	raw, plain := v.([]byte)
	if !plain {
		var err error
		if raw, err = ipam.EncodeJSON(v); g.err == nil {
			g.err = err
		}
	}
	last := len(g.units) - 1
	g.units[last] = append(g.units[last], record{what, key, raw})
}

func (g *group) unit() { g.units = append(g.units, nil) }

// read reads what the target must have of a part, without leases and owners. names are all parts to copy.
func (cp *copying) read(ctx context.Context, part string, names []string) (all []*group, err error) {
	if part == elasticPart {
		g := cp.elasticGroup(cp.wantedElastic(names))
		return []*group{g}, g.err
	}
	return cp.networks(ctx, cp.from, part, func(*ipam.Network) bool { return true })
}

// there reads what the target has of a part from an interrupted copy.
func (cp *copying) there(ctx context.Context, part string) (all []*group, err error) {
	if part != elasticPart {
		return cp.networks(ctx, cp.to, part, func(n *ipam.Network) bool { return n.Stage == ipam.Moving })
	}
	_, target, err := cp.both(ctx, part)
	if err != nil || target == nil {
		return nil, err
	}
	g := cp.elasticGroup(elasticIn(cp.to, true).ofMark(target))
	return []*group{g}, g.err
}

// left reads what the source has of a part that it has let go of.
func (cp *copying) left(ctx context.Context, part string) ([]*group, error) {
	if part != elasticPart {
		return cp.networks(ctx, cp.from, part, func(*ipam.Network) bool { return true })
	}
	g := cp.elasticGroup(elasticIn(cp.from, false))
	return []*group{g}, g.err
}

// networks reads networks of a space, by name.
func (cp *copying) networks(ctx context.Context, s *ledger.Ledger, space string,
	is func(*ipam.Network) bool) (all []*group, err error) {
	err = s.Look(ctx, func(c *ledger.Change) error {
		all = nil
		for _, n := range networksIn(c.Index(), space) {
			if !is(n) {
				continue
			}
			g, err := cp.readNetwork(c, n)
			if err != nil {
				return err
			}
			all = append(all, g)
		}
		return nil
	})
	return all, err
}

// networksIn lists the networks of a space by name, at any stage.
func networksIn(ix *ledger.Index, space string) (all []*ipam.Network) {
	for _, nx := range ix.Networks() {
		if n := nx.Record(); n != nil && n.Space == space {
			all = append(all, n)
		}
	}
	slices.SortFunc(all, func(a, b *ipam.Network) int { return strings.Compare(a.Name, b.Name) })
	return all
}

func (cp *copying) readNetwork(c *ledger.Change, n *ipam.Network) (*group, error) {
	if n.Stage == ipam.Arriving || n.Stage == ipam.Leaving {
		return nil, ipam.Refuse(ipam.ErrInUse, "network %s is being imported or removed; copy when that has ended",
			n.Name)
	}
	moving := *n
	moving.Stage = ipam.Moving
	g := &group{network: &moving}
	g.unit()
	g.add("network "+n.Name, ledger.NetworkKey(nil, n.ID), &moving)
	g.add("the name of network "+n.Name, ledger.NameKey(nil, n.Name), n.ID[:])
	subnets, err := edit.PlanOf(c, n).Subnets()
	if err != nil {
		return nil, err
	}
	for _, sub := range subnets {
		g.unit()
		for _, id := range sub.Attachments {
			at, err := c.Attachment(id)
			if errors.Is(err, ipam.ErrNotFound) {
				err = ipam.Help(fmt.Errorf("%w: the subnet %s of network %s names a pool %s that does not exist",
					ipam.ErrDamaged,
					sub.CIDR, n.Name, id), ipam.Advise(ipam.DoRunFsck))
			}
			if err != nil {
				return nil, err
			}
			here := *at // under its present name
			here.Host = cp.to.Host()
			g.add(fmt.Sprintf("the pool %s of network %s", id, n.Name), ledger.AttachmentKey(nil, id), &here)
		}
		g.add(fmt.Sprintf("the subnet %s of network %s", sub.CIDR, n.Name), ledger.SubnetKey(nil, sub.Space, sub.CIDR),
			sub)
		g.ranges = append(g.ranges, cp.leases(sub))
	}
	if n.Type == ipam.Dynamic {
		owners := store.Prefix(ledger.OwnerKey(n.ID, ""))
		g.ranges = append(g.ranges, &rangeCopy{keys: owners, limit: copyPage(cp.to), want: asItIs})
	}
	g.collide = func(c *ledger.Change, unit int, wrong *ipam.PlanError) error {
		if unit == 0 {
			return networkCollides(c, n, wrong)
		}
		return subnetCollides(c, n, subnets[unit-1], wrong)
	}
	return g, g.err
}

// leases copies the leases of a subnet, converted for the target.
func (cp *copying) leases(sub *ipam.Subnet) *rangeCopy {
	want := func(rec store.Record) ([]byte, error) {
		_, addr, _ := ledger.LeaseKeyParts(rec.Key)
		l, err := ipam.DecodeLease(addr, rec.Value)
		if err != nil {
			return nil, err
		}
		if l = cp.lease(sub, l); l == nil {
			return nil, nil
		}
		return ipam.EncodeLease(nil, l), nil
	}
	return &rangeCopy{keys: ledger.LeasesOf(sub.ID), limit: copyPage(cp.to), want: want}
}

// lease converts the record of an address for the target; nil for none. Headroom means nothing outside of its store.
func (cp *copying) lease(sub *ipam.Subnet, l *ipam.Lease) *ipam.Lease {
	if l.Held() && l.Kind == ipam.Headroom {
		l = l.Unheld()
	}
	switch {
	case l == nil || l.Remembered() && l.Reservation == nil && !alloc.Usable(sub.CIDR).Contains(l.Address):
		return nil
	case !l.Held() || l.Attachment == (ipam.ID{}) || l.Host == cp.to.Host():
		return l
	}
	here := *l
	here.Host = cp.to.Host()
	return &here
}

// copyPage is how many records a transaction of a copy writes.
func copyPage(s *ledger.Ledger) int { return 2 * s.Page() }

// put changes a key from what it has to what it must have, and updates the index. nil means no record.
func put(c *ledger.Change, key, has, want []byte) error {
	switch key[0] {
	case ledger.NameKeys:
		return nil // goes with its network
	case ledger.NetworkKeys:
		return set(want, func(n *ipam.Network) error { return c.SetNetwork(ipam.ID(key[1:]), n) })
	case ledger.AttachmentKeys:
		return set(want, func(at *ipam.Attachment) error { return c.SetAttachment(ipam.ID(key[1:]), at) })
	case ledger.SubnetKeys:
		if want == nil {
			return set(has, c.RemoveSubnet)
		}
		return set(want, c.SetSubnet)
	case ledger.DynamicKeys:
		return set(want, func(o *ledger.DynamicOwner) error {
			return c.SetOwner(ipam.ID(key[1:17]), string(key[17:]), o)
		})
	case ledger.LeaseKeys:
		return putLease(c, key, has, want)
	case ledger.ElasticKeys:
		if err := set(want, func(e *ipam.Elastic) error { skipElastic(c, e); return nil }); err != nil {
			return err
		}
	}
	c.TouchPlan()
	return c.PutElastic(key, want)
}

// set passes on what a record says, or nil without one.
func set[T any](raw []byte, to func(*T) error) error {
	if raw == nil {
		return to(nil)
	}
	v := new(T)
	if err := ipam.DecodeJSON("a copied record", raw, v); err != nil {
		return err
	}
	return to(v)
}

func putLease(c *ledger.Change, key, has, want []byte) error {
	subnet, addr, _ := ledger.LeaseKeyParts(key)
	var known [2]*ipam.Lease
	for i, raw := range [][]byte{has, want} {
		if raw == nil {
			continue
		}
		l, err := ipam.DecodeLease(addr, raw)
		if err != nil {
			return err
		}
		known[i] = l
	}
	if known[1] != nil {
		c.SkipIDs(known[1].ID)
	}
	return c.SetLease(subnet, addr, known[0], known[1])
}

// write writes a part to the target: first the units of all groups, so that they are taken there, then the ranges.
func (cp *copying) write(ctx context.Context, part string, all []*group) error {
	if part != elasticPart {
		if err := cp.to.Update(ctx, func(c *ledger.Change) error { return c.EnsureSpace(part) }); err != nil {
			return err
		}
	}
	stale, err := cp.stale(ctx, part, all)
	if err != nil {
		return err
	}
	if err := cp.clear(ctx, cp.to, stale); err != nil {
		return err
	}
	for _, g := range all {
		if err := cp.claim(ctx, g); err != nil {
			return err
		}
	}
	for _, g := range all {
		for _, rc := range g.ranges {
			if err := rc.into(ctx, cp.from.View, cp.to, cp.step); err != nil {
				return err
			}
		}
	}
	return eachEvent(ctx, cp.from, part, copyPage(cp.to),
		func(page []store.Record) error { return cp.writeEvents(ctx, page) })
}

// stale returns the groups of an interrupted copy that have changed since.
func (cp *copying) stale(ctx context.Context, part string, all []*group) (stale []*group, err error) {
	wanted := map[string][]byte{}
	for _, g := range all {
		for _, r := range slices.Concat(g.units...) {
			wanted[string(r.key)] = r.value
		}
	}
	there, err := cp.there(ctx, part)
	for _, g := range there {
		if slices.ContainsFunc(slices.Concat(g.units...), func(r record) bool {
			return !bytes.Equal(wanted[string(r.key)], r.value)
		}) {
			stale = append(stale, g)
		}
	}
	return stale, err
}

// claim writes the units of a group that are not there yet.
func (cp *copying) claim(ctx context.Context, g *group) error {
	for i, next := 0, 0; i < len(g.units); i = next {
		did := 0
		err := cp.to.Update(ctx, func(c *ledger.Change) error {
			wrong := new(ipam.PlanError)
			if i == 0 && g.first != nil {
				if err := g.first(c); err != nil {
					return err
				}
			}
			for next, did = i, 0; next < len(g.units) && did < copyPage(cp.to); next++ {
				if err := errors.Join(g.collide(c, next, wrong), wrong.Err()); err != nil {
					return err
				}
				for _, r := range g.units[next] {
					has, err := c.Tx().Get(r.key)
					if err == nil && !bytes.Equal(has, r.value) {
						err = put(c, r.key, nil, r.value)
					}
					if err != nil {
						return err
					}
				}
				did += len(g.units[next])
			}
			return nil
		})
		if err != nil {
			return err
		}
		cp.step(did)
	}
	return nil
}

// clear removes groups with everything in them, without events, because another store has them or will have them.
// Leases go before their subnet, and attachments with it, so that nobody takes the rest for something that was given
// up.
func (cp *copying) clear(ctx context.Context, s *ledger.Ledger, all []*group) error {
	for _, g := range all {
		for _, rc := range g.ranges {
			if err := (&rangeCopy{keys: rc.keys, limit: copyPage(s)}).into(ctx, nothing, s, cp.step); err != nil {
				return err
			}
		}
		for end, next := len(g.units), 0; end > 0; end = next {
			did := 0
			err := s.Update(ctx, func(c *ledger.Change) error {
				for next, did = end, 0; next > 0 && did < copyPage(s); next-- {
					for _, r := range g.units[next-1] {
						if err := put(c, r.key, r.value, nil); err != nil {
							return err
						}
					}
					did += len(g.units[next-1])
				}
				return nil
			})
			if err != nil {
				return err
			}
			cp.step(did)
		}
	}
	return nil
}
