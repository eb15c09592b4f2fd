package cluster

import (
	"context"
	"net/netip"
	"slices"

	"berth/internal/allocator"
	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
	"berth/store"
)

// recalled is what a host remembers of the shared store.
type recalled struct {
	head        recallHead
	networks    map[ipam.ID]*ipam.Network
	subnets     map[ipam.ID]*ipam.Subnet
	attachments map[ipam.ID]*ipam.Attachment // of this host
	hosts       map[string]*ipam.Host
	spaces      []string
	leases      map[ipam.ID]map[netip.Addr]*ipam.Lease // by subnet; this host's own, and planned ones
	standIns    []ipam.StandIn                         // of this host
	settings    map[string][]byte                      // as stored, by key; with the owners in dynamic networks
	elastic     map[string][]byte                      // addresses, ranges and accounts, as stored
	// the elastic addresses that edges may have in force, of all hosts
	granted map[string][]byte
}

// readRecalled reads what is remembered, or nil.
func readRecalled(ctx context.Context, own store.Store) (all *recalled, err error) {
	head, err := readRecallHead(ctx, own)
	if err != nil || head == nil {
		return nil, err
	}
	err = own.View(ctx, func(tx store.Tx) error {
		all = &recalled{head: *head, networks: map[ipam.ID]*ipam.Network{}, subnets: map[ipam.ID]*ipam.Subnet{},
			attachments: map[ipam.ID]*ipam.Attachment{}, hosts: map[string]*ipam.Host{},
			leases: map[ipam.ID]map[netip.Addr]*ipam.Lease{}, settings: map[string][]byte{},
			elastic: map[string][]byte{}, granted: map[string][]byte{}}
		for rec, err := range tx.Scan(recalledRecords()) {
			if err != nil {
				return err
			}
			if err := all.take([]byte(recalledAs(rec.Key)), rec.Value); err != nil {
				return err
			}
		}
		return nil
	})
	return all, err
}

// take adds one record in the form of the shared store.
func (r *recalled) take(key, value []byte) error {
	switch key[0] {
	case ledger.NetworkKeys:
		n := new(ipam.Network)
		r.networks[ipam.ID(key[1:])] = n
		return ipam.DecodeJSON("a remembered network", value, n)
	case ledger.SubnetKeys:
		sub := new(ipam.Subnet)
		if err := ipam.DecodeJSON("a remembered subnet", value, sub); err != nil {
			return err
		}
		r.subnets[sub.ID] = sub
	case ledger.AttachmentKeys:
		at := new(ipam.Attachment)
		r.attachments[ipam.ID(key[1:])] = at
		return ipam.DecodeJSON("a remembered pool", value, at)
	case ledger.HostKeys:
		h := new(ipam.Host)
		r.hosts[string(key[1:])] = h
		return ipam.DecodeJSON("a remembered host", value, h)
	case allocator.StandInKeys:
		var in ipam.StandIn
		if err := ipam.DecodeJSON("a remembered stand-in", value, &in); err != nil {
			return err
		}
		r.standIns = append(r.standIns, in)
	case ledger.SpaceKeys:
		r.spaces = append(r.spaces, string(key[1:]))
	case ledger.LeaseKeys:
		subnet, addr, ok := ledger.LeaseKeyParts(key)
		if !ok {
			return nil
		}
		l, err := ipam.DecodeLease(addr, value)
		if err != nil {
			return err
		}
		if r.leases[subnet] == nil {
			r.leases[subnet] = map[netip.Addr]*ipam.Lease{}
		}
		r.leases[subnet][addr] = l
	case ledger.AccountKeys, ledger.ElasticRangeKeys, ledger.ElasticKeys:
		r.elastic[string(key)] = slices.Clone(value)
	case ledger.AppliedKeys:
		r.granted[string(key)] = slices.Clone(value)
	default:
		r.settings[string(key)] = slices.Clone(value)
	}
	return nil
}
