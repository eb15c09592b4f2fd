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

// check holds the spaces of the source against what the target has, and counts what there is. All that collides is in
// the error.
func (cp *copying) check(ctx context.Context, names []string, report *ipam.CopyReport) error {
	if err := edit.Finish(ctx, cp.from); err != nil { // what is being ended, so that it is not copied
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
		still := source == nil || source.Stage == copyFrozen
		if name == elasticPart {
			e := cp.readElastic(names)
			if report.Elastic = &e.CopiedElastic; still {
				err = cp.checkElastic(ctx, e, names, wrong)
			}
		} else {
			err = cp.checkSpace(ctx, name, still, report, wrong)
		}
		if err != nil {
			return err
		}
	}
	return wrong.Err()
}

// checkSpace is check of one space, of which collisions matter only as long as the source has it still.
func (cp *copying) checkSpace(ctx context.Context, name string, still bool, report *ipam.CopyReport,
	wrong *ipam.PlanError) error {
	all, err := cp.read(ctx, name)
	if err != nil {
		return err
	}
	if still {
		if err := cp.collisions(ctx, all, wrong); err != nil {
			return err
		}
	}
	space, err := cp.counted(ctx, name, all)
	report.Spaces = append(report.Spaces, space)
	return err
}

// collisions notes what the target has of the networks' names, subnets and ids, and which other hosts use them.
func (cp *copying) collisions(ctx context.Context, all []copied, wrong *ipam.PlanError) error {
	err := cp.to.Look(ctx, func(c *ledger.Change) error {
		for i := range all {
			if err := collide(c, &all[i], wrong); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if cp.from.Member() == nil {
		return nil
	}
	return cp.from.Look(ctx, func(c *ledger.Change) error {
		for i := range all {
			for _, sub := range all[i].subnets {
				if err := ownAlone(c, all[i].network, sub.Subnet); err != nil {
					wrong.Add(0, "%v", err)
				}
			}
		}
		return nil
	})
}

func collide(c *ledger.Change, one *copied, wrong *ipam.PlanError) error {
	n := one.network
	if known := c.Index().Network(n.ID); known != nil && known.Stage != ipam.Moving {
		wrong.Add(0, "network %s of space %s is in the target already, as %s in space %s, with the same id %s", n.Name,
			n.Space, known.Name, known.Space, n.ID)
		return nil
	} else if known != nil {
		return nil // of the copy that was cut off
	}
	raw, err := c.Tx().Get(ledger.NameKey(nil, n.Name))
	if err != nil {
		return err
	}
	if len(raw) == len(ipam.ID{}) && ipam.ID(raw) != n.ID {
		other := c.Index().Network(ipam.ID(raw))
		if other == nil {
			other = &ipam.Network{ID: ipam.ID(raw)}
		}
		wrong.AddHelp([]ipam.Advice{ipam.Advise(ipam.DoRenameNetwork)}, 0,
			"the target has another network %s (id %s, space %s) than "+
				"this one (id %s, space %s)", n.Name, other.ID.Short(), other.Space, n.ID.Short(), n.Space)
	}
	for _, sub := range one.subnets {
		other, err := c.Overlapping(sub.Space, sub.CIDR, ipam.ID{})
		if err != nil {
			return err
		}
		if other != nil {
			wrong.Add(0, "the subnet %s of network %s overlaps %s, which network %s of space %s has in the target",
				sub.CIDR, n.Name, other.CIDR, c.NetworkName(other.Network), other.Space)
		}
		if err := c.NoElasticIn(sub.CIDR); err != nil {
			wrong.Add(0, "network %s: in the target, %v", n.Name, err)
		}
		for _, at := range sub.attachments {
			if c.Index().Attachment(at.ID) != nil {
				wrong.Add(0, "the pool %s of network %s is in the target already", at.ID, n.Name)
			}
		}
	}
	return nil
}

// counted counts what a space of the source has.
func (cp *copying) counted(ctx context.Context, space string, all []copied) (report ipam.CopiedSpace, err error) {
	report = ipam.CopiedSpace{Name: space, Networks: []ipam.CopiedNetwork{}}
	for _, one := range all {
		ck := newCopyCheck(&one)
		err := cp.from.View(ctx, func(tx store.Tx) error {
			ck = newCopyCheck(&one)
			for _, sub := range one.subnets {
				err := ledger.EachLease(tx, sub.ID, func(l *ipam.Lease) error {
					ck.lease(cp.lease(sub.Subnet, l))
					return nil
				})
				if err != nil {
					return err
				}
			}
			known, err := ledger.ReadOwners(tx, one.network.ID)
			ck.Reservations += len(known)
			return err
		})
		if err != nil {
			return report, err
		}
		report.Networks = append(report.Networks, ck.CopiedNetwork)
	}
	err = eachEvent(ctx, cp.from, space, copyPage(cp.from), func(page []store.Record) error {
		report.Events += len(page)
		return nil
	})
	return report, err
}

// copyCheck counts and digests the records of one network, as they are to be and as they are.
type copyCheck struct {
	ipam.CopiedNetwork
	want, got hash.Hash
}

func newCopyCheck(one *copied) *copyCheck {
	ck := &copyCheck{CopiedNetwork: ipam.CopiedNetwork{Name: one.network.Name, Subnets: len(one.subnets)},
		want: sha256.New(), got: sha256.New()}
	for _, sub := range one.subnets {
		ck.Docker += len(sub.attachments)
	}
	return ck
}

func (ck *copyCheck) lease(l *ipam.Lease) {
	switch {
	case l.Held():
		ck.Leases++
	case l.Remembered():
		ck.Memories++
	}
	if l.Reserved() != nil {
		ck.Reservations++
	}
}

// errDiffers: what was read back is not what was to be written.
var errDiffers = errors.New("the copy differs")

// is holds a record that was read back against the one that was to be written.
func (ck *copyCheck) is(what string, key, want, got []byte) error {
	for _, part := range [][]byte{key, want} {
		fmt.Fprintf(ck.want, "%d %s", len(part), part)
	}
	for _, part := range [][]byte{key, got} {
		fmt.Fprintf(ck.got, "%d %s", len(part), part)
	}
	switch {
	case got == nil && want != nil:
		return fmt.Errorf("%w: %s of network %s is not in the target", errDiffers, what, ck.Name)
	case want == nil && got != nil:
		return fmt.Errorf("%w: %s of network %s is in the target, and not in the source", errDiffers, what, ck.Name)
	case !bytes.Equal(want, got):
		return fmt.Errorf("%w: %s of network %s is another one in the target", errDiffers, what, ck.Name)
	}
	return nil
}

// isJSON is is for a record in JSON, which is read from the target.
func (ck *copyCheck) isJSON(tx store.Tx, what string, key []byte, want any) error {
	raw, err := ipam.EncodeJSON(want)
	if err != nil {
		return err
	}
	got, err := tx.Get(key)
	if err != nil {
		return err
	}
	return ck.is(what, key, raw, got)
}

// readBack is the handle through which the target is compared.
func (cp *copying) readBack() store.Store {
	if cp.opt.ReadBack != nil {
		return cp.opt.ReadBack
	}
	return cp.to.Store()
}

// compare reads the whole of a space back, and holds it against the source, record by record.
func (cp *copying) compare(ctx context.Context, space string, all []copied) (report ipam.CopiedSpace, err error) {
	report = ipam.CopiedSpace{Name: space, Networks: []ipam.CopiedNetwork{}}
	back := cp.readBack()
	for i := range all {
		one := &all[i]
		ck := newCopyCheck(one)
		err := cp.from.View(ctx, func(from store.Tx) error {
			return back.View(ctx, func(to store.Tx) error {
				ck = newCopyCheck(one)
				return cp.compareNetwork(ctx, ck, one, from, to)
			})
		})
		if err != nil {
			return report, err
		}
		want, got := ck.want.Sum(nil), ck.got.Sum(nil)
		if !bytes.Equal(want, got) {
			return report, fmt.Errorf("%w: the digest of network %s is %x, and in the target %x", errDiffers, ck.Name,
				want, got)
		}
		ck.Digest = hex.EncodeToString(want)
		report.Networks = append(report.Networks, ck.CopiedNetwork)
	}
	err = eachEvent(ctx, cp.from, space, copyPage(cp.from), func(page []store.Record) error {
		report.Events += len(page)
		cp.step(len(page))
		return back.View(ctx, func(tx store.Tx) error { return compareEvents(tx, page) })
	})
	return report, err
}

func (cp *copying) compareNetwork(ctx context.Context, ck *copyCheck, one *copied, from, to store.Tx) error {
	n := one.network
	if err := ck.isJSON(to, "the record", ledger.NetworkKey(nil, n.ID), n); err != nil {
		return err
	}
	key := ledger.NameKey(nil, n.Name)
	name, err := to.Get(key)
	if err != nil {
		return err
	}
	if err := ck.is("the name", key, n.ID[:], name); err != nil {
		return err
	}
	cp.step(2)
	for _, sub := range one.subnets {
		if err := ck.isJSON(to, "the subnet "+sub.CIDR.String(), ledger.SubnetKey(nil, sub.Space, sub.CIDR),
			sub.Subnet); err != nil {
			return err
		}
		for _, at := range sub.attachments {
			if err := ck.isJSON(to, "the pool "+at.ID.String(), ledger.AttachmentKey(nil, at.ID), at); err != nil {
				return err
			}
		}
		cp.step(1 + len(sub.attachments))
		if err := cp.compareLeases(ctx, ck, sub.Subnet, from, to); err != nil {
			return err
		}
	}
	return cp.compareOwners(ctx, ck, n, from, to)
}

func (cp *copying) compareLeases(ctx context.Context, ck *copyCheck, sub *ipam.Subnet, from, to store.Tx) error {
	leases := cp.leases(sub, ledger.PageSize, ck.lease)
	return cp.compareRange(ctx, leases, from, to, func(key, want, got []byte) error {
		_, addr, _ := ledger.LeaseKeyParts(key)
		return ck.is(addr.String(), key, want, got)
	})
}

func (cp *copying) compareOwners(ctx context.Context, ck *copyCheck, n *ipam.Network, from, to store.Tx) error {
	prefix := len(ledger.OwnerKey(n.ID, ""))
	return cp.compareRange(ctx, ownersOf(n.ID, ledger.PageSize), from, to, func(key, want, got []byte) error {
		ck.Reservations++
		return ck.is("the owner "+string(key[prefix:]), key, want, got)
	})
}

// compareRange holds each record of a range against what was read back.
func (cp *copying) compareRange(ctx context.Context, rc *rangeCopy, from, to store.Tx,
	is func(key, want, got []byte) error) error {
	return rc.eachPage(ctx, within(from), func(page *rangePage) error {
		err := page.hold(to, is)
		cp.step(page.seen)
		return err
	})
}

// compareEvents looks for a page of events in the target. Those that are older than all that it has were trimmed there.
func compareEvents(tx store.Tx, page []store.Record) error {
	first := ^uint64(0)
	for at, err := range ledger.EventsIn(tx, ledger.EventRange{}) {
		if err != nil {
			return err
		}
		first = at.ID
		break
	}
	read := func(id uint64) ([]byte, error) { return ledger.EventAlone(tx, id) }
	for _, e := range page {
		_, there, err := placeOfEvent(read, e)
		if err != nil {
			return err
		}
		if id := ledger.EventID(e.Key); !there && id >= first {
			return fmt.Errorf("%w: the event %d is not in the target", errDiffers, id)
		}
	}
	return nil
}
