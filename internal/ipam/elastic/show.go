package elastic

import (
	"context"
	"math/big"
	"net/netip"
	"slices"
	"strings"

	"berth/internal/alloc"
	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// Elastics lists the elastic addresses after one that are not free, of an account or, with an empty name, of all, by
// address. It returns at most limit of them; 0 means all.
func (s Addresses) Elastics(ctx context.Context, account string, after netip.Addr, limit int) (all []ipam.ElasticInfo,
	err error) {
	err = s.look(ctx, func(c *ledger.Change) error {
		all = []ipam.ElasticInfo{}
		account, err := askedFor(c, account)
		if err != nil {
			return err
		}
		if account != "" && account != ipam.DefaultAccount && c.Index().Account(account) == nil {
			return noAccount(account)
		}
		found := recordsOf(c.Index(), func(one *ipam.Elastic) bool {
			return after.Less(one.Address) && (account == "" || one.Account == account) &&
				!isMoving(c.Index(), one.Address)
		})
		if limit > 0 {
			found = found[:min(len(found), limit)]
		}
		for _, one := range found {
			info, err := show(c, one.Address)
			if err != nil {
				return err
			}
			all = append(all, info)
		}
		return nil
	})
	return all, err
}

// Elastic shows one elastic address, also a free one.
func (s Addresses) Elastic(ctx context.Context, addr netip.Addr) (info ipam.ElasticInfo, err error) {
	err = s.look(ctx, func(c *ledger.Change) error {
		if err := itsOwn(c, addr); err != nil {
			return err
		}
		if _, err := knownRange(c.Index(), addr); err != nil && c.Index().Elastic(addr) == nil {
			return err
		}
		info, err = show(c, addr)
		return err
	})
	return info, err
}

// clusterRegion is the region of ranges that hosts share.
const clusterRegion = "cluster"

func show(c *ledger.Change, addr netip.Addr) (ipam.ElasticInfo, error) {
	info := ipam.ElasticInfo{ID: ipam.ElasticID(addr), Address: addr, Region: clusterRegion, Kind: ipam.KindElastic,
		State: ipam.ElasticFree}
	if c.Member() == nil {
		info.Region = c.Host()
	}
	if r := rangeOf(c.Index(), addr); r != nil && r.Host != "" {
		info.Kind, info.HostRange, info.Region = ipam.KindHost, r.Host, r.Host
	}
	known := c.Index().Elastic(addr)
	if known == nil {
		return info, nil
	}
	info.State, info.Account, info.Allocated, info.Revision = known.State, known.Account, known.Allocated, known.ID
	info.ReleaseOn = known.ReleaseOn.String()
	if known.System {
		info.Kind = ipam.KindSystem
	}
	if a := c.Index().Account(known.Account); a != nil {
		info.Domain = a.Domain
	}
	if known.Association == nil {
		return info, nil
	}
	return info, showAssociation(c, &info, known.Association)
}

func showAssociation(c *ledger.Change, info *ipam.ElasticInfo, a *ipam.Association) error {
	g, there, err := mapped(c, a)
	if err != nil {
		return err
	}
	info.Associated, info.Instance, info.EgressOnly = true, a.Instance, a.EgressOnly
	info.Network, info.NetworkID, info.Guest, info.Host = c.NetworkName(a.Network), a.Network, a.Guest, g.host
	if there {
		info.Guest, info.Interface = g.addr, int(g.slot.Interface)
	}
	if info.Host == "" && c.Member() == nil {
		info.Host = c.Host()
	}
	showApplied(c, info, a)
	return nil
}

// showApplied shows what an edge has reported about an association: preferably the guest's host. If another host's edge
// may still have the address, that one is waited for.
func showApplied(c *ledger.Change, info *ipam.ElasticInfo, a *ipam.Association) {
	var waits *ipam.AppliedInfo
	for _, at := range appliedOf(c.Index(), c.Host(), info.Address) {
		switch {
		case at.Host != info.Host && info.Host != "" && c.Member() != nil:
			if at.InForce {
				waits = &ipam.AppliedInfo{Host: at.Host, Since: at.Since, Error: "the edge of host " + at.Host +
					" may still answer for this address; Berth waits until it confirms that it has stopped"}
			}
		case at.Unsaid, at.Association != a.ID, info.Host != "" && !at.InForce && at.Error == "": // or only staged
		case info.Applied == nil || at.Host == info.Host:
			info.Applied = &ipam.AppliedInfo{Host: at.Host, Since: at.Since, Error: at.Error}
		}
	}
	if waits != nil {
		info.Applied = waits
	}
}

// EdgeHosts lists the hosts that share the store and whose edges have a session, by name.
func (s Addresses) EdgeHosts() []string {
	s, err := s.home()
	if err != nil || s.ledger.Member() == nil {
		return nil
	}
	return s.ledger.EdgeHosts()
}

// Accounts lists the accounts by name, with the account `default`.
func (s Addresses) Accounts(ctx context.Context) (all []ipam.AccountInfo, err error) {
	err = s.look(ctx, func(c *ledger.Change) error {
		counts := map[string]int{}
		for _, one := range c.Index().Elastics() {
			if !one.System {
				counts[one.Account]++
			}
		}
		all = nil
		if c.Index().Account(ipam.DefaultAccount) == nil {
			all = append(all, ipam.AccountInfo{Account: ipam.Account{Name: ipam.DefaultAccount}})
		}
		for _, a := range c.Index().Accounts() {
			all = append(all, ipam.AccountInfo{Account: *a})
		}
		for i := range all {
			all[i].Addresses = counts[all[i].Name]
		}
		if own := c.Account(); own != "" {
			all = slices.DeleteFunc(all, func(a ipam.AccountInfo) bool { return a.Name != own })
		}
		slices.SortFunc(all, func(a, b ipam.AccountInfo) int { return strings.Compare(a.Name, b.Name) })
		return nil
	})
	return all, err
}

// ElasticRanges lists the ranges of elastic addresses by address.
func (s Addresses) ElasticRanges(ctx context.Context) (all []ipam.ElasticRangeInfo, err error) {
	err = s.look(ctx, func(c *ledger.Change) error {
		all = []ipam.ElasticRangeInfo{}
		for _, r := range ranges(c.Index()) {
			all = append(all, ipam.ElasticRangeInfo{ElasticRange: *r})
		}
		for addr, one := range c.Index().Elastics() {
			for i := range all {
				if all[i].Range.Contains(addr) {
					all[i].Allocated++
					if one.Association != nil {
						all[i].Associated++
					}
				}
			}
		}
		return nil
	})
	return all, err
}

// ElasticUse counts the addresses of each range by state, and the associations that should be in force on this host and
// are not, according to its edge.
func (s Addresses) ElasticUse(ctx context.Context) (use ipam.ElasticUse, err error) {
	err = s.look(ctx, func(c *ledger.Change) error {
		accounts := claimsOf(c.Index())
		use = ipam.ElasticUse{Host: c.Host(), Ranges: rangeUses(c.Index())}
		for addr, one := range c.Index().Elastics() {
			i := slices.IndexFunc(use.Ranges, func(r ipam.RangeUse) bool { return r.Range.Contains(addr) })
			if i >= 0 && one.State == ipam.ElasticReleasing {
				use.Ranges[i].Releasing++
			} else if i >= 0 {
				use.Ranges[i].Allocated++
			}
			missing, err := unapplied(c, accounts, one)
			if err != nil {
				return err
			}
			if missing {
				use.Unapplied++
			}
		}
		for i := range use.Ranges {
			r := &use.Ranges[i]
			r.Free.Sub(r.Free.Int, new(big.Int).SetUint64(r.Allocated+r.Releasing))
		}
		return nil
	})
	return use, err
}

// rangeUses lists all ranges by address, as if all of their addresses were free.
func rangeUses(ix *ledger.Index) (all []ipam.RangeUse) {
	for _, r := range ranges(ix) {
		all = append(all, ipam.RangeUse{Range: r.Range, Free: ipam.Count{Int: alloc.Size(r.Range.IPRange)}})
	}
	return all
}

// unapplied reports whether an address should be mapped to a container that runs here, and this host's edge has not
// reported it.
func unapplied(c *ledger.Change, accounts *claims, one *ipam.Elastic) (bool, error) {
	if one.Association == nil {
		return false, nil
	}
	at := c.Index().Applied(ledger.AppliedAt{Host: c.Host(), Address: one.Address})
	if at != nil && at.Association == one.Association.ID && at.InForce && at.Error == "" && !at.Unsaid {
		return false, nil
	}
	l, there, err := leadOf(c, accounts, one.Address)
	return there && l.here && !l.Staged, err
}
