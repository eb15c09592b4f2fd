package edge

import (
	"net/netip"
	"time"
)

// State is the whole of what a host's edge is to have. What is not in it is taken away.
type State struct {
	Ranges   []Range   `json:"ranges"`
	Mappings []Mapping `json:"mappings"`
	// Until is when ranges that are withdrawn on a cut cease to answer. Zero: they do not answer at all.
	Until Moment `json:"until,omitzero"`
}

// Range holds elastic addresses of one family, From and To included.
type Range struct {
	From netip.Addr `json:"from"`
	To   netip.Addr `json:"to"`
	// Announce is the device on which the addresses are answered for. Empty: they are routed here by other means.
	Announce string `json:"announce,omitempty"`
	// OnCut says whether the range falls silent when Until passes.
	OnCut OnCut `json:"on_cut"`
	// TTL bounds how long the kernel goes on without being told again; zero leaves that to Until alone.
	TTL time.Duration `json:"ttl,omitempty"`
	// Sooner is how long before the state's Until the range falls silent, where ranges differ in that.
	Sooner time.Duration `json:"sooner,omitempty"`
}

// OnCut is what becomes of a range when its host is cut off from the others.
type OnCut string

const (
	// Withdraw: another host may take the addresses over, so this one falls silent.
	Withdraw OnCut = "withdraw"
	// Keep: nobody takes them over, so this one goes on.
	Keep OnCut = "keep"
)

// Mapping joins an elastic address with the address of a guest in its Docker network.
type Mapping struct {
	Elastic netip.Addr `json:"elastic"`
	Guest   netip.Addr `json:"guest"`
	// Subnet is that of the guest's Docker network. Packets that stay inside are left as they are.
	Subnet netip.Prefix `json:"subnet"`
	// EgressOnly: connections of the guest leave with the elastic address, and none come in by it.
	EgressOnly bool `json:"egress_only,omitempty"`
	// Staged: the guest does not run here. Were it to start, its first packet would leave with the elastic address.
	Staged bool `json:"staged,omitempty"`
}

// Inbound: new connections to the elastic address reach the guest.
func (m Mapping) Inbound() bool { return !m.Staged && !m.EgressOnly }

// Contains: the address lies in the range.
func (r Range) Contains(a netip.Addr) bool {
	return a.BitLen() == r.From.BitLen() && r.From.Compare(a) <= 0 && a.Compare(r.To) <= 0
}

// Fenced: the range answers only until the State's Until.
func (r Range) Fenced() bool { return r.OnCut != Keep }

// Timeout is how long the kernel may let a fenced range answer from now on; zero or less means not at all.
func (r Range) Timeout(now, until Moment) time.Duration {
	left := until.Sub(now) - r.Sooner
	if r.TTL > 0 {
		left = min(left, r.TTL)
	}
	return left
}
