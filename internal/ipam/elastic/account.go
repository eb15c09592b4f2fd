package elastic

import (
	"context"
	"slices"
	"strings"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// Limits of accounts. They matter because each mapping compares the patterns of all accounts.
const (
	MaxAccounts = 1024
	maxPatterns = 64
	maxQuota    = 1 << 20
)

// accountRemoved is the reason in the event of an address that is released with its account.
const accountRemoved = "its account is removed"

// accountFacts is the part of an account that its events record.
type accountFacts struct {
	Domain string   `json:"domain,omitempty"`
	Quota  *int     `json:"quota,omitempty"`
	Owners []string `json:"owners,omitempty"`
}

func factsOfAccount(a *ipam.Account) accountFacts { return accountFacts{a.Domain, a.Quota, a.Owners} }

func createAccount(e *ipam.CreateAccount, c *ledger.Change) error {
	if err := checkAccount(e); err != nil {
		return err
	}
	if c.Index().Account(e.Account) != nil {
		return ipam.RefuseAs(ipam.AccountInUse, ipam.ErrInUse, "account %s already exists; choose "+
			"another name", e.Account).Advise(ipam.DoListAccounts)
	}
	n := 0
	for name, other := range c.Index().Accounts() {
		n++
		for _, pattern := range e.Owners {
			if slices.Contains(other.Owners, pattern) {
				return ipam.RefuseAs(ipam.AccountInUse, ipam.ErrInUse, "the owners %s already belong to account %s; "+
					"choose another pattern", pattern, name).Advise(ipam.DoListAccounts)
			}
		}
	}
	if n >= MaxAccounts {
		return ipam.Refuse(ipam.ErrExhausted, "there are %d accounts already, the maximum; remove one first",
			n).Advise(ipam.DoListAccounts)
	}
	a := &ipam.Account{Name: e.Account, Domain: e.Domain, Quota: e.Quota, Owners: e.Owners, Created: c.Now()}
	if err := claimsNobodys(c, a); err != nil {
		return err
	}
	if _, err := tell(c, &ipam.Event{Verb: ipam.AccountCreated, Name: a.Name}, nil, factsOfAccount(a)); err != nil {
		return err
	}
	return c.SetAccount(a.Name, a)
}

func checkAccount(e *ipam.CreateAccount) error {
	if err := ipam.CheckName("account", e.Account); err != nil {
		return err
	}
	if e.Domain != "" {
		if err := ipam.CheckName("domain", e.Domain); err != nil {
			return err
		}
	}
	if e.Quota != nil && (*e.Quota < 0 || *e.Quota > maxQuota) {
		return ipam.Refuse(ipam.ErrInvalid, "the quota %d of account %s is not a number of addresses from 0 to %d",
			*e.Quota, e.Account, maxQuota)
	}
	if len(e.Owners) > maxPatterns {
		return ipam.Refuse(ipam.ErrInvalid, "account %s would have %d patterns of owners; the maximum is %d",
			e.Account, len(e.Owners), maxPatterns)
	}
	for _, pattern := range e.Owners {
		if err := ipam.CheckPattern(pattern); err != nil {
			return err
		}
	}
	return nil
}

func removeAccount(e *ipam.RemoveAccount, c *ledger.Change) (ipam.Result, error) {
	a := c.Index().Account(e.Account)
	if a == nil && e.Account == ipam.DefaultAccount {
		return ipam.Result{}, ipam.Refuse(ipam.ErrInUse,
			"the account %s cannot be removed: it has the containers that no other account claims", e.Account)
	}
	if a == nil {
		return ipam.Result{}, noAccount(e.Account)
	}
	all := addressesOf(c.Index(), e.Account)
	if len(all) > 0 && !e.Force {
		return ipam.Result{}, ipam.RefuseAs(ipam.AccountInUse, ipam.ErrInUse,
			"account %s has %s; release them first", e.Account, few(all)).OrAdvise(ipam.DoForceAccount, e.Account)
	}
	var result ipam.Result
	for _, one := range all {
		if err := endAndGive(c, one, accountRemoved); err != nil {
			return ipam.Result{}, err
		}
		result.Addresses = append(result.Addresses, one.Address)
	}
	if _, err := tell(c, &ipam.Event{Verb: ipam.AccountRemoved, Name: a.Name}, factsOfAccount(a), nil); err != nil {
		return ipam.Result{}, err
	}
	return result, c.SetAccount(a.Name, nil)
}

// Shrink releases addresses of accounts that are about to be removed, in pages, until one transaction can do the rest.
// If it is interrupted, the same request continues it.
func Shrink(ctx context.Context, s *ledger.Ledger, edits []ipam.Edit) error {
	for _, e := range edits {
		remove, is := e.(*ipam.RemoveAccount)
		if !is || !remove.Force || remove.Account == ipam.DefaultAccount {
			continue
		}
		for left := true; left; {
			err := s.Update(ctx, func(c *ledger.Change) (err error) {
				left, err = shrink(c, remove)
				return err
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// shrink releases a page of addresses if the account has more than one page. left reports that more may remain.
func shrink(c *ledger.Change, e *ipam.RemoveAccount) (left bool, err error) {
	if err := MayAsk(c, e); err != nil || c.NoElastic() || c.Index().Account(e.Account) == nil {
		return false, err
	}
	all := addressesOf(c.Index(), e.Account)
	if len(all) <= c.Page() {
		return false, nil
	}
	c.TouchPlan()
	for _, one := range all[:c.Page()] {
		if err := endAndGive(c, one, accountRemoved); err != nil {
			return false, err
		}
	}
	return true, nil
}

func noAccount(name string) error {
	return ipam.Refuse(ipam.ErrNotFound, "there is no account %q", name).Advise(ipam.DoListAccounts)
}

// addressesOf lists an account's addresses in order, without those that it has released and without the system
// addresses of its containers.
func addressesOf(ix *ledger.Index, account string) []*ipam.Elastic {
	return recordsOf(ix, func(one *ipam.Elastic) bool {
		return one.Account == account && one.State == ipam.ElasticAllocated && !one.System
	})
}

// few names the first of some addresses.
func few(all []*ipam.Elastic) string {
	const shown = 3
	var names []string
	for _, one := range all[:min(len(all), shown)] {
		names = append(names, one.Address.String())
	}
	if len(all) > shown {
		names = append(names, "...")
	}
	noun := "addresses"
	if len(all) == 1 {
		noun = "address"
	}
	return "the " + noun + " " + strings.Join(names, ", ")
}

// Claimant returns the account of a name on a network, as if the accounts in besides existed, too.
func Claimant(ix *ledger.Index, besides []*ipam.Account, n *ipam.Network, instance string) string {
	return claimsOf(ix, besides...).of((&guest{n: n}).namesOf(instance))
}

// claims are the patterns of all accounts, by the text before the first star.
type claims struct {
	patterns map[string][]claim
	lengths  []int // of these texts
}

type claim struct {
	account, pattern string
	says             int // the number of characters besides stars
}

// claimsOf returns the patterns of the existing accounts, and of those in besides.
func claimsOf(ix *ledger.Index, besides ...*ipam.Account) *claims {
	all := &claims{patterns: map[string][]claim{}}
	for _, a := range ix.Accounts() {
		besides = append(besides, a)
	}
	for _, a := range besides {
		for _, pattern := range a.Owners {
			head, _, _ := strings.Cut(pattern, "*")
			all.lengths = append(all.lengths, len(head))
			all.patterns[head] = append(all.patterns[head],
				claim{a.Name, pattern, len(pattern) - strings.Count(pattern, "*")})
		}
	}
	slices.Sort(all.lengths)
	all.lengths = slices.Compact(all.lengths)
	return all
}

// of returns the account of somebody with these names. The matching pattern with the most characters decides, and among
// equal ones the first account by name.
func (all *claims) of(names []string) string {
	best := claim{account: ipam.DefaultAccount, says: -1}
	for _, name := range names {
		for _, length := range all.lengths {
			if length > len(name) {
				break
			}
			for _, one := range all.patterns[name[:length]] {
				if one.isOver(&best) && ipam.MatchesPattern(one.pattern, name) {
					best = one
				}
			}
		}
	}
	return best.account
}

func (one *claim) isOver(other *claim) bool {
	return one.says > other.says || one.says == other.says && one.account < other.account
}

// claimsNobodys refuses a new account that claims a container to which another account's address is mapped.
func claimsNobodys(c *ledger.Change, a *ipam.Account) error {
	if len(a.Owners) == 0 {
		return nil
	}
	all := claimsOf(c.Index(), a)
	for _, one := range associated(c.Index()) {
		g, there, err := mapped(c, one.Association)
		if err != nil {
			return err
		}
		if !there {
			g = guest{n: c.Index().Network(one.Association.Network)}
		}
		if g.n == nil || one.Account == a.Name || one.System {
			continue
		}
		if all.of(g.namesOf(one.Association.Instance)) == a.Name {
			return ipam.RefuseAs(ipam.OtherAccount, ipam.ErrInUse,
				"account %s would claim the container %s, but the elastic address %s of account %s is mapped to it",
				a.Name, one.Association.Instance, one.Address, one.Account).Advise(ipam.DoDisassociate, one.Address)
		}
	}
	return nil
}
