package docker

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"berth/internal/ipam"
	"berth/internal/shorten"
)

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
	leased     time.Time // since when, for an unused lease: the container of a young one may be starting
	superseded bool      // of an attachment: other Docker networks have its subnet now
}

// ofLease is a finding about a lease.
func ofLease(kind ipam.FindingKind, l *ipam.LeaseInfo) finding {
	return finding{Finding: ipam.Finding{Kind: kind, Space: l.Space, Address: l.Address, Network: l.Network,
		Owner: cmp.Or(l.Owner, l.Name), Lease: l.ID, Pool: l.Pool, Subnet: l.Subnet, MAC: l.MAC}}
}

// ofSight is a finding about an endpoint's address.
func (c *comparison) ofSight(kind ipam.FindingKind, s *sight) finding {
	return finding{thing: s.endpoint.ID, name: s.container.Name, Finding: ipam.Finding{Kind: kind, Space: s.spaces[0],
		Address: s.addr, Network: c.networkOf(s), Owner: s.container.Owner(), MAC: s.endpoint.MAC}}
}

// ofSubnet is a finding about a subnet of a network.
func ofSubnet(kind ipam.FindingKind, seg segment, network string) finding {
	return finding{Finding: ipam.Finding{Kind: kind, Space: seg.space, Network: network, Subnet: seg.cidr}}
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
	order := map[ipam.FindingKind]int{}
	for i, row := range ipam.FindingKinds {
		r.Counts[row.Kind], order[row.Kind] = 0, i
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
		return cmp.Or(cmp.Compare(order[a.Kind], order[b.Kind]),
			cmp.Compare(a.Space, b.Space),
			a.Address.Compare(b.Address), a.Subnet.Compare(b.Subnet), cmp.Compare(a.Network, b.Network),
			cmp.Compare(a.Lease, b.Lease))
	})
	return r
}
