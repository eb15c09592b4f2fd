package stores

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"slices"

	"berth/internal/ipam"
	"berth/internal/ipam/edit"
	"berth/internal/ipam/ledger"
	"berth/store"
)

// check compares the parts of the source with what the target has, and counts them. The error lists all collisions.
func (cp *copying) check(ctx context.Context, names []string, report *ipam.CopyReport) error {
	if err := edit.Finish(ctx, cp.from); err != nil { // so that nothing is copied that is about to end
		return err
	}
	wrong := new(ipam.PlanError)
	if why := cp.elasticStays(names); why != "" && !slices.Contains(names, elasticPart) {
		cp.staying(names, why, wrong)
	}
	for _, name := range names {
		source, _, err := cp.both(ctx, name)
		if err != nil {
			return err
		}
		all, err := cp.read(ctx, name, names)
		if err != nil {
			return err
		}
		if source == nil || source.Stage == copyFrozen { // else it is the target's already
			if err := cp.collisions(ctx, all, names, wrong); err != nil {
				return err
			}
		}
		records, err := cp.hold(ctx, name, all, nil, report)
		if err != nil {
			return err
		}
		cp.total += 3 * records // each is written, compared and cleared away
	}
	return wrong.Err()
}

// collisions notes what the target has already, and which other hosts use what is copied.
func (cp *copying) collisions(ctx context.Context, all []*group, names []string, wrong *ipam.PlanError) error {
	for _, g := range all {
		if g.elastic != nil {
			cp.leftBehind(g.elastic, names, wrong)
		}
	}
	err := cp.to.Look(ctx, func(c *ledger.Change) error {
		for _, g := range all {
			for unit := range g.units {
				if err := g.collide(c, unit, wrong); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil || cp.from.Member() == nil {
		return err
	}
	return cp.from.Look(ctx, func(c *ledger.Change) error {
		for _, g := range all {
			if err := ownAlone(c, g.network); err != nil {
				wrong.Add(0, "%v", err)
			}
		}
		return nil
	})
}

func networkCollides(c *ledger.Change, n *ipam.Network, wrong *ipam.PlanError) error {
	if known := c.Index().Network(n.ID); known != nil {
		if known.Stage != ipam.Moving { // else it is from the interrupted copy
			wrong.Add(0, "network %s of space %s is already in the target, as %s in space %s, with the same id %s",
				n.Name, n.Space, known.Name, known.Space, n.ID)
		}
		return nil
	}
	raw, err := c.Tx().Get(ledger.NameKey(nil, n.Name))
	if err != nil || len(raw) != len(ipam.ID{}) {
		return err
	}
	other := c.Index().Network(ipam.ID(raw))
	if other == nil {
		other = &ipam.Network{ID: ipam.ID(raw)}
	}
	wrong.AddHelp([]ipam.Advice{ipam.Advise(ipam.DoRenameNetwork)}, 0,
		"the target already has a different network named %s (id %s, space %s); this one has the id %s, in the "+
			"space %s", n.Name, other.ID.Short(), other.Space, n.ID.Short(), n.Space)
	return nil
}

func subnetCollides(c *ledger.Change, n *ipam.Network, sub *ipam.Subnet, wrong *ipam.PlanError) error {
	if c.Index().Subnet(sub.ID) != nil {
		return nil // it goes with its network
	}
	other, err := c.Overlapping(sub.Space, sub.CIDR, ipam.ID{})
	if err != nil {
		return err
	}
	if other != nil {
		wrong.Add(0, "the subnet %s of network %s overlaps %s, which network %s of space %s has in the target",
			sub.CIDR, n.Name, other.CIDR, c.NetworkName(other.Network), other.Space)
	}
	if err := c.NoElasticIn(sub.CIDR); err != nil {
		wrong.Add(0, "network %s does not fit into the target: %v", n.Name, err)
	}
	for _, id := range sub.Attachments {
		if c.Index().Attachment(id) != nil {
			wrong.Add(0, "the pool %s of network %s is already in the target", id, n.Name)
		}
	}
	return nil
}

// errDiffers means that a record was read back different from what was written.
var errDiffers = errors.New("the copy differs")

// compare reads a whole part back and compares it with the source, record by record.
func (cp *copying) compare(ctx context.Context, part string, all []*group, report *ipam.CopyReport) error {
	back := cp.opt.ReadBack
	if back == nil {
		back = cp.to.Store()
	}
	if _, err := cp.hold(ctx, part, all, back, report); err != nil {
		return err
	}
	stale, err := cp.stale(ctx, part, all)
	if err == nil && len(stale) > 0 {
		err = fmt.Errorf("%w: the target has records of %s that the source does not have", errDiffers, partName(part))
	}
	return err
}

// hold counts a part, and compares it with what was read back; nil: with nothing.
func (cp *copying) hold(ctx context.Context, part string, all []*group, back store.Store,
	report *ipam.CopyReport) (records int, err error) {
	space := ipam.CopiedSpace{Name: part, Networks: []ipam.CopiedNetwork{}}
	digest := ""
	for _, g := range all {
		t := newTally(g)
		err := cp.from.View(ctx, func(from store.Tx) error {
			if t = newTally(g); back == nil {
				return t.all(ctx, from, nil)
			}
			return back.View(ctx, func(to store.Tx) error {
				t = newTally(g)
				return t.all(ctx, from, to)
			})
		})
		if err != nil {
			return 0, err
		}
		if records += t.records; back != nil {
			digest = hex.EncodeToString(t.digest.Sum(nil))
			cp.step(t.records)
		}
		if t.Digest = digest; g.network != nil {
			space.Networks = append(space.Networks, t.CopiedNetwork)
		}
	}
	err = eachEvent(ctx, cp.from, part, copyPage(cp.from), func(page []store.Record) error {
		space.Events += len(page)
		if back == nil {
			return nil
		}
		cp.step(len(page))
		return back.View(ctx, func(tx store.Tx) error { return compareEvents(tx, page) })
	})
	if part != elasticPart {
		report.Spaces = append(report.Spaces, space)
		return records + space.Events, err
	}
	report.Elastic = &all[0].elastic.CopiedElastic
	if report.Elastic.Digest = digest; back != nil {
		report.Elastic.Events = space.Events
	}
	return records + space.Events, err
}

// tally counts and digests the records of a group.
type tally struct {
	ipam.CopiedNetwork
	g       *group
	digest  hash.Hash
	records int
}

func newTally(g *group) *tally {
	t := &tally{g: g, digest: sha256.New()}
	if g.network != nil {
		t.Name, t.Subnets = g.network.Name, len(g.units)-1
	}
	return t
}

// all goes through a group in the source and in what was read back; nil: only in the source.
func (t *tally) all(ctx context.Context, from, to store.Tx) error {
	for _, r := range slices.Concat(t.g.units...) {
		got := r.value
		if to != nil {
			var err error
			if got, err = to.Get(r.key); err != nil {
				return err
			}
		}
		if r.key[0] == ledger.AttachmentKeys {
			t.Docker++
		}
		if err := t.is(r.what, r.key, r.value, got); err != nil {
			return err
		}
	}
	for _, rc := range t.g.ranges {
		err := rc.each(ctx, within(from), within(to), func(_ store.Tx, key, want, got []byte) error {
			if to == nil {
				got = want
			}
			what, err := t.count(key, want)
			if err != nil {
				return err
			}
			return t.is(fmt.Sprintf("%s of network %s", what, t.Name), key, want, got)
		}, func(int) {})
		if err != nil {
			return err
		}
	}
	return nil
}

// count counts an owner or a lease, and returns its name.
func (t *tally) count(key, want []byte) (what string, err error) {
	if key[0] == ledger.DynamicKeys {
		t.Reservations++
		return "the owner " + string(key[17:]), nil
	}
	_, addr, _ := ledger.LeaseKeyParts(key)
	if want == nil {
		return addr.String(), nil
	}
	l, err := ipam.DecodeLease(addr, want)
	if err != nil {
		return "", err
	}
	switch {
	case l.Held():
		t.Leases++
	case l.Remembered():
		t.Memories++
	}
	if l.Reserved() != nil {
		t.Reservations++
	}
	return addr.String(), nil
}

// is compares a record that was read back with the one that should have been written.
func (t *tally) is(what string, key, want, got []byte) error {
	t.records++
	for _, part := range [][]byte{key, want} {
		fmt.Fprintf(t.digest, "%d %s", len(part), part)
	}
	switch {
	case got == nil && want != nil:
		return fmt.Errorf("%w: %s is not in the target", errDiffers, what)
	case want == nil && got != nil:
		return fmt.Errorf("%w: %s is in the target, but not in the source", errDiffers, what)
	case !bytes.Equal(want, got):
		return fmt.Errorf("%w: %s differs in the target", errDiffers, what)
	}
	return nil
}
