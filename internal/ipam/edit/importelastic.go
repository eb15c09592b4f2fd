package edit

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"go4.org/netipx"

	"berth/internal/ipam"
	"berth/internal/ipam/elastic"
	"berth/internal/ipam/ledger"
)

// elasticTrial is something of elastic addresses that a plan has.
type elasticTrial struct {
	line int
	unit ipam.Counts // it
	make func(*stepper) (ipam.Counts, error)
}

// elasticTrials are those of a plan: accounts and ranges first, associations last.
func elasticTrials(p *ipam.PlannedElastic) (all []elasticTrial) {
	for i := range p.Accounts {
		a := &p.Accounts[i]
		all = append(all, elasticTrial{a.Line, ipam.Counts{Accounts: 1},
			func(s *stepper) (ipam.Counts, error) { return s.account(a) }})
	}
	for i := range p.Ranges {
		r := &p.Ranges[i]
		all = append(all, elasticTrial{r.Line, ipam.Counts{Ranges: 1},
			func(s *stepper) (ipam.Counts, error) { return s.elasticRange(r) }})
	}
	for i := range p.Addresses {
		a := &p.Addresses[i]
		all = append(all, elasticTrial{a.Line, ipam.Counts{Elastic: 1},
			func(s *stepper) (ipam.Counts, error) { return s.elasticAddress(a) }})
	}
	for i := range p.Addresses {
		if a := &p.Addresses[i]; a.Instance != "" {
			all = append(all, elasticTrial{a.Line, ipam.Counts{Associations: 1},
				func(s *stepper) (ipam.Counts, error) { return s.association(a) }})
		}
	}
	return all
}

// tryElastic tries what is to be added of accounts, ranges and addresses where they are to be, in a transaction that is
// not committed: who may have them, and where, only the hosts say that are there. One transaction holds so many of
// them; the others are made without having been tried.
func (d *importDraft) tryElastic(ctx context.Context, p *ipam.PlannedElastic) error {
	d.overNoDraft(p)
	all := elasticTrials(p)
	came, refused := make([]ipam.Counts, len(all)), make([]error, len(all))
	err := d.Ledger.Update(ctx, func(c *ledger.Change) error {
		s := &stepper{Change: c, draft: d}
		for i := range all {
			if came[i], refused[i] = all[i].unit, nil; i >= ipam.MaxTried {
				continue
			}
			var err error
			came[i], err = all[i].make(s)
			if _, is := ipam.RefusedOf(i, err); err != nil && !is {
				return err
			}
			refused[i] = err
		}
		return errDryRun
	})
	if !errors.Is(err, errDryRun) {
		return err
	}
	for i := range all {
		switch {
		case refused[i] != nil:
			d.refuse(all[i].line, refused[i])
		case came[i].Sum() == 0:
			d.unchanged = plus(d.unchanged, all[i].unit)
		default:
			d.added = plus(d.added, came[i])
			d.elastics = append(d.elastics, importStep{line: all[i].line, writes: 10, make: all[i].make})
		}
	}
	return nil
}

// overNoDraft refuses a range over a subnet of the same plan; those that are there are looked at when it is tried.
func (d *importDraft) overNoDraft(p *ipam.PlannedElastic) {
	for i := range p.Ranges {
		r := &p.Ranges[i]
		for _, sub := range d.touched {
			if sub.fresh && !r.Range.IsZero() && r.Range.Overlaps(netipx.RangeOfPrefix(sub.sub.CIDR)) {
				d.Add(r.Line, "the elastic range %s overlaps the subnet %s of network %s, which is planned with it", r.Range,
					sub.sub.CIDR, sub.in.n.Name)
			}
		}
	}
}

func (s *stepper) elastic(e ipam.Edit, n ipam.Counts) (ipam.Counts, error) {
	_, _, err := elastic.Apply(s.Change, e, 0)
	return n, err
}

func (s *stepper) account(a *ipam.PlannedAccount) (ipam.Counts, error) {
	known := s.Index().Account(a.Account)
	if known == nil {
		return s.elastic(&a.CreateAccount, ipam.Counts{Accounts: 1})
	}
	sameQuota := (known.Quota == nil) == (a.Quota == nil) && (a.Quota == nil || *known.Quota == *a.Quota)
	if known.Domain != a.Domain || !sameQuota || !slices.Equal(known.Owners, a.Owners) {
		return ipam.Counts{}, ipam.Refuse(ipam.ErrInUse,
			"there is an account %s already, with another domain, quota or owners", a.Account)
	}
	return ipam.Counts{}, nil
}

func (s *stepper) elasticRange(r *ipam.PlannedElasticRange) (ipam.Counts, error) {
	for _, known := range s.Index().ElasticRanges() {
		if known.Range != r.Range {
			continue
		}
		announce := r.Announce
		if announce == "none" {
			announce = ""
		}
		if known.Host != r.Host || known.Announce != announce || r.TTL != nil && known.TTL != *r.TTL ||
			known.OnCut != cmp.Or(ipam.OnCut(r.OnCut), ipam.CutWithdraw) {
			return ipam.Counts{}, ipam.Refuse(ipam.ErrInUse,
				"there is an elastic range %s already, with another host, device, ttl or on_cut", r.Range)
		}
		return ipam.Counts{}, nil
	}
	return s.elastic(&r.AddElasticRange, ipam.Counts{Ranges: 1})
}

func (s *stepper) elasticAddress(a *ipam.PlannedElasticAddress) (ipam.Counts, error) {
	account := cmp.Or(a.Account, ipam.DefaultAccount)
	known := s.Index().Elastic(a.Address)
	switch {
	case known == nil || known.State == ipam.ElasticReleasing && known.Account == account:
		return s.elastic(&ipam.AllocateElastic{Account: account, Address: a.Address, ReleaseOn: a.ReleaseOn},
			ipam.Counts{Elastic: 1})
	case known.Account != account || known.System:
		return ipam.Counts{}, ipam.Refuse(ipam.ErrInUse, "the elastic address %s is account %s's already", a.Address,
			known.Account)
	case a.ReleaseOn != "" && a.ReleaseOn != known.ReleaseOn.String():
		return ipam.Counts{}, ipam.Refuse(ipam.ErrInUse,
			"the elastic address %s is allocated already, and is released on %s", a.Address, known.ReleaseOn)
	}
	return ipam.Counts{}, nil
}

// association associates an address. One that is refused, because its container has no address yet, is noted, and the
// import goes on; so none is tried.
func (s *stepper) association(a *ipam.PlannedElasticAddress) (ipam.Counts, error) {
	if known := s.Index().Elastic(a.Address); known != nil && known.Association != nil {
		network := ""
		if n := s.Index().Network(known.Association.Network); n != nil {
			network = n.Name
		}
		if was := known.Association; was.Instance != a.Instance || was.EgressOnly != a.EgressOnly ||
			a.Network != "" && network != a.Network {
			return ipam.Counts{}, ipam.Refuse(ipam.ErrInUse, "the elastic address %s is associated with %s on network %s "+
				"already", a.Address, was.Instance, network)
		}
		return ipam.Counts{}, nil
	}
	if s.draft != nil {
		return ipam.Counts{Associations: 1}, nil
	}
	err := s.associate(a)
	if _, is := ipam.RefusedOf(0, err); err != nil && is {
		s.unmade = append(s.unmade, ipam.PlanProblem{Line: a.Line, Text: err.Error(), Advice: ipam.AdviceOf(err)})
		return ipam.Counts{}, nil
	}
	return ipam.Counts{Associations: 1}, err
}

// associate makes an association. Its guest is named only where it is not clear without it: one that is named is meant
// for ever.
func (s *stepper) associate(a *ipam.PlannedElasticAddress) error {
	edit := &ipam.AssociateElastic{Address: a.Address, Instance: a.Instance, Network: a.Network, EgressOnly: a.EgressOnly}
	_, _, err := elastic.Apply(s.Change, edit, 0)
	if ipam.CodeOf(err) == ipam.GuestUnclear && a.Guest.IsValid() {
		edit.Guest = a.Guest
		_, _, err = elastic.Apply(s.Change, edit, 0)
	}
	return err
}
