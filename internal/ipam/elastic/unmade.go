package elastic

import (
	"cmp"
	"slices"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// Unmade is the edit that takes back what one has made, or, with made nil, an association; false where that is gone, or
// is another one by now.
func Unmade(c *ledger.Change, made ipam.Edit, association *ipam.PlannedElasticAddress) (undo ipam.Edit, there bool) {
	switch e := made.(type) {
	case *ipam.CreateAccount:
		a := c.Index().Account(e.Account)
		return &ipam.RemoveAccount{Account: e.Account}, a != nil && a.Domain == e.Domain && slices.Equal(a.Owners, e.Owners)
	case *ipam.AddElasticRange:
		for _, r := range c.Index().ElasticRanges() {
			if r.Range == e.Range && r.Host == e.Host {
				return &ipam.RemoveElasticRange{Range: e.Range}, true
			}
		}
		return nil, false
	case *ipam.AllocateElastic:
		one := c.Index().Elastic(e.Address)
		return &ipam.ReleaseElastic{Address: e.Address}, one != nil && one.State == ipam.ElasticAllocated &&
			one.Account == cmp.Or(e.Account, ipam.DefaultAccount) && !one.System
	}
	if association == nil {
		return nil, false
	}
	one := c.Index().Elastic(association.Address)
	is := one != nil && one.Association != nil && !one.System && one.Association.EgressOnly == association.EgressOnly &&
		one.Association.Instance == ipam.CanonicalOwner(association.Instance)
	return &ipam.DisassociateElastic{Address: association.Address}, is
}

// ForgetDefault takes away what was said of the account that is always there, whatever addresses it has.
func ForgetDefault(c *ledger.Change) error {
	a := c.Index().Account(ipam.DefaultAccount)
	if a == nil {
		return nil
	}
	if _, err := tell(c, &ipam.Event{Verb: ipam.AccountRemoved, Name: a.Name}, factsOfAccount(a), nil); err != nil {
		return err
	}
	return c.SetAccount(a.Name, nil)
}
