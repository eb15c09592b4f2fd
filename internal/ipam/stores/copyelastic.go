package stores

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
	"berth/store"
)

// Elastic addresses are of no space, and go along with whatever is copied: accounts, ranges, addresses with their
// associations, what this host's edge has of them, and their events. They have a mark of their own, by the same rules
// as a space (copymark.go), and are let go of before any space, so that no store is served that has an association
// without its network. Their ranges are Moving meanwhile, so that nobody uses what is in them.

// elasticPart stands for them among the names of spaces.
const elasticPart = ""

// partName names a space, or what there is of elastic addresses, in a sentence.
func partName(name string) string {
	if name == elasticPart {
		return "what there is of elastic addresses"
	}
	return "the space " + name
}

// isOf tells whether an event is of a space, or of elastic addresses alone: one of an association is of the space of
// its network.
func isOf(e *ipam.Event, part string) bool {
	if part != elasticPart || e.Space != "" {
		return e.Space == part && part != elasticPart
	}
	verb := e.Verb.String()
	return strings.HasPrefix(verb, "account.") || strings.HasPrefix(verb, "elastic.") && e.Verb != ipam.ElasticMoved
}

// elasticCopy is what the target is to have of elastic addresses.
type elasticCopy struct {
	ipam.CopiedElastic
	accounts  []*ipam.Account
	ranges    []*ipam.ElasticRange
	addresses []*ipam.Elastic
	applied   []*ipam.Applied // by this host's edge
}

// hasElastic tells whether there is anything to be copied.
func hasElastic(s *ledger.Ledger) bool {
	return ledger.Ask(s, func(ix *ledger.Index) bool {
		for range ix.Accounts() {
			return true
		}
		for range ix.AllElasticRanges() {
			return true
		}
		for range ix.Elastics() {
			return true
		}
		return false
	})
}

// readElastic reads what the target is to have, in the order of the keys. names are the spaces that are copied.
func (cp *copying) readElastic(names []string) *elasticCopy {
	e := new(elasticCopy)
	there := cp.networksThere(names)
	cp.from.Read(func(ix *ledger.Index) {
		for _, a := range ix.Accounts() {
			e.accounts = append(e.accounts, a)
		}
		for _, r := range ix.AllElasticRanges() {
			e.ranges = append(e.ranges, cp.movingRange(r))
		}
		for _, one := range ix.Elastics() {
			if !one.System || one.Association == nil || there[one.Association.Network] {
				e.addresses = append(e.addresses, one)
			}
		}
		for _, one := range e.addresses {
			if at := ix.Applied(ledger.AppliedAt{Host: cp.from.Host(), Address: one.Address}); at != nil {
				e.applied = append(e.applied, cp.appliedThere(at))
			}
		}
	})
	slices.SortFunc(e.accounts, func(a, b *ipam.Account) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(e.ranges, func(a, b *ipam.ElasticRange) int { return bytes.Compare(a.ID[:], b.ID[:]) })
	slices.SortFunc(e.addresses, func(a, b *ipam.Elastic) int { return a.Address.Compare(b.Address) })
	slices.SortFunc(e.applied, func(a, b *ipam.Applied) int { return a.Address.Compare(b.Address) })
	e.Accounts, e.Ranges, e.Addresses = len(e.accounts), len(e.ranges), len(e.addresses)
	for _, one := range e.addresses {
		if one.Association != nil {
			e.Associations++
		}
	}
	return e
}

// networksThere are the networks that the target will have.
func (cp *copying) networksThere(names []string) map[ipam.ID]bool {
	there := map[ipam.ID]bool{}
	for _, s := range []*ledger.Ledger{cp.from, cp.to} {
		s.Read(func(ix *ledger.Index) {
			for id, nx := range ix.Networks() {
				if n := nx.Record(); n != nil && (s == cp.to || slices.Contains(names, n.Space)) {
					there[id] = true
				}
			}
		})
	}
	return there
}

// movingRange is a range the way the target is to have it. That of a host is this one's, whatever that was called.
func (cp *copying) movingRange(r *ipam.ElasticRange) *ipam.ElasticRange {
	moving := *r
	if moving.Moving = true; r.Host != "" && cp.from.Member() == nil {
		moving.Host = cp.to.Host()
	}
	return &moving
}

// appliedThere is what the edge has, the way the target is to have it: told by a daemon that shared the store with
// nobody, it holds for as long as the edge likes.
func (cp *copying) appliedThere(at *ipam.Applied) *ipam.Applied {
	there := *at
	there.Host, there.Untimed, there.Grant = cp.to.Host(), cp.from.Member() == nil && at.InForce, 0
	if cp.from.Member() != nil {
		there.Unsaid = false
	}
	return &there
}

// elasticRecord is a record that is copied.
type elasticRecord struct {
	key   []byte
	value []byte
	ids   [2]uint64 // that it has, behind which others begin
}

func recordOf(key []byte, v any, ids ...uint64) (r elasticRecord, err error) {
	r.key = key
	copy(r.ids[:], ids)
	r.value, err = ipam.EncodeJSON(v)
	return r, err
}

// records are those of the addresses, and then those of what is applied of them.
func (e *elasticCopy) records() (all []elasticRecord, err error) {
	for _, one := range e.addresses {
		ids := []uint64{one.ID}
		if one.Association != nil {
			ids = append(ids, one.Association.ID)
		}
		r, err := recordOf(ledger.ElasticKey(one.Address), one, ids...)
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	for _, at := range e.applied {
		r, err := recordOf(ledger.AppliedKey(ledger.AppliedAt{Host: at.Host, Address: at.Address}), at)
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, nil
}

// writeElastic makes the target have what the source has: first the accounts and ranges, so that nobody else takes them
// there, then the addresses.
func (cp *copying) writeElastic(ctx context.Context, e *elasticCopy, first bool) error {
	all, err := e.records()
	if err != nil {
		return err
	}
	if cp.total += 2 * len(all); first {
		cp.total += len(all)
	}
	if err := cp.to.Update(ctx, func(c *ledger.Change) error { return cp.claimElastic(c, e) }); err != nil {
		return err
	}
	wanted := map[string]bool{}
	for i := range all {
		wanted[string(all[i].key)] = true
	}
	if err := dropElastic(ctx, cp.to, func(key string) bool { return !wanted[key] }, true, func(int) {}); err != nil {
		return err
	}
	for page := range slices.Chunk(all, copyPage(cp.to)) {
		err := cp.to.Update(ctx, func(c *ledger.Change) error { return putElastic(c, page) })
		if err != nil {
			return err
		}
		cp.step(len(page))
	}
	return eachEvent(ctx, cp.from, elasticPart, copyPage(cp.to),
		func(page []store.Record) error { return cp.writeEvents(ctx, page) })
}

func putElastic(c *ledger.Change, page []elasticRecord) error {
	c.TouchPlan()
	for i := range page {
		r := &page[i]
		has, err := c.Tx().Get(r.key)
		if err != nil {
			return err
		}
		if !bytes.Equal(has, r.value) {
			if err := c.PutElastic(r.key, r.value); err != nil {
				return err
			}
		}
		c.SkipIDs(max(r.ids[0], r.ids[1]))
	}
	return nil
}

// claimElastic writes accounts and ranges, unless they are there, and notes which accounts are new.
func (cp *copying) claimElastic(c *ledger.Change, e *elasticCopy) error {
	wrong := new(ipam.PlanError)
	if err := cp.elasticCollisions(c, e, wrong); err != nil {
		return err
	}
	if err := wrong.Err(); err != nil {
		return err
	}
	m, err := readMark(c.Tx(), elasticPart)
	if err != nil {
		return err
	}
	c.TouchPlan()
	for _, a := range e.accounts {
		if c.Index().Account(a.Name) != nil {
			continue
		}
		if !slices.Contains(m.Accounts, a.Name) {
			m.Accounts = append(m.Accounts, a.Name)
		}
		if err := c.SetAccount(a.Name, a); err != nil {
			return err
		}
	}
	wanted := map[ipam.ID]bool{}
	for _, r := range e.ranges {
		wanted[r.ID] = true
		if err := c.SetElasticRange(r.ID, r); err != nil {
			return err
		}
	}
	for id, r := range c.Index().AllElasticRanges() {
		if r.Moving && !wanted[id] { // of a run before, whose source has it no more
			if err := c.SetElasticRange(id, nil); err != nil {
				return err
			}
		}
	}
	return putMark(c, m)
}

// movingKeys are those of the addresses of a store that are being copied, and of what edges have of them; without
// moving, those of all.
func movingKeys(s *ledger.Ledger, moving bool) (keys []string) {
	s.Read(func(ix *ledger.Index) {
		is := func(addr netip.Addr) bool {
			for _, r := range ix.AllElasticRanges() {
				if r.Moving && r.Range.Contains(addr) {
					return true
				}
			}
			return !moving
		}
		for addr := range ix.Elastics() {
			if is(addr) {
				keys = append(keys, string(ledger.ElasticKey(addr)))
			}
		}
		for at := range ix.AllApplied() {
			if is(at.Address) {
				keys = append(keys, string(ledger.AppliedKey(at)))
			}
		}
	})
	slices.Sort(keys)
	return keys
}

// dropElastic removes addresses of a store, of which some are meant: those that are being copied, or all.
func dropElastic(ctx context.Context, s *ledger.Ledger, meant func(key string) bool, moving bool,
	step func(int)) error {
	keys := slices.DeleteFunc(movingKeys(s, moving), func(key string) bool { return !meant(key) })
	for page := range slices.Chunk(keys, copyPage(s)) {
		err := s.Update(ctx, func(c *ledger.Change) error {
			c.TouchPlan()
			for _, key := range page {
				if err := c.PutElastic([]byte(key), nil); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		step(len(page))
	}
	return nil
}

// compareElastic reads everything back, and holds it against the source.
func (cp *copying) compareElastic(ctx context.Context, e *elasticCopy) (report *ipam.CopiedElastic, err error) {
	all, err := e.records()
	if err != nil {
		return nil, err
	}
	for _, a := range e.accounts {
		r, err := recordOf(ledger.AccountKey(a.Name), cp.accountThere(a))
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	for _, r := range e.ranges {
		rec, err := recordOf(ledger.ElasticRangeKey(r.ID), r)
		if err != nil {
			return nil, err
		}
		all = append(all, rec)
	}
	back := cp.readBack()
	digest := sha256.New()
	for page := range slices.Chunk(all, ledger.PageSize) {
		err := back.View(ctx, func(tx store.Tx) error { return holdElastic(tx, page) })
		if err != nil {
			return nil, err
		}
		for _, r := range page {
			fmt.Fprintf(digest, "%d %s%d %s", len(r.key), r.key, len(r.value), r.value)
		}
		cp.step(len(page))
	}
	if more := len(movingKeys(cp.to, true)) - len(e.addresses) - len(e.applied); more > 0 {
		return nil, fmt.Errorf("%w: the target has %d records of elastic addresses that the source has not", errDiffers,
			more)
	}
	report = &e.CopiedElastic
	report.Digest, report.Events = hex.EncodeToString(digest.Sum(nil)), 0
	return report, eachEvent(ctx, cp.from, elasticPart, copyPage(cp.from), func(page []store.Record) error {
		report.Events += len(page)
		return back.View(ctx, func(tx store.Tx) error { return compareEvents(tx, page) })
	})
}

// holdElastic holds records against what was read back.
func holdElastic(tx store.Tx, page []elasticRecord) error {
	for _, r := range page {
		got, err := tx.Get(r.key)
		if err != nil {
			return err
		}
		if !bytes.Equal(got, r.value) {
			return fmt.Errorf("%w: the record %q of an elastic address, its range or account is another one in the "+
				"target", errDiffers, r.key)
		}
	}
	return nil
}

// accountThere is an account the way the target has it: one that says the same and was there already stays.
func (cp *copying) accountThere(a *ipam.Account) *ipam.Account {
	there := ledger.Ask(cp.to, func(ix *ledger.Index) *ipam.Account { return ix.Account(a.Name) })
	if there != nil && sameAccount(there, a) {
		return there
	}
	return a
}
