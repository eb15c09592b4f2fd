package ipam

import (
	"cmp"
	"context"
	"encoding/json"
	"iter"
	"math/big"
	"net/netip"
	"slices"
	"time"

	"berth/internal/alloc"
	"berth/store"
)

// Count is a number of addresses, exact up to 2^128. In JSON it is a number up to 2^53 and a decimal string above.
type Count struct{ *big.Int }

// MarshalJSON keeps what a JSON number can hold exactly, and writes the rest as a string.
func (n Count) MarshalJSON() ([]byte, error) {
	if n.Int == nil {
		return []byte("0"), nil
	}
	if n.BitLen() <= 53 {
		return []byte(n.String()), nil
	}
	return json.Marshal(n.String())
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (n *Count) UnmarshalJSON(b []byte) error {
	if len(b) > 1 && b[0] == '"' {
		b = b[1 : len(b)-1]
	}
	n.Int = new(big.Int)
	return n.Int.UnmarshalText(b)
}

// SpaceInfo is a space as it is shown.
type SpaceInfo struct {
	Space
	Subnets int    `json:"subnets"`
	Leases  uint64 `json:"leases"`          // addresses held in all of them
	Store   string `json:"store,omitempty"` // on a host of a cluster: HostStore or ClusterStore
}

// SubnetInfo is a subnet as it is shown, with what its network says.
type SubnetInfo struct {
	Subnet
	NetworkName string            `json:"network_name"`
	Tags        map[string]string `json:"tags,omitempty"`
	Sticky      bool              `json:"sticky"`
	Quarantine  string            `json:"quarantine,omitempty"`
	Held        uint64            `json:"held"`
	Remembered  int               `json:"remembered"`
	Free        Count             `json:"free"`            // of the addresses in its pools
	Hosts       []string          `json:"hosts,omitempty"` // of the cluster, with a Docker network on it, by name
}

// LeaseInfo is a lease or a memory as it is shown.
type LeaseInfo struct {
	ID       uint64       `json:"id"`
	Address  netip.Addr   `json:"address"`
	Subnet   netip.Prefix `json:"subnet"`
	Space    string       `json:"space"`
	Network  string       `json:"network"`
	Kind     Kind         `json:"kind"`
	State    string       `json:"state"` // held or remembered
	Name     string       `json:"name,omitempty"`
	MAC      MAC          `json:"mac,omitzero"`
	Host     string       `json:"host"`
	Pool     ID           `json:"pool,omitzero"`
	Owner    string       `json:"owner,omitempty"` // whose the address is by a reservation
	Since    time.Time    `json:"since"`
	Released time.Time    `json:"released,omitzero"`
	Until    time.Time    `json:"quarantine_until,omitzero"`
	SeenBy   *SeenBy      `json:"seen_by,omitempty"` // the container that has it, where a witness knows
}

// LeaseFilter chooses leases. Zero fields choose all that are held.
type LeaseFilter struct {
	Space      string
	Subnet     netip.Prefix
	Remembered bool // memories too
	AfterSpace string
	After      netip.Addr // only those behind this address of that space; zero: all
}

// Spaces lists the spaces by name.
func (s *Service) Spaces(ctx context.Context) ([]SpaceInfo, error) {
	var all []SpaceInfo
	err := s.store.View(ctx, func(tx store.Tx) error {
		all = nil
		for rec, err := range tx.Scan(kindRange(spaceKeys)) {
			if err != nil {
				return err
			}
			var info SpaceInfo
			if err := decodeJSON("a space", rec.Value, &info.Space); err != nil {
				return err
			}
			all = append(all, info)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range all {
		for _, id := range s.ix.space(all[i].Name).ids {
			if n := s.ix.network(s.ix.subnets[id].record.value.Network); n != nil && n.Stage != "" {
				continue // as in Subnets
			}
			all[i].Subnets++
			all[i].Leases += s.ix.subnets[id].held()
		}
	}
	return all, nil
}

// Subnets lists the subnets of a space, or of all where it is empty, by space and address.
func (s *Service) Subnets(ctx context.Context, space string) ([]SubnetInfo, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []SubnetInfo
	for _, sx := range s.ix.subnets {
		sub := sx.record.value
		if n := s.ix.network(sub.Network); n != nil && n.Stage != "" {
			continue // it is not there as a whole
		}
		if space == "" || sub.Space == space {
			all = append(all, s.describe(sub, sx))
		}
	}
	slices.SortFunc(all, orderSubnets)
	return all, nil
}

func orderSubnets(a, b SubnetInfo) int {
	return cmp.Or(cmp.Compare(a.Space, b.Space), a.CIDR.Addr().Compare(b.CIDR.Addr()))
}

func (s *Service) describe(sub *Subnet, sx *subnetIndex) SubnetInfo {
	info := SubnetInfo{Subnet: *sub, Held: sx.held(), Remembered: sx.released.Len(), Free: Count{new(big.Int)}}
	info.Pools, info.Attachments = append([]Pool{}, sub.Pools...), append([]ID{}, sub.Attachments...) // in JSON lists, not null
	if n := s.ix.network(sub.Network); n != nil {
		info.NetworkName, info.Tags, info.Sticky = n.Name, n.Tags, !n.Policy.Forget
		if n.Policy.Quarantine > 0 {
			info.Quarantine = n.Policy.Quarantine.String()
		}
	}
	if s.member != nil {
		info.Hosts = s.hostsOn(sub)
	}
	for _, open := range sx.openPools(sub) {
		info.Free.Add(info.Free.Int, sx.free(&open))
	}
	return info
}

// hostsOn are the hosts that hold the subnet, by name.
func (s *Service) hostsOn(sub *Subnet) (all []string) {
	for _, id := range sub.Attachments {
		if at := s.ix.attachments[id].value; at != nil {
			all = append(all, at.Host)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// free counts the addresses of p that nobody holds, and that are nobody's.
func (sx *subnetIndex) free(p *openPool) *big.Int {
	n := new(big.Int)
	for _, r := range p.ranges {
		n.Add(n, alloc.Size(r))
		n.Sub(n, new(big.Int).SetUint64(sx.recorded.CountIn(r)))
	}
	for addr := range sx.memories {
		if p.contains(addr) {
			n.Add(n, big.NewInt(1))
		}
	}
	return n
}

// Leases yields leases by space, subnet and address, until an error is yielded, which is the last. It reads them in pages, so
// that neither a long list nor a slow receiver keeps a state of the store alive; a lease that changes meanwhile is seen
// as it was or as it is.
func (s *Service) Leases(ctx context.Context, f LeaseFilter) iter.Seq2[LeaseInfo, error] {
	return func(yield func(LeaseInfo, error) bool) {
		subnets, err := s.Subnets(ctx, f.Space)
		if err != nil {
			yield(LeaseInfo{}, err)
			return
		}
		begin := AddressFilter{AfterSpace: f.AfterSpace, After: f.After}
		for _, sub := range subnets {
			if f.Subnet.IsValid() && f.Subnet != sub.CIDR || begin.past(&sub) {
				continue
			}
			if !s.leasesOf(ctx, &sub, begin.afterIn(&sub), f.Remembered, yield) {
				return
			}
		}
	}
}

// leasesOf yields the leases of one subnet behind an address, and tells whether more are wanted.
func (s *Service) leasesOf(ctx context.Context, sub *SubnetInfo, after netip.Addr, remembered bool, yield func(LeaseInfo, error) bool) bool {
	for l, err := range s.records(ctx, sub.ID, after) {
		if err != nil {
			yield(LeaseInfo{}, err)
			return false
		}
		if (l.Held() || remembered && l.Remembered()) && !yield(sub.show(l), nil) {
			return false
		}
	}
	return true
}

func (sub *SubnetInfo) show(l *Lease) LeaseInfo {
	info := LeaseInfo{ID: l.ID, Address: l.Address, Subnet: sub.CIDR, Space: sub.Space, Network: sub.NetworkName,
		Kind: l.Kind, State: "held", Name: l.Name, MAC: l.MAC, Host: l.Host, Pool: l.Attachment,
		Since: l.Since, Released: l.Released, Until: l.Until}
	if r := l.Reservation; r != nil {
		info.Owner = r.Owner
	}
	if !l.Held() {
		info.State = "remembered"
	}
	return info
}

// EventFilter chooses events.
type EventFilter struct {
	Since time.Time // zero: from the first
	After uint64    // only those with a greater id
	First int       // only so many, the earliest; 0: all
	Last  int       // only so many, the latest; 0: all
}

// Events lists events, the oldest first.
func (s *Service) Events(ctx context.Context, f EventFilter) ([]Event, error) {
	r := eventsFrom(f.After)
	if !f.Since.IsZero() {
		if id := uint64(max(f.Since.UnixMicro(), 0)); id > f.After {
			r = eventsFrom(id - 1)
		}
	}
	r.Limit, r.Reverse = f.First, false
	if f.Last > 0 {
		r.Limit, r.Reverse = f.Last, true
	}
	var all []Event
	err := s.store.View(ctx, func(tx store.Tx) error {
		all = nil
		for rec, err := range tx.Scan(r) {
			if err != nil {
				return err
			}
			e, err := decodeEvent(eventID(rec.Key), rec.Value)
			if err != nil {
				return err
			}
			all = append(all, *e)
		}
		return nil
	})
	if r.Reverse {
		slices.Reverse(all)
	}
	return all, err
}

// Follow yields each event that is committed after the call, until ctx ends or an error is yielded, which is the last.
func (s *Service) Follow(ctx context.Context) func(yield func(Event, error) bool) {
	committed := s.store.Watch(ctx, []byte{eventKeys})
	return func(yield func(Event, error) bool) {
		for change, err := range committed {
			if err != nil {
				yield(Event{}, err)
				return
			}
			if change.Value == nil {
				continue // trimmed
			}
			e, err := decodeEvent(eventID(change.Key), change.Value)
			if err != nil {
				yield(Event{}, err)
				return
			}
			if !yield(*e, nil) {
				return
			}
		}
	}
}
