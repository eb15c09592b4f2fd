package ipam

import (
	"fmt"
	"net/netip"
	"time"
)

// AddressRequest requests one address through an attachment.
type AddressRequest struct {
	Pool      ID         // the attachment
	Preferred netip.Addr // zero: Berth chooses
	MAC       MAC        // zero: none was sent
	Name      string     // the endpoint's name; empty: none was sent
	Gateway   bool       // the address becomes the gateway
	// the engine sends the MAC or the name of each endpoint, so a request without both is for no endpoint
	Telling bool

	Seen bool // the engine shows that the endpoint already has Preferred, from a DHCP server

	Hint    Hint // the witness's hint, for a request without a name
	Guessed bool // Name is from the hint
}

// TakeHint sets the name from the hint if the request has none. It reports whether it did.
func (req *AddressRequest) TakeHint() bool {
	if req.Name != "" || req.Hint.Name == "" {
		return false
	}
	req.Name, req.Guessed = req.Hint.Name, true
	return true
}

// PoolRequest requests an attachment to a subnet. Nil and zero fields were not given.
type PoolRequest struct {
	Space string
	CIDR  netip.Prefix // zero: Berth chooses
	Range Range        // the subPool; needs CIDR

	// For a subnet that Berth chooses:
	IPv6  bool
	Bits  int            // prefix length; 0: that of the base
	Avoid []netip.Prefix // further prefixes that it must not overlap: the host's routes

	Routes []HostRoute // of the host, without default routes; the attachment remembers those that overlap the subnet

	// Docker lists the subnets of the engine's own bridges. No other subnet may overlap them.
	Docker []DockerSubnet

	// For a planned network: its name or id, and the name of the pool to take from. CIDR selects one of its
	// subnets.
	Network string
	Pool    string
	Asked   struct{ Network, Pool string } // the names in the first request

	LANTerms      // the source of the addresses, for a new subnet
	AskedMAC bool // the engine sends the MAC of each endpoint

	Swarm      bool // a swarm manager asks: it sends no MAC, and repeats all requests after its restart
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
	Gateway netip.Prefix // with the subnet's prefix length; zero unless the request named a gateway
}

// Base is a prefix from which Berth takes subnets of one size.
type Base struct {
	Prefix netip.Prefix
	Bits   int // prefix length of the subnets
}

func (b Base) String() string { return fmt.Sprintf("%s in /%d", b.Prefix, b.Bits) }

// DefaultBases returns the private prefixes of RFC 1918, divided into /24s. For IPv6, Open draws a ULA /48 for the
// store, divided into /64s (RFC 4193).
func DefaultBases() []Base {
	return []Base{
		{netip.MustParsePrefix("172.16.0.0/12"), 24},
		{netip.MustParsePrefix("192.168.0.0/16"), 24},
		{netip.MustParsePrefix("10.0.0.0/8"), 24},
	}
}
