package bulk

import (
	"cmp"
	"context"
	"errors"
	"net/netip"
	"slices"

	"go4.org/netipx"

	"berth/internal/ipam"
	"berth/internal/ipam/elastic"
	"berth/internal/ipam/ledger"
)

// elasticStep is a step that adds an account, a range, an address or an association: one of them.
type elasticStep struct {
	Line      int
	Account   *ipam.CreateAccount
	Range     *ipam.AddElasticRange
	Address   *ipam.AllocateElastic
	Associate *ipam.PlannedElasticAddress
}

// counts is what the step adds.
func (e *elasticStep) counts() (n ipam.Counts) {
	switch {
	case e.Account != nil:
		n.Accounts = 1
	case e.Range != nil:
		n.Ranges = 1
	case e.Address != nil:
		n.Elastic = 1
	case e.Associate != nil:
		n.Associations = 1
	}
	return n
}

// edit is the edit that adds it; none adds an association, whose guest may be unclear.
func (e *elasticStep) edit() ipam.Edit {
	switch {
	case e.Account != nil:
		return e.Account
	case e.Range != nil:
		return e.Range
	case e.Address != nil:
		return e.Address
	}
	return nil
}

// elasticNow is what a store has of elastic addresses.
type elasticNow struct {
	accounts  map[string]*ipam.Account
	ranges    map[ipam.Range]*ipam.ElasticRange
	addresses map[netip.Addr]*ipam.Elastic
	networks  map[ipam.ID]string
}

func readElastic(s *ledger.Ledger) *elasticNow {
	now := &elasticNow{map[string]*ipam.Account{}, map[ipam.Range]*ipam.ElasticRange{}, map[netip.Addr]*ipam.Elastic{},
		map[ipam.ID]string{}}
	s.Read(func(ix *ledger.Index) {
		for name, a := range ix.Accounts() {
			now.accounts[name] = a
		}
		for _, r := range ix.ElasticRanges() {
			now.ranges[r.Range] = r
		}
		for addr, one := range ix.Elastics() {
			now.addresses[addr] = one
			if a := one.Association; a != nil {
				if n := ix.Network(a.Network); n != nil {
					now.networks[n.ID] = n.Name
				}
			}
		}
	})
	return now
}

// planElastic holds what a plan says of elastic addresses against what is there, and notes what is to be added: the
// accounts and ranges first, and the associations last.
func (ck *importCheck) planElastic(p *ipam.PlannedElastic) {
	if p == nil {
		return
	}
	now := readElastic(ck.Ledger)
	for i := range p.Accounts {
		ck.account(now, &p.Accounts[i])
	}
	for i := range p.Ranges {
		ck.elasticRange(now, &p.Ranges[i])
	}
	var associate []elasticStep
	for i := range p.Addresses {
		a := &p.Addresses[i]
		if ck.elasticAddress(now, a) && a.Instance != "" && ck.association(now, a) {
			associate = append(associate, elasticStep{Line: a.Line, Associate: a})
		}
	}
	ck.elastics = append(ck.elastics, associate...)
}

func (ck *importCheck) account(now *elasticNow, a *ipam.PlannedAccount) {
	known := now.accounts[a.Account]
	if known == nil {
		ck.elastics = append(ck.elastics, elasticStep{Line: a.Line, Account: &a.CreateAccount})
		return
	}
	ck.unchanged.Accounts++
	sameQuota := (known.Quota == nil) == (a.Quota == nil) && (a.Quota == nil || *known.Quota == *a.Quota)
	if known.Domain != a.Domain || !sameQuota || !slices.Equal(known.Owners, a.Owners) {
		ck.Add(a.Line, "there is an account %s already, with another domain, quota or owners", a.Account)
	}
}

func (ck *importCheck) elasticRange(now *elasticNow, r *ipam.PlannedElasticRange) {
	known := now.ranges[r.Range]
	if known == nil {
		ck.elastics = append(ck.elastics, elasticStep{Line: r.Line, Range: &r.AddElasticRange})
		ck.overNoDraft(r)
		return
	}
	ck.unchanged.Ranges++
	announce := r.Announce
	if announce == "none" {
		announce = ""
	}
	if known.Host != r.Host || known.Announce != announce || r.TTL != nil && known.TTL != *r.TTL ||
		known.OnCut != cmp.Or(ipam.OnCut(r.OnCut), ipam.CutWithdraw) {
		ck.Add(r.Line, "there is an elastic range %s already, with another host, device, ttl or on_cut", r.Range)
	}
}

// overNoDraft refuses a range over a subnet of the same plan; those that are there are looked at when it is tried.
func (ck *importCheck) overNoDraft(r *ipam.PlannedElasticRange) {
	for _, d := range ck.networks {
		for _, sub := range d.subnets {
			if !sub.old && !r.Range.IsZero() && r.Range.Overlaps(netipx.RangeOfPrefix(sub.sub.CIDR)) {
				ck.Add(r.Line, "the elastic range %s overlaps the subnet %s of network %s, which is planned with it",
					r.Range,
					sub.sub.CIDR, d.n.Name)
			}
		}
	}
}

// elasticAddress notes an address that is to be allocated; false where it is another's.
func (ck *importCheck) elasticAddress(now *elasticNow, a *ipam.PlannedElasticAddress) bool {
	account := cmp.Or(a.Account, ipam.DefaultAccount)
	known := now.addresses[a.Address]
	switch {
	case known == nil || known.State == ipam.ElasticReleasing && known.Account == account:
		ck.elastics = append(ck.elastics, elasticStep{Line: a.Line, Address: &ipam.AllocateElastic{Account: account,
			Address: a.Address, ReleaseOn: a.ReleaseOn}})
	case known.Account != account || known.System:
		ck.Add(a.Line, "the elastic address %s is account %s's already", a.Address, known.Account)
		return false
	case a.ReleaseOn != "" && a.ReleaseOn != known.ReleaseOn.String():
		ck.Add(a.Line, "the elastic address %s is allocated already, and is released on %s", a.Address, known.ReleaseOn)
	default:
		ck.unchanged.Elastic++
	}
	return true
}

// association tells whether one is to be made.
func (ck *importCheck) association(now *elasticNow, a *ipam.PlannedElasticAddress) bool {
	known := now.addresses[a.Address]
	if known == nil || known.Association == nil {
		return true
	}
	was := known.Association
	if was.Instance != a.Instance || was.EgressOnly != a.EgressOnly ||
		a.Network != "" && now.networks[was.Network] != a.Network {
		ck.Add(a.Line, "the elastic address %s is associated with %s on network %s already", a.Address, was.Instance,
			now.networks[was.Network])
		return false
	}
	ck.unchanged.Associations++
	return false
}

// mostTried is how many edits are tried before an import begins: few enough for a transaction.
const mostTried = 1000

var errTried = errors.New("tried")

// tryElastic tries what is to be added of accounts, ranges and addresses, in a transaction that is not committed, so
// that what is refused is refused with its line before anything is written.
func (ck *importCheck) tryElastic(ctx context.Context) error {
	if len(ck.elastics) == 0 {
		return nil
	}
	var refused []ipam.PlanProblem
	err := ck.Update(ctx, func(c *ledger.Change) error {
		refused = nil
		for i := range ck.elastics[:min(len(ck.elastics), mostTried)] {
			e := ck.elastics[i].edit()
			if e == nil {
				continue
			}
			_, _, err := elastic.Apply(c, e, 0)
			if err != nil && !isRefusal(err) {
				return err
			}
			if err != nil {
				refused = append(refused, ipam.PlanProblem{Line: ck.elastics[i].Line, Text: err.Error(),
					Advice: ipam.AdviceOf(err)})
			}
		}
		return errTried
	})
	if !errors.Is(err, errTried) {
		return err
	}
	for _, one := range refused {
		ck.AddHelp(one.Advice, one.Line, "%s", one.Text)
	}
	return nil
}

// isRefusal tells whether an edit was refused by a rule, which has written nothing.
func isRefusal(err error) bool {
	var refused *ipam.Refusal
	return errors.As(err, &refused)
}

// addElastic makes a step. An association that is refused, because its container has no address yet for one, is noted,
// and the import goes on.
func (s *stepper) addElastic(st *step) (ipam.Counts, error) {
	e := st.elastic
	if edit := e.edit(); edit != nil {
		_, _, err := elastic.Apply(s.Change, edit, 0)
		return e.counts(), err
	}
	if err := s.associate(e.Associate); err != nil {
		if !isRefusal(err) {
			return ipam.Counts{}, err
		}
		s.unmade = append(s.unmade, ipam.PlanProblem{Line: e.Line, Text: err.Error(), Advice: ipam.AdviceOf(err)})
		return ipam.Counts{}, nil
	}
	return e.counts(), nil
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
