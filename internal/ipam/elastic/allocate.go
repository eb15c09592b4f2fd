package elastic

import (
	"cmp"
	"net/netip"

	"go4.org/netipx"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

func allocate(e *ipam.AllocateElastic, c *ledger.Change, seen uint64) (ipam.Result, error) {
	account := cmp.Or(e.Account, c.Account(), ipam.DefaultAccount)
	if account != ipam.DefaultAccount && c.Index().Account(account) == nil {
		return ipam.Result{}, noAccount(account)
	}
	addr, err := chosen(e, c, account)
	if err != nil {
		return ipam.Result{}, err
	}
	result := ipam.Result{Addresses: []netip.Addr{addr}}
	known := c.Index().Elastic(addr)
	if err := matches(known, seen); err != nil {
		return ipam.Result{}, err
	}
	if known != nil && known.State == ipam.ElasticAllocated { // it was asked for before
		return result, releaseOn(c, known, e.ReleaseOn)
	}
	if err := withinQuota(c.Index(), account); err != nil {
		return ipam.Result{}, err
	}
	given := &ipam.Elastic{Address: addr, State: ipam.ElasticAllocated, Account: account, Allocated: c.Now()}
	if e.ReleaseOn != "" {
		if given.ReleaseOn, err = ipam.ParseReleaseOn(e.ReleaseOn); err != nil {
			return ipam.Result{}, err
		}
	}
	given.ID, err = tell(c, &ipam.Event{Verb: ipam.ElasticTaken, Address: addr, Name: account}, nil,
		factsOfAddress(c, given))
	if err != nil {
		return ipam.Result{}, err
	}
	return result, c.SetElastic(addr, given)
}

// chosen returns the address to allocate: the named one, or the lowest free one.
func chosen(e *ipam.AllocateElastic, c *ledger.Change, account string) (netip.Addr, error) {
	if e.Host != "" {
		if err := knownHost(c, e.Host); err != nil {
			return netip.Addr{}, err
		}
	}
	if e.Address.IsValid() {
		return e.Address, mayHave(e, c, account)
	}
	for _, r := range rangesOf(c.Index(), e.Host) {
		if addr := lowest(c.Index(), r, netip.Prefix{}, leftOverHere(c)); addr.IsValid() {
			return addr, nil
		}
	}
	whose := "of the cluster"
	if e.Host != "" {
		whose = "of host " + e.Host
	}
	return netip.Addr{}, ipam.RefuseAs(ipam.NoElasticFree, ipam.ErrExhausted,
		"no elastic range %s has a free address", whose).Advise(ipam.DoAddElasticRange)
}

// lowest returns the lowest address of a range that has no record and is outside of avoid, or that was released and
// again accepts. It returns the zero address if there is none.
func lowest(ix *ledger.Index, r *ipam.ElasticRange, avoid netip.Prefix, again func(*ipam.Elastic) bool) netip.Addr {
	best := unrecorded(ix, r.Range.IPRange, avoid)
	for addr := range ix.ReleasingElastics() {
		lower := !best.IsValid() || addr.Less(best)
		if lower && r.Range.Contains(addr) && !avoid.Contains(addr) && again(ix.Elastic(addr)) {
			best = addr
		}
	}
	return best
}

// unrecorded returns the lowest address of a range that has no record and is outside of avoid.
func unrecorded(ix *ledger.Index, r netipx.IPRange, avoid netip.Prefix) netip.Addr {
	for {
		addr, ok := ix.FreeElastic(r)
		if !ok || !avoid.Contains(addr) {
			return addr
		}
		last := netipx.PrefixLastIP(avoid)
		if !last.Less(r.To()) {
			return netip.Addr{}
		}
		r = netipx.IPRangeFrom(last.Next(), r.To())
	}
}

// leftOverHere returns a function that reports whether an address was released and no edge maps it any more.
func leftOverHere(c *ledger.Change) func(*ipam.Elastic) bool {
	return func(known *ipam.Elastic) bool { return leftOver(c.Index(), c.Host(), known.Address) }
}

// mayHave refuses an address that the account cannot have.
func mayHave(e *ipam.AllocateElastic, c *ledger.Change, account string) error {
	r, err := knownRange(c.Index(), e.Address)
	if err != nil {
		return err
	}
	if e.Host != "" && r.Host != e.Host {
		return ipam.Refuse(ipam.ErrInvalid, "%s belongs to the elastic range %s of %s, not of host %s", e.Address,
			r.Range, whoseRange(r), e.Host)
	}
	known := c.Index().Elastic(e.Address)
	if isFree(c, e.Address) || known.Account == account {
		return nil
	}
	if known.State == ipam.ElasticReleasing {
		return ipam.RefuseAs(ipam.AddressAllocated, ipam.ErrInUse, "%s was released by account %s, but %s has not "+
			"confirmed yet that the mapping ended; try again when the edge runs, or allocate another address",
			e.Address,
			known.Account, edgesWith(c, e.Address))
	}
	return ipam.RefuseAs(ipam.AddressAllocated, ipam.ErrInUse, "%s has belonged to account %s since %s", e.Address,
		known.Account, known.Allocated.UTC().Format("2006-01-02")).Advise(ipam.DoListElastic)
}

// knownRange returns the range of an address that an edit is about. It refuses an address outside of all ranges.
func knownRange(ix *ledger.Index, addr netip.Addr) (*ipam.ElasticRange, error) {
	if !addr.IsValid() {
		return nil, ipam.Refuse(ipam.ErrInvalid, "the request names no elastic address")
	}
	if r := rangeOf(ix, addr); r != nil {
		return r, nil
	}
	if isMoving(ix, addr) {
		return nil, ipam.Refuse(ipam.ErrInUse, "%s belongs to an elastic range that is being copied to another "+
			"store; try again after the copy", addr)
	}
	return nil, ipam.Refuse(ipam.ErrNotFound, "%s is in no elastic range", addr).Advise(ipam.DoListElasticRanges)
}

// withinQuota refuses another address for an account that has reached its quota.
func withinQuota(ix *ledger.Index, account string) error {
	a := ix.Account(account)
	if a == nil || a.Quota == nil {
		return nil
	}
	if ix.HeldElastics(account) < *a.Quota {
		return nil
	}
	text := ""
	if all := addressesOf(ix, account); len(all) > 0 {
		text = " with " + few(all)
	}
	return ipam.RefuseAs(ipam.QuotaExceeded, ipam.ErrExhausted,
		"account %s has reached its quota of %d%s; release an address first", account, *a.Quota, text).
		Advise(ipam.DoListElastic)
}

func release(e *ipam.ReleaseElastic, c *ledger.Change, seen uint64) (ipam.Result, error) {
	known, err := toChange(c, e.Address, seen)
	if err != nil {
		return ipam.Result{}, err
	}
	result := ipam.Result{Addresses: []netip.Addr{e.Address}}
	if leftOver(c.Index(), c.Host(), e.Address) {
		return result, c.SetElastic(e.Address, nil)
	}
	if known == nil || known.State != ipam.ElasticAllocated {
		return result, nil
	}
	if known.System {
		return ipam.Result{}, isSystem(c, known)
	}
	if a := known.Association; a != nil {
		return ipam.Result{}, ipam.RefuseAs(ipam.AddressAssociated, ipam.ErrInUse,
			"%s of account %s is associated with %s; disassociate it first", e.Address, known.Account, where(c, a)).
			Advise(ipam.DoDisassociate, e.Address)
	}
	return result, give(c, known)
}

// give takes an address from its account. It is free at once, unless an edge may still map it.
func give(c *ledger.Change, known *ipam.Elastic) error {
	id, err := tell(c, &ipam.Event{Verb: ipam.ElasticReleased, Address: known.Address, Name: known.Account},
		factsOfAddress(c, known), nil)
	if err != nil {
		return err
	}
	if len(inForce(c.Index(), c.Host(), known.Address)) == 0 {
		return c.SetElastic(known.Address, nil)
	}
	leaving := *known
	leaving.ID, leaving.State, leaving.Association = id, ipam.ElasticReleasing, nil
	return c.SetElastic(known.Address, &leaving)
}

// toChange returns the record of an address that an edit is about, or nil if it is free. It refuses an address outside
// of all ranges, and one that has changed since the requester saw it.
func toChange(c *ledger.Change, addr netip.Addr, seen uint64) (*ipam.Elastic, error) {
	if _, err := knownRange(c.Index(), addr); err != nil {
		return nil, err
	}
	known := c.Index().Elastic(addr)
	return known, matches(known, seen)
}

// matches refuses a change if the address has changed since the requester saw it. A seen of 0 matches always.
func matches(known *ipam.Elastic, seen uint64) error {
	if seen == 0 || known != nil && known.ID == seen {
		return nil
	}
	return ipam.Refuse(ipam.ErrChanged, "the elastic address has changed since you read it; read it again, and "+
		"repeat the change")
}
