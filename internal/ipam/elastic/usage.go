package elastic

import (
	"cmp"
	"context"
	"encoding/json"
	"math"
	"net/netip"
	"slices"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
	"berth/store"
)

// addressFacts is the part of an address that its events of allocation and release record. It is enough for the usage:
// the release alone says how long the account had the address.
type addressFacts struct {
	Account   string    `json:"account"`
	Kind      string    `json:"kind"`
	Allocated time.Time `json:"allocated"`
}

func factsOfAddress(c *ledger.Change, e *ipam.Elastic) addressFacts {
	kind := ipam.KindElastic
	if r := rangeOf(c.Index(), e.Address); r != nil && r.Host != "" {
		kind = ipam.KindHost
	}
	if e.System {
		kind = ipam.KindSystem
	}
	return addressFacts{e.Account, kind, e.Allocated}
}

// stretch is a time in which an account had an address. A zero end means that it still has it.
type stretch struct {
	account    string
	addr       netip.Addr
	begin, end time.Time
}

// Usage adds up how long accounts had addresses: the present ones according to their records, and released ones
// according to the events of the release.
func (s Addresses) Usage(ctx context.Context, f ipam.UsageFilter) (ipam.UsageReport, error) {
	s, err := s.home()
	if err != nil {
		return ipam.UsageReport{}, err
	}
	now := s.ledger.Now()
	if f.Until.IsZero() || f.Until.After(now) {
		f.Until = now
	}
	if f.Since.After(f.Until) {
		return ipam.UsageReport{}, ipam.Refuse(ipam.ErrInvalid, "the requested time ends at %s, before it begins at "+
			"%s", f.Until.UTC().Format(time.RFC3339), f.Since.UTC().Format(time.RFC3339))
	}
	var all []stretch
	var oldest time.Time
	err = s.ledger.View(ctx, func(tx store.Tx) (err error) {
		if all, err = lasting(tx); err != nil {
			return err
		}
		released, begun, err := released(tx, f.Since)
		all, oldest = append(all, released...), begun
		return err
	})
	if err != nil {
		return ipam.UsageReport{}, err
	}
	if only := ipam.AccountOf(ctx); only != "" {
		all = slices.DeleteFunc(all, func(one stretch) bool { return one.account != only })
	}
	report := ipam.UsageReport{Since: f.Since, Until: f.Until}
	switch {
	case f.Since.IsZero():
		report.Since = cmp.Or(oldest, f.Until)
		for _, one := range all {
			if one.begin.Before(report.Since) {
				report.Since = one.begin
			}
		}
	case f.Since.Before(oldest):
		report.KnownSince = oldest
	}
	report.Accounts = sums(all, &report)
	s.ledger.Read(func(ix *ledger.Index) {
		for i := range report.Accounts {
			if a := ix.Account(report.Accounts[i].Account); a != nil {
				report.Accounts[i].Domain = a.Domain
			}
		}
	})
	return report, nil
}

// lasting lists the addresses that accounts have.
func lasting(tx store.Tx) (all []stretch, err error) {
	for rec, err := range tx.Scan(ledger.KindRange(ledger.ElasticKeys)) {
		if err != nil {
			return nil, err
		}
		known, ok := ledger.Decoded[ipam.Elastic](rec.Value)
		if !ok {
			continue // opening the store refuses it
		}
		if e := known.Value; e.State == ipam.ElasticAllocated && !e.System {
			all = append(all, stretch{account: e.Account, addr: e.Address, begin: e.Allocated})
		}
	}
	return all, nil
}

// released lists what was released since a time, according to the events, and how far back these reach.
func released(tx store.Tx, since time.Time) (all []stretch, oldest time.Time, err error) {
	for at, err := range ledger.EventsIn(tx, ledger.EventRange{}) {
		if err != nil {
			return nil, oldest, err
		}
		oldest = at.Time()
		break
	}
	for at, err := range ledger.EventsIn(tx, ledger.EventRange{From: uint64(max(since.UnixMicro(), 0))}) {
		if err != nil {
			return nil, oldest, err
		}
		e, err := at.Decode()
		if err != nil {
			return nil, oldest, err
		}
		if one, is := ended(e); is {
			all = append(all, one)
		}
	}
	return all, oldest, nil
}

// ended returns what the event of a release has ended.
func ended(e *ipam.Event) (stretch, bool) {
	if e.Verb != ipam.ElasticReleased || len(e.Before) == 0 {
		return stretch{}, false
	}
	var was addressFacts
	if err := json.Unmarshal(e.Before, &was); err != nil || was.Allocated.IsZero() || was.Kind == ipam.KindSystem {
		return stretch{}, false
	}
	return stretch{was.Account, e.Address, was.Allocated, e.Time}, true
}

// sums adds up the parts of the stretches that lie in the report's time.
func sums(all []stretch, report *ipam.UsageReport) []ipam.AccountUsage {
	had := map[string]map[netip.Addr]bool{}
	lasted := map[string]time.Duration{}
	for _, one := range all {
		begin, end := one.begin, one.end
		if begin.Before(report.Since) {
			begin = report.Since
		}
		if end.IsZero() || end.After(report.Until) {
			end = report.Until
		}
		if !begin.Before(end) {
			continue
		}
		if had[one.account] == nil {
			had[one.account] = map[netip.Addr]bool{}
		}
		had[one.account][one.addr] = true
		lasted[one.account] += end.Sub(begin)
	}
	sums := []ipam.AccountUsage{}
	for account, addrs := range had {
		sums = append(sums, ipam.AccountUsage{Account: account, Addresses: len(addrs),
			Hours: math.Round(lasted[account].Hours()*1e4) / 1e4})
	}
	slices.SortFunc(sums, func(a, b ipam.AccountUsage) int { return cmp.Compare(a.Account, b.Account) })
	return sums
}
