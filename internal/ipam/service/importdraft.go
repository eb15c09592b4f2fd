package service

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"net/netip"
	"slices"

	"berth/internal/allocator"
	"berth/internal/ipam"
	"berth/internal/ipam/edit"
	"berth/internal/ipam/ledger"
	"berth/internal/ipam/view"
	"berth/internal/plan/compare"
	"berth/store"
	"berth/store/mem"
)

// importTrial is the result of an import, found in a draft. The draft is a private service in memory that is thrown
// away. It holds the networks of the store, and the leases that concern the plan. The difference between the plan and
// the draft is what the import must add. Its edits are tried in the draft. So an import follows the rules of each edit,
// reports all problems before it writes anything, and delays nobody. If the store changes after the trial, the edits
// are refused when they are made.
type importTrial struct {
	ipam.PlanError
	told   map[int]bool              // the lines whose contradiction with the store is reported already
	lost   map[string][]netip.Prefix // the refused networks and subnets by network; their contents are not tried
	steps  []importStep
	givers map[given][]giver // up to two of different owners; made when an address is first refused
	report ipam.ImportReport // of a dry run
}

// given is an address in a network of the plan.
type given struct {
	network string
	addr    netip.Addr
}

// giver is a line of the plan that gives an address to an owner.
type giver struct {
	owner string
	line  int
}

// tryImport tries a plan. It returns a *PlanError if anything in the plan is refused.
func tryImport(ctx context.Context, l *ledger.Ledger, p *ipam.Plan) (*importTrial, error) {
	draft, err := draftOf(ctx, l, p)
	if err != nil {
		return nil, err
	}
	now, err := draft.present(ctx, p)
	if err != nil {
		return nil, err
	}
	t := &importTrial{told: map[int]bool{}, lost: map[string][]netip.Prefix{}, report: ipam.ImportReport{DryRun: true}}
	free := *p
	free.Networks = slices.DeleteFunc(slices.Clone(p.Networks), func(n ipam.PlannedNetwork) bool {
		return t.busy(draft.Ledger, &n)
	})
	d, err := compare.Plans(&free, now, compare.Options{Adds: true, Now: l.Now()})
	if wrong := new(ipam.PlanError); errors.As(err, &wrong) {
		t.Problems, t.More = append(t.Problems, wrong.Problems...), t.More+wrong.More
	}
	for _, one := range d.Changes {
		if one.Sign == "~" { // a removal shows up as another change, which is refused
			t.contradicts(one)
		}
	}
	for _, part := range d.Parts {
		t.steps = append(t.steps, importSteps(part.Edits)...)
	}
	number(l, t.steps)
	if err := t.try(ctx, draft.Ledger); err != nil {
		return nil, err
	}
	t.count(p, l)
	return t, t.Err()
}

// busy refuses a network that is being imported or removed.
func (t *importTrial) busy(l *ledger.Ledger, n *ipam.PlannedNetwork) bool {
	busy := ledger.Ask(l, func(ix *ledger.Index) bool {
		nx := ix.NetworkIndex(ix.NetworkNamed(n.Name))
		return nx.Record() != nil && nx.Record().Stage != ""
	})
	if busy {
		t.Add(n.Line, "the network %s is being imported or removed; import again when that has ended", n.Name)
	}
	return busy
}

// contradicts reports a value of the plan that differs from the store. An import adds and never changes.
func (t *importTrial) contradicts(c compare.Change) {
	of := "the " + c.Kind
	if c.Kind == "network" {
		of = c.Kind
	}
	if c.Name != "" {
		of += " " + c.Name
	}
	if c.Network != "" {
		of += " of network " + c.Network
	}
	if c.Field != "" {
		of = "the " + c.Field + " of " + of
	}
	advice := []ipam.Advice{ipam.Advise(ipam.DoLeaveOut)}
	switch c.Kind {
	case "network":
		advice = ipam.Advise(ipam.DoModifyNetwork, c.Name).OrLeaveOut()
	case "subnet":
		advice = ipam.Advise(ipam.DoChangeSubnet).OrLeaveOut()
	case "static band":
		advice = ipam.Advise(ipam.DoAddStatic, c.Network).OrLeaveOut()
	case "reservation":
		advice = ipam.Advise(ipam.DoEndReservation).OrLeaveOut()
	case "address":
		advice = ipam.Advise(ipam.DoRetakeAddress).OrLeaveOut()
	}
	t.told[c.Line] = c.Line > 0
	t.AddHelp(advice, c.Line, "%s is %s and not %s", of, cmp.Or(c.Was, "none"), cmp.Or(c.Is, "none"))
}

// draftWrites is the approximate number of writes in one transaction of the draft.
const draftWrites = store.MaxWrites / 4

// try makes the steps in the draft and records refusals. If a step of several edits is refused, it tries each edit
// alone.
func (t *importTrial) try(ctx context.Context, draft *ledger.Ledger) error {
	im := &edit.Importing{Tried: true}
	left := t.steps
	for len(left) > 0 {
		err := draft.Update(ctx, func(c *ledger.Change) error {
			im.Begin(c)
			for writes := 0; len(left) > 0 && writes < draftWrites; left = left[1:] {
				if err := t.tryStep(im, &left[0]); err != nil {
					return err
				}
				writes += left[0].writes()
			}
			return nil
		})
		if errors.Is(err, store.ErrTooLarge) {
			return nil // the later steps are not tried
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (t *importTrial) tryStep(im *edit.Importing, step *importStep) error {
	if step.reveal != "" {
		return nil // nobody sees a draft
	}
	if t.inLost(step.edits[0]) {
		return nil
	}
	err := im.Unlocked(step.edits...)
	if err == nil {
		err = im.Apply(step.edits)
	}
	refused, is := ipam.RefusedOf(0, err)
	_, associates := step.edits[0].(*ipam.AssociateElastic)
	switch {
	case errors.Is(err, store.ErrTooLarge):
		t.Add(step.lines[0], "with this line, the subnet would have more pools and exclusions than a record can hold")
		return err
	case err != nil && !is:
		return err
	case err == nil || associates:
		return nil // the result counts only in the real store, because the container may have no address yet
	case len(step.edits) == 1 && t.told[step.lines[0]]:
		return nil
	case len(step.edits) == 1:
		switch e := step.edits[0].(type) {
		case *ipam.CreateNetwork:
			t.lost[e.Name] = []netip.Prefix{{}}
		case *ipam.AddSubnet:
			t.lost[e.Network] = append(t.lost[e.Network], e.CIDR)
		}
		if refused.Reason == ipam.AlreadyInUse {
			if other, addr := t.repeats(step); other > 0 {
				t.Add(step.lines[0], "%s is on line %d, too, for another owner; leave one of them out", addr, other)
				return nil
			}
		}
		t.AddHelp(refused.Advice, step.lines[0], "%s", refused.Detail)
		return nil
	}
	for i := range step.edits {
		if err := t.tryStep(im, &importStep{edits: step.edits[i : i+1], lines: step.lines[i : i+1]}); err != nil {
			return err
		}
	}
	return nil
}

// repeats returns another line of the plan that gives an address of a step to another owner. It returns 0 if there is
// none.
func (t *importTrial) repeats(step *importStep) (line int, addr netip.Addr) {
	if t.givers == nil {
		t.givers = giversOf(t.steps)
	}
	network, owner, wishes := wishesOf(step.edits[0])
	for _, w := range wishes {
		for _, other := range t.givers[given{network, w.Address}] {
			if other.owner != owner && other.line != step.lines[0] {
				return other.line, w.Address
			}
		}
	}
	return 0, addr
}

// giversOf lists the first two owners of each address in a plan.
func giversOf(steps []importStep) map[given][]giver {
	all := map[given][]giver{}
	for i := range steps {
		if steps[i].reveal != "" {
			continue
		}
		network, owner, wishes := wishesOf(steps[i].edits[0])
		for _, w := range wishes {
			at := given{network, w.Address}
			has := all[at]
			if w.Address.IsValid() && len(has) < 2 && (len(has) == 0 || has[0].owner != owner) {
				all[at] = append(has, giver{owner, steps[i].lines[0]})
			}
		}
	}
	return all
}

// wishesOf returns the addresses that an edit requests, for whom, and in which network.
func wishesOf(e ipam.Edit) (network, owner string, all []ipam.Wish) {
	switch e := e.(type) {
	case *ipam.AddReservation:
		return e.Network, e.Owner, e.Wishes
	case *ipam.TakeAddress:
		return e.Network, e.Owner, e.Interface.Wishes
	}
	return "", "", nil
}

// count counts what the steps add, and how much of the plan the store has already.
func (t *importTrial) count(p *ipam.Plan, l *ledger.Ledger) {
	r := &t.report
	at := map[string]int{}
	for i := range t.steps {
		added := t.steps[i].counts()
		r.Added = r.Added.Plus(added, 1)
		if t.steps[i].reveal != "" {
			continue
		}
		name, _ := placeOf(t.steps[i].edits[0])
		if name == "" {
			continue
		}
		if _, known := at[name]; !known {
			at[name] = len(r.Networks)
			r.Networks = append(r.Networks, ipam.ImportedNetwork{Name: name, New: added.Networks > 0})
		}
		n := &r.Networks[at[name]]
		n.Added = n.Added.Plus(added, 1)
	}
	r.Unchanged = p.Counts(l.Now()).Plus(r.Added, -1)
}

// inLost reports whether an edit is in a refused network or subnet.
func (t *importTrial) inLost(e ipam.Edit) bool {
	network, addr := placeOf(e)
	return slices.ContainsFunc(t.lost[network], func(p netip.Prefix) bool { return !p.IsValid() || p.Contains(addr) })
}

// placeOf returns the network that an edit adds to, and its address. Both are zero if the edit has none.
func placeOf(e ipam.Edit) (network string, addr netip.Addr) {
	switch e := e.(type) {
	case *ipam.CreateNetwork:
		return e.Name, addr
	case *ipam.AddSubnet:
		return e.Network, addr
	case *ipam.AddPool:
		return e.Network, e.Range.From()
	case *ipam.AddExclusion:
		return e.Network, e.Range.From()
	}
	network, _, wishes := wishesOf(e)
	if len(wishes) > 0 {
		addr = wishes[0].Address
	}
	return network, addr
}

// number gives the new subnets ascending ids, so that their leases are neighbours in the store. A transaction that
// writes leases of many subnets then touches few pages.
func number(l *ledger.Ledger, steps []importStep) {
	var fresh []*ipam.AddSubnet
	for i := range steps {
		for _, e := range steps[i].edits {
			if add, is := e.(*ipam.AddSubnet); is {
				fresh = append(fresh, add)
			}
		}
	}
	ids := make([]ipam.ID, len(fresh))
	for i := range ids {
		ids[i] = l.Member().Marked(ipam.NewID())
	}
	slices.SortFunc(ids, func(a, b ipam.ID) int { return bytes.Compare(a[:], b[:]) })
	for i, add := range fresh {
		add.ID = ids[i]
	}
}

// draftOf makes the draft for a plan.
func draftOf(ctx context.Context, l *ledger.Ledger, p *ipam.Plan) (*Service, error) {
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
	add := func(rec store.Record) error {
		some = append(some, rec)
		if len(some) < store.MaxWrites {
			return nil
		}
		return put()
	}
	err := l.View(ctx, func(tx store.Tx) error {
		for _, kind := range []byte{ledger.SettingKeys, ledger.HostKeys, ledger.SpaceKeys, ledger.NameKeys,
			ledger.NetworkKeys, ledger.SubnetKeys, ledger.DynamicKeys, ledger.AccountKeys, ledger.ElasticRangeKeys,
			ledger.ElasticKeys, ledger.AppliedKeys, ledger.SessionKeys} {
			for rec, err := range tx.Scan(ledger.KindRange(kind)) {
				if err == nil {
					err = add(rec)
				}
				if err != nil {
					return err
				}
			}
		}
		for key := range leasesFor(l, p) {
			raw, err := tx.Get([]byte(key))
			if err == nil && raw != nil {
				err = add(store.Record{Key: []byte(key), Value: raw})
			}
			if err != nil {
				return err
			}
		}
		return put()
	})
	if err != nil {
		return nil, err
	}
	draft := ledger.New(ledger.Config{Store: st, Host: l.Host(), Now: l.Now, Known: *l.Known(), Member: l.Member()})
	if err := draft.Load(ctx); err != nil {
		return nil, err
	}
	return Over(ledger.Alone(draft)), allocator.KeepTime(ctx, draft)
}

// leasesFor returns the keys of the leases that concern a plan. These are the leases of its addresses. They are also
// its owners' leases in the networks that it names or has an address of.
func leasesFor(l *ledger.Ledger, p *ipam.Plan) map[string]struct{} {
	keys, networks := map[string]struct{}{}, map[ipam.ID]struct{}{}
	owners, taken := map[string]bool{}, map[string]bool{}
	for i := range p.Networks {
		n := &p.Networks[i]
		space := cmp.Or(n.Space, ipam.LocalSpace)
		l.Read(func(ix *ledger.Index) {
			if nx := ix.NetworkIndex(ix.NetworkNamed(n.Name)); nx.Record() != nil {
				space = nx.Record().Space
				networks[nx.Record().ID] = struct{}{}
			}
		})
		at := func(addr netip.Addr) {
			l.Read(func(ix *ledger.Index) {
				if sx := ix.Overlapping(space, netip.PrefixFrom(addr, addr.BitLen())); addr.IsValid() && sx != nil {
					keys[string(ledger.LeaseKey(nil, sx.Record().ID, addr))] = struct{}{}
					networks[sx.Record().Network] = struct{}{}
				}
			})
		}
		for _, r := range n.Reservations {
			at(r.Address)
			owners[ipam.CanonicalOwner(r.Owner)] = true
		}
		for _, a := range n.Addresses {
			at(a.Address)
			taken[ipam.RememberedName(ipam.CanonicalOwner(a.Owner))] = true
		}
	}
	for id := range networks {
		for _, subnet := range l.SubnetsOf(id) {
			l.Read(func(ix *ledger.Index) {
				sx := ix.Subnet(subnet)
				if sx == nil {
					return
				}
				for owner, addr := range sx.ByOwner().All() {
					if owners[owner] {
						keys[string(ledger.LeaseKey(nil, subnet, addr))] = struct{}{}
					}
				}
				for name, addr := range sx.ByTaken().All() {
					if taken[name] {
						keys[string(ledger.LeaseKey(nil, subnet, addr))] = struct{}{}
					}
				}
			})
		}
	}
	return keys
}

// present returns the plan of the draft. It has the networks that the plan names, or all if an item of the plan names
// none.
func (s *Service) present(ctx context.Context, p *ipam.Plan) (*ipam.Plan, error) {
	now := &ipam.Plan{}
	var ids []ipam.ID
	named := map[string]bool{}
	for i := range p.Networks {
		named[p.Networks[i].Name] = true
	}
	s.Ledger.Read(func(ix *ledger.Index) {
		for id, nx := range ix.Networks() {
			if n := nx.Record(); n != nil && (named[""] || named[n.Name]) {
				ids = append(ids, id)
			}
		}
	})
	for _, id := range ids {
		n, err := view.PlanOf(ctx, s.Ledger, id)
		if err != nil {
			return nil, err
		}
		if n != nil {
			now.Networks = append(now.Networks, *n)
		}
	}
	if p.Elastic == nil {
		return now, nil
	}
	accounts, err := s.Accounts(ctx)
	if err != nil {
		return nil, err
	}
	ranges, err := s.ElasticRanges(ctx)
	if err != nil {
		return nil, err
	}
	addresses, err := s.Elastics(ctx, "", netip.Addr{}, 0)
	now.Elastic = ipam.PlanElastic(accounts, ranges, addresses)
	return now, err
}
