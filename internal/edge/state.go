package edge

import (
	"net/netip"
	"time"
)

// State is everything that a host's edge must have in place. Anything else is removed.
type State struct {
	Ranges   []Range   `json:"ranges"`
	Mappings []Mapping `json:"mappings"`
	// Until is when ranges with Withdraw stop answering. Zero: they do not answer at all.
	Until BootTime `json:"until,omitzero"`
}

// Range is a range of elastic addresses of one family, From and To included.
type Range struct {
	From netip.Addr `json:"from"`
	To   netip.Addr `json:"to"`
	// Announce is the device that answers for the addresses. Empty: they are routed here by other means.
	Announce string `json:"announce,omitempty"`
	// OnCut says whether the range stops answering when Until passes.
	OnCut OnCut `json:"on_cut"`
	// TTL bounds how long the kernel answers without a renewal. Zero: only Until counts.
	TTL time.Duration `json:"ttl,omitempty"`
	// Sooner is the time before Until at which the range stops answering, for ranges with different times.
	Sooner time.Duration `json:"sooner,omitempty"`
}

// OnCut is what happens to a range when its host loses the connection to the others.
type OnCut string

const (
	// Withdraw: another host may take over the addresses, so this one stops answering.
	Withdraw OnCut = "withdraw"
	// Keep: no host takes them over, so this one continues.
	Keep OnCut = "keep"
)

// Mapping maps an elastic address to the address of a guest on its Docker network.
type Mapping struct {
	Elastic netip.Addr `json:"elastic"`
	Guest   netip.Addr `json:"guest"`
	// Subnet is the subnet of the guest's Docker network. Packets within it are not translated.
	Subnet netip.Prefix `json:"subnet"`
	// EgressOnly: the guest's outgoing connections use the elastic address, but no incoming ones.
	EgressOnly bool `json:"egress_only,omitempty"`
	// Staged: the guest does not run here yet. If it starts, its first packet already uses the elastic address.
	Staged bool `json:"staged,omitempty"`
	// Start identifies the guest's start. From one to the next its MAC may change, and the host must look for it again.
	Start uint64 `json:"start,omitempty"`
}

// Inbound reports whether new connections to the elastic address reach the guest.
func (m Mapping) Inbound() bool { return !m.Staged && !m.EgressOnly }

// Contains reports whether the address lies in the range.
func (r Range) Contains(a netip.Addr) bool {
	return a.BitLen() == r.From.BitLen() && r.From.Compare(a) <= 0 && a.Compare(r.To) <= 0
}

// Fenced reports whether the range answers only until the State's Until.
func (r Range) Fenced() bool { return r.OnCut != Keep }

// Timeout returns how long the kernel may let a fenced range answer from now on. Zero or less means not at all.
func (r Range) Timeout(now, until BootTime) time.Duration {
	left := until.Sub(now) - r.Sooner
	if r.TTL > 0 {
		left = min(left, r.TTL)
	}
	return left
}
