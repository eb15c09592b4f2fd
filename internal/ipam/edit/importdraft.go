package edit

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"slices"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
	"berth/store"
	"berth/store/mem"
)

// importDraft is a plan that is tried. All steps that it may take are made in a draft of what is there: a ledger in
// memory, which nobody else sees and which is thrown away. So the rules of an import are those of each edit, all that
// is wrong is found before anything is written, and nobody waits for it. What changes between the trial and the
// writing is refused then.
type importDraft struct {
	*ledger.Ledger // what is there
	ipam.PlanError
	tx    store.Tx       // of what is there
	draft *ledger.Ledger // with the networks and subnets of it, and the leases that the plan is about

	networks  []*importNetwork // in the order of the plan
	byID      map[ipam.ID]*importNetwork
	subnets   map[ipam.ID]*importSubnet
	last      *importSubnet // most questions are about the same one again
	touched   []*importSubnet
	refused   []*importSubnet // new ones
	ids       []ipam.ID       // for new subnets
	lines     map[string]int  // of what is planned once
	queue     []importTrial
	elastics  []importStep
	unchanged ipam.Counts
	added     ipam.Counts // of elastic addresses

	locks    []*ipam.DeployLock // of projects that are being deployed
	reserves []string           // the owners for whom anything is reserved
	names    NewNames           // in DNS, of these and of whom anything is taken for
}

// importTrial is a step that is to be tried.
type importTrial struct {
	importStep
	of     *importNetwork
	sub    *importSubnet // nil: of none
	kind   importKind
	same   ipam.Counts // what is there already where the step adds nothing
	failed func()      // nil: nothing is to be noted when it is refused
}

// importKind is when a step is made among those of its network.
type importKind int

const (
	makesNetwork importKind = iota
	makesSubnet
	addsRanges
	takes // before the reservations: one by force is of an address that somebody has
	reserves
	knows
	tries // it is made in the draft alone
	importKinds
)

func newImportDraft(l *ledger.Ledger) *importDraft {
	return &importDraft{Ledger: l, byID: map[ipam.ID]*importNetwork{}, subnets: map[ipam.ID]*importSubnet{},
		lines: map[string]int{}}
}

// plan tries all of a plan but what it says of elastic addresses.
func (d *importDraft) plan(ctx context.Context, tx store.Tx, p *ipam.Plan) (err error) {
	d.tx = tx
	if d.locks, err = DeployLocks(tx, d.Now()); err != nil {
		return err
	}
	if err := d.begin(ctx); err != nil {
		return err
	}
	d.number(p)
	drafts := make([]*importNetwork, len(p.Networks)) // nil: any of the space, or one that was refused
	for i := range p.Networks {
		drafts[i] = d.network(&p.Networks[i])
	}
	if err := d.try(ctx); err != nil {
		return err
	}
	for i := range p.Networks {
		if n := &p.Networks[i]; drafts[i] != nil || n.Name == "" {
			d.ranges(n, drafts[i])
		}
	}
	for _, sub := range d.touched {
		d.addRanges(sub)
	}
	if err := d.try(ctx); err != nil {
		return err
	}
	for i := range p.Networks {
		if n := &p.Networks[i]; drafts[i] != nil || n.Name == "" {
			d.owners(n, drafts[i])
		}
	}
	if err := d.presentSlots(); err != nil {
		return err
	}
	d.tryOwners()
	if err := d.try(ctx); err != nil {
		return err
	}
	d.checkGaps()
	return nil
}

// begin makes the draft.
func (d *importDraft) begin(ctx context.Context) error {
	st := mem.New()
	var some []store.Record
	put := func() error {
		return st.Update(ctx, func(tx store.Tx) error {
			for _, rec := range some {
				if err := tx.Put(rec.Key, rec.Value); err != nil {
					return err
				}
			}
			some = some[:0]
			return nil
		})
	}
	for _, kind := range []byte{ledger.SettingKeys, ledger.SpaceKeys, ledger.NameKeys, ledger.NetworkKeys,
		ledger.SubnetKeys, ledger.DynamicKeys, ledger.ElasticRangeKeys} {
		for rec, err := range d.tx.Scan(ledger.KindRange(kind)) {
			if err != nil {
				return err
			}
			if some = append(some, rec); len(some) == store.MaxWrites {
				if err := put(); err != nil {
					return err
				}
			}
		}
	}
	if err := put(); err != nil {
		return err
	}
	d.draft = ledger.New(ledger.Config{Store: st, Host: d.Host(), Now: d.Now, Known: *d.Known()})
	return d.draft.Load(ctx)
}

// number draws ids for the new subnets, which ascend, so that their leases lie one behind the other in the store: a
// transaction that writes those of many subnets touches few of its pages then.
func (d *importDraft) number(p *ipam.Plan) {
	for i := range p.Networks {
		for range p.Networks[i].Subnets {
			d.ids = append(d.ids, d.Member().Marked(ipam.NewID()))
		}
	}
	slices.SortFunc(d.ids, func(a, b ipam.ID) int { return bytes.Compare(a[:], b[:]) })
}

// draftWrites is how many writes one transaction of the draft makes, about.
const draftWrites = store.MaxWrites / 2

// try makes the steps that are to be tried in the draft, and keeps those that have added something.
func (d *importDraft) try(ctx context.Context) error {
	for at := 0; at < len(d.queue); {
		err := d.draft.Update(ctx, func(c *ledger.Change) error {
			s := &stepper{Change: c, draft: d}
			for writes := 0; at < len(d.queue) && writes < draftWrites; at++ {
				if err := d.tryOne(s, &d.queue[at]); err != nil {
					return err
				}
				writes += d.queue[at].writes
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	d.queue = d.queue[:0]
	return nil
}

func (d *importDraft) tryOne(s *stepper, t *importTrial) error {
	if t.of.refused || t.sub != nil && t.sub.refused {
		return nil
	}
	added, err := s.apply(&t.importStep)
	switch refused, is := ipam.RefusedOf(0, err); {
	case is:
		d.AddHelp(refused.Advice, t.line, "%s", refused.Detail)
		s.p, s.sub = nil, nil
		if t.failed != nil {
			t.failed()
		}
	case err != nil:
		return err
	case added.Sum() == 0:
		d.unchanged = plus(d.unchanged, t.same)
	default:
		t.of.added = plus(t.of.added, added)
		t.of.steps[t.kind] = append(t.of.steps[t.kind], t.importStep)
	}
	return nil
}

// steps lists what is to be written, network by network: a new one from its making to its revealing.
func (d *importDraft) steps() (all []importStep) {
	for _, n := range d.networks {
		for _, some := range n.steps[:tries] {
			all = append(all, some...)
		}
		if n.fresh {
			all = append(all, importStep{network: n.n.ID, writes: 10, make: (*stepper).reveal})
		}
	}
	return append(all, d.elastics...)
}

func (d *importDraft) report() ipam.ImportReport {
	report := ipam.ImportReport{DryRun: true, Added: d.added, Unchanged: d.unchanged}
	for _, n := range d.networks {
		if n.added.Sum() > 0 {
			report.Added = plus(report.Added, n.added)
			report.Networks = append(report.Networks, ipam.ImportedNetwork{Name: n.n.Name, New: n.fresh, Added: n.added})
		}
	}
	return report
}

// refuse notes an error as a problem of a line.
func (d *importDraft) refuse(line int, err error) {
	if err != nil {
		d.AddHelp(ipam.AdviceOf(err), line, "%s", err)
	}
}

// once tells whether the plan says of a thing for the first time that it is to be there, and refuses another time.
func (d *importDraft) once(line int, format string, args ...any) bool {
	what := fmt.Sprintf(format, args...)
	if before, is := d.lines[what]; is {
		d.Add(line, "%s is planned twice%s", what, lineBefore(before))
		return false
	}
	d.lines[what] = line
	return true
}

// lineBefore points to a line, where it is known.
func lineBefore(line int) string {
	if line == 0 {
		return ""
	}
	return fmt.Sprintf(", before in line %d", line)
}

// holding finds the subnet that has an address: one of n, or, where that is nil, any of the space. It answers nil where
// there is none, and notes that as a problem unless that subnet is one itself.
func (d *importDraft) holding(n *importNetwork, space string, addr netip.Addr, line int) *importSubnet {
	if n != nil {
		space = n.n.Space
	}
	sub := d.subnetAt(space, addr)
	switch {
	case sub == nil && slices.ContainsFunc(d.refused, func(sub *importSubnet) bool {
		return sub.sub.Space == space && sub.sub.CIDR.Contains(addr)
	}):
		return nil
	case sub == nil && n != nil:
		d.Add(line, "no subnet of network %s holds %s", n.n.Name, addr)
		return nil
	case sub == nil:
		d.Add(line, "no subnet of the space %s holds %s", space, addr)
		return nil
	case n != nil && sub.in != n:
		d.Add(line, "%s is in the subnet %s of network %s, and not in network %s", addr, sub.sub.CIDR, sub.in.n.Name,
			n.n.Name)
		return nil
	case sub.in.n.Stage != "":
		d.Add(line, "%s is in network %s, which is being imported or removed; import again when that has ended", addr,
			sub.in.n.Name)
		return nil
	}
	return sub
}

// subnetAt is the subnet of the draft that has an address; nil where none has.
func (d *importDraft) subnetAt(space string, addr netip.Addr) *importSubnet {
	if d.last != nil && d.last.sub.Space == space && d.last.sub.CIDR.Contains(addr) {
		return d.last
	}
	var there *ipam.Subnet
	var n *ipam.Network
	d.draft.Read(func(ix *ledger.Index) {
		if sx := ix.Overlapping(space, netip.PrefixFrom(addr, addr.BitLen())); sx != nil {
			there = sx.Record()
			n = ix.NetworkIndex(there.Network).Record()
		}
	})
	if there == nil {
		return nil
	}
	if d.subnets[there.ID] == nil {
		in := d.byID[n.ID]
		if in == nil {
			in = d.draftOf(n, false)
		}
		d.subnets[there.ID] = &importSubnet{in: in, sub: there}
	}
	d.last = d.subnets[there.ID]
	return d.last
}
