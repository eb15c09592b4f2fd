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

// addressFacts is what events tell of an address that is allocated or released (CS-10): enough for the usage, so that
// one event of the end says how long it lasted.
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

// stretch is a time in which an account had an address; a zero end: it has it.
type stretch struct {
	account    string
	addr       netip.Addr
	begin, end time.Time
	id         uint64 // of the event of its end, or of the last change of the record
}

// begun identifies a stretch: by when its address was allocated and, of those that have ended, by the event of that.
type begun struct {
	addr  netip.Addr
	at    int64
	ended uint64
}

// note takes down a stretch that an event tells to have ended. What ended after the records were read stands there,
// too.
func (one *stretch) note(all map[begun]stretch) {
	lasting := begun{one.addr, one.begin.UnixNano(), 0}
	if known, there := all[lasting]; there && known.id < one.id {
		delete(all, lasting)
	}
	all[begun{one.addr, one.begin.UnixNano(), one.id}] = *one
}

// Usage sums how long accounts had addresses: those that they have by their records, and those that they released by
// the events of that (CS-10).
func (s Room) Usage(ctx context.Context, f ipam.UsageFilter) (ipam.UsageReport, error) {
	s, err := s.home()
	if err != nil {
		return ipam.UsageReport{}, err
	}
	now := s.ledger.Now()
	if f.Until.IsZero() || f.Until.After(now) {
		f.Until = now
	}
	if f.Since.After(f.Until) {
		return ipam.UsageReport{}, ipam.Refuse(ipam.ErrInvalid, "the time that is asked for ends at %s, before it "+
			"begins at %s", f.Until.UTC().Format(time.RFC3339), f.Since.UTC().Format(time.RFC3339))
	}
	all, domains := s.lasting(ipam.AccountOf(ctx)) // first, so that what ends meanwhile is seen to end
	oldest, err := s.released(ctx, f.Since, all)
	if err != nil {
		return ipam.UsageReport{}, err
	}
	report := ipam.UsageReport{Since: f.Since, Until: f.Until}
	switch {
	case f.Since.IsZero():
		report.Since = earliest(all, cmp.Or(oldest, f.Until))
	case f.Since.Before(oldest):
		report.KnownSince = oldest
	}
	report.Accounts = sums(all, &report, domains)
	return report, nil
}

// lasting are the addresses that accounts have, or that only one account has, and the domains of all.
func (s Room) lasting(only string) (all map[begun]stretch, domains map[string]string) {
	all, domains = map[begun]stretch{}, map[string]string{}
	s.ledger.Read(func(ix *ledger.Index) {
		for name, a := range ix.Accounts() {
			domains[name] = a.Domain
		}
		for addr, e := range ix.Elastics() {
			if e.State != ipam.ElasticAllocated || e.System || only != "" && e.Account != only {
				continue
			}
			all[begun{addr, e.Allocated.UnixNano(), 0}] = stretch{account: e.Account, addr: addr,
				begin: e.Allocated, id: e.ID}
		}
	})
	return all, domains
}

// usagePage is how many events are read at a time.
const usagePage = 1000

// released adds what was released since a time, as events tell, and tells how far back those reach.
func (s Room) released(ctx context.Context, since time.Time, all map[begun]stretch) (oldest time.Time, err error) {
	err = s.ledger.View(ctx, func(tx store.Tx) error {
		for at, err := range ledger.EventsIn(tx, ledger.EventRange{}) {
			oldest = at.Time()
			return err
		}
		return nil
	})
	if err != nil {
		return oldest, err
	}
	only, after := ipam.AccountOf(ctx), uint64(max(since.UnixMicro(), 0))
	for read := usagePage; read == usagePage; {
		from := after
		err := s.ledger.View(ctx, func(tx store.Tx) error {
			read = 0
			for at, err := range ledger.EventsIn(tx, ledger.EventRange{From: from}) {
				if err != nil {
					return err
				}
				if read == usagePage {
					return nil
				}
				read, after = read+1, at.ID+1
				e, err := at.Decode()
				if err != nil {
					return err
				}
				if one, is := ended(e); is && (only == "" || one.account == only) {
					one.note(all)
				}
			}
			return nil
		})
		if err != nil {
			return oldest, err
		}
	}
	return oldest, nil
}

// ended is what the event of a release tells to have ended.
func ended(e *ipam.Event) (stretch, bool) {
	if e.Verb != ipam.ElasticReleased || len(e.Before) == 0 {
		return stretch{}, false
	}
	var was addressFacts
	if err := json.Unmarshal(e.Before, &was); err != nil || was.Allocated.IsZero() || was.Kind == ipam.KindSystem {
		return stretch{}, false
	}
	return stretch{was.Account, e.Address, was.Allocated, e.Time, e.ID}, true
}

// earliest is when the first of some stretches began, or another time that is before.
func earliest(all map[begun]stretch, or time.Time) time.Time {
	for _, one := range all {
		if one.begin.Before(or) {
			or = one.begin
		}
	}
	return or
}

// sums adds up what of the stretches lies in the time of the report.
func sums(all map[begun]stretch, report *ipam.UsageReport, domains map[string]string) []ipam.AccountUsage {
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
		sums = append(sums, ipam.AccountUsage{Account: account, Domain: domains[account], Addresses: len(addrs),
			Hours: math.Round(lasted[account].Hours()*1e4) / 1e4})
	}
	slices.SortFunc(sums, func(a, b ipam.AccountUsage) int { return cmp.Compare(a.Account, b.Account) })
	return sums
}
