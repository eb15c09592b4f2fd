package docker

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"berth/internal/ipam"
	"berth/internal/shorten"
)

// kinds are all kinds of findings, in the order of a report.
var kinds = append([]ipam.FindingKind{
	ipam.EmptyState, ipam.UnusedLease, ipam.UncoveredAddress, ipam.DoubledAddress, ipam.OutdatedLease,
	ipam.LostLease, ipam.ConflictingLease, ipam.UnconfirmedLease,
	ipam.UnusedSubnet, ipam.UnusedAttachment, ipam.UnknownPool,
	ipam.WrongGateway, ipam.ForeignHolder, ipam.OwnerElsewhere, ipam.StaleMemory, ipam.SupersededReservation,
	ipam.ShadowedSubnet, ipam.BridgeOnLAN, ipam.UnprobedNetwork, ipam.ForeignAnswer, ipam.EndingToken,
}, ipam.ElasticKinds()...)

// finding is a difference, with the data for its repair.
type finding struct {
	ipam.Finding
	thing  string    // id of the endpoint or Docker network
	name   string    // of the container, for a lease of its address
	stray  string    // detail of the event for a container on a wrong address; empty: there is no event
	pools  []ipam.ID // attachments that a repair ends
	astray *Astray   // the container that can be put back; nil: none

	// sure means that a repair is allowed: at once or, with slow, when the finding has lasted long enough.
	sure, slow bool
}

// key identifies a finding, also among later ones of the same address.
type key struct {
	kind   ipam.FindingKind
	space  string
	addr   netip.Addr
	subnet netip.Prefix
	lease  uint64
	pool   ipam.ID
	thing  string
}

func (f *finding) key() key {
	return key{f.Kind, f.Space, f.Address, f.Subnet, f.Lease, f.Pool, f.thing}
}

// mark returns the key of a finding in an earlier report.
func mark(f *ipam.Finding) key {
	return key{f.Kind, f.Space, f.Address, f.Subnet, f.Lease, f.Pool, ""}
}

// both returns the findings that others contains, too.
func both(found, others []finding) []finding {
	there := make(map[key]bool, len(others))
	for i := range others {
		there[others[i].key()] = true
	}
	return slices.DeleteFunc(found, func(f finding) bool { return !there[f.key()] })
}

// report makes a report of findings, in order.
func report(host, engine string, taken time.Time, found []finding) ipam.CheckReport {
	r := ipam.CheckReport{Host: host, Engine: engine, Taken: taken, Findings: make([]ipam.Finding, 0, len(found)),
		Counts: map[ipam.FindingKind]int{}}
	for _, kind := range kinds {
		r.Counts[kind] = 0
	}
	for i := range found {
		f := found[i].Finding
		f.Detail = shorten.Text(f.Detail)
		r.Findings = append(r.Findings, f)
		r.Counts[found[i].Kind]++
		if found[i].Repaired {
			r.Repaired++
		}
	}
	slices.SortStableFunc(r.Findings, func(a, b ipam.Finding) int {
		return cmp.Or(cmp.Compare(slices.Index(kinds, a.Kind), slices.Index(kinds, b.Kind)),
			cmp.Compare(a.Space, b.Space),
			a.Address.Compare(b.Address), a.Subnet.Compare(b.Subnet), cmp.Compare(a.Network, b.Network),
			cmp.Compare(a.Lease, b.Lease))
	})
	return r
}
