package elastic

import (
	"context"
	"slices"
	"strings"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// MaxAccounts and the rest are bounds on accounts: a mapping looks at the patterns of all of them.
const (
	MaxAccounts = 1024
	maxPatterns = 64
	maxQuota    = 1 << 20
)

// accountRemoved is why an address is released with its account, for events.
const accountRemoved = "its account is removed"

// accountFacts is what events tell of an account.
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
		return ipam.RefuseAs(ipam.AccountInUse, ipam.ErrInUse, "there is an account %s already; choose "+
			"another name", e.Account).Advise(ipam.DoListAccounts)
	}
	n := 0
	for name, other := range c.Index().Accounts() {
		n++
		for _, pattern := range e.Owners {
			if slices.Contains(other.Owners, pattern) {
				return ipam.RefuseAs(ipam.AccountInUse, ipam.ErrInUse, "the owners %s are account %s's "+
					"already; choose another pattern", pattern, name).Advise(ipam.DoListAccounts)
			}
		}
	}
	if n >= MaxAccounts {
		return ipam.Refuse(ipam.ErrExhausted, "there are %d accounts, and no more are kept; remove one first",
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
		return ipam.Refuse(ipam.ErrInvalid, "the quota %d of account %s is no number of addresses from 0 to %d",
			*e.Quota, e.Account, maxQuota)
	}
	if len(e.Owners) > maxPatterns {
		return ipam.Refuse(ipam.ErrInvalid, "account %s is to have %d patterns of owners; at most %d are kept",
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
			"the account %s is always there: it has the containers that no other account claims", e.Account)
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

// Shrink releases addresses of accounts that are to be removed with what they have, in pages, until one
// transaction can do the rest. What it is cut off from is gone on with by the same request again.
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

// shrink releases a page of the addresses of an account that has more than one page; left tells that it may
// have more.
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

// addressesOf are the addresses that an account has, in order; those that it has released are its own no
// more, and the system addresses of its containers count for nothing.
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

// Claimant is the account of one who is known by a name on a network, once some accounts are there besides
// those of the store.
func Claimant(ix *ledger.Index, besides []*ipam.Account, n *ipam.Network, instance string) string {
	return claimsOf(ix, besides...).of((&guest{n: n}).namesOf(instance))
}

// claims are the patterns of all accounts, by what each says before its first star.
type claims struct {
	patterns map[string][]claim
	lengths  []int // of what they say there
}

type claim struct {
	account, pattern string
	says             int // how many characters it has besides its stars
}

// claimsOf are those of the accounts that there are, and of some besides.
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

// of is the account of one who is known by several names: of the patterns that fit the one that says most,
// and of several that say as much the first by its account's name.
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

// claimsNobodys refuses a new account that claims a container to which another account's address is mapped
// (CS-14).
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
				"account %s would claim the container %s, to which the elastic address %s of account %s is mapped",
				a.Name, one.Association.Instance, one.Address, one.Account).Advise(ipam.DoDisassociate, one.Address)
		}
	}
	return nil
}
