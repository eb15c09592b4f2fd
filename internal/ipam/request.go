package ipam

import (
	"fmt"
	"net/netip"
	"time"
)

// AddressRequest asks for one address through an attachment.
type AddressRequest struct {
	Pool      ID         // the attachment
	Preferred netip.Addr // zero: choose one
	MAC       MAC        // zero: none was sent
	Name      string     // the endpoint's name; empty: none was sent
	Gateway   bool       // it is to be the gateway
	Telling   bool       // the engine tells the MAC or the name of each endpoint: who says neither is none

	Seen bool // the engine shows that the endpoint has Preferred: a DHCP server chose it before

	Hint    Hint // from whom it is, where it says no name
	Guessed bool // the name was not sent: it is that of the hint
}

// TakeHint has a request without a name be from whom the hint names, and tells whether it names one.
func (req *AddressRequest) TakeHint() bool {
	if req.Name != "" || req.Hint.Name == "" {
		return false
	}
	req.Name, req.Guessed = req.Hint.Name, true
	return true
}

// EndOf is the event of a lease's end.
func EndOf(sub *Subnet, held *Lease) *Event {
	return &Event{Verb: LeaseReleased, Space: sub.Space, Subnet: sub.CIDR, Address: held.Address,
		Lease: held.ID, Attachment: held.Attachment, MAC: held.MAC, Name: held.Name}
}

// PoolRequest asks for an attachment to a subnet. Nil and zero fields were not given.
type PoolRequest struct {
	Space string
	CIDR  netip.Prefix // zero: choose one
	Range Range        // the subPool (LN-6); needs CIDR

	// For a subnet that is to be chosen:
	IPv6  bool
	Bits  int            // length of its prefix; 0: that of the base
	Avoid []netip.Prefix // what it must not overlap besides: the host's routes

	Routes []HostRoute // of the host, less default ones; those over the subnet are remembered

	// Docker are the subnets of the engine's own bridges, which no other overlaps.
	Docker []DockerSubnet

	// For a planned network: its name or id, and the name of the pool to take from. CIDR chooses one of its subnets.
	Network string
	Pool    string
	Asked   struct{ Network, Pool string } // as they were called when the request was first made

	LANTerms      // whence the addresses come of a subnet that is to be made
	AskedMAC bool // the engine sends the MAC of each endpoint

	Swarm      bool // a swarm manager asks: it sends no MAC, and asks for everything again after its restart
	Gateway    netip.Addr
	NoGateway  bool
	Forget     *bool
	Quarantine *time.Duration
	Tags       map[string]string
}

// PoolGrant is the answer to a PoolRequest.
type PoolGrant struct {
	ID      ID           // of the attachment
	CIDR    netip.Prefix // of the subnet
	Gateway netip.Prefix // with the subnet's length; zero unless the request named one
}

// Base is a prefix out of which subnets of one size are carved.
type Base struct {
	Prefix netip.Prefix
	Bits   int // length of the subnets' prefix
}

func (b Base) String() string { return fmt.Sprintf("%s in /%d", b.Prefix, b.Bits) }

// DefaultBases are the private prefixes of RFC 1918 in /24s. For IPv6 the default is a ULA /48 of the store's own in
// /64s (RFC 4193), drawn by Open.
func DefaultBases() []Base {
	return []Base{
		{netip.MustParsePrefix("172.16.0.0/12"), 24},
		{netip.MustParsePrefix("192.168.0.0/16"), 24},
		{netip.MustParsePrefix("10.0.0.0/8"), 24},
	}
}
