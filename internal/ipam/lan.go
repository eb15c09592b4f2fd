package ipam

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"time"
)

// LANVerb is what a host's edge is asked to do on a LAN.
type LANVerb string

// The verbs. DHCPv6's messages are those that RFC 8415 has for the same.
const (
	LANOffer   LANVerb = "offer"   // what would the server give: DISCOVER, and nothing is taken
	LANTake    LANVerb = "take"    // an address of the server's choice: DISCOVER, REQUEST (RFC 2131, 3.1)
	LANConfirm LANVerb = "confirm" // Address again, or for longer: REQUEST of an INIT-REBOOT (RFC 2131, 3.2)
	LANRelease LANVerb = "release" // Address is not needed any more; nobody answers that
	LANDecline LANVerb = "decline" // Address is somebody else's; nobody answers that
	LANProbe   LANVerb = "probe"   // who has Addresses: ARP (RFC 5227), neighbour discovery (RFC 4861)
	LANHear    LANVerb = "hear"    // who says within the time that he has addresses of Subnet, without being asked
)

// LANAsk is one question to a host's edge, which alone speaks on the LANs of its host.
type LANAsk struct {
	ID      uint64       `json:"id"` // of the question, for its answer; unique in a daemon's run
	Verb    LANVerb      `json:"verb"`
	Parent  string       `json:"parent"` // the host's interface to that LAN
	IPv6    bool         `json:"ipv6,omitempty"`
	Client  LANClient    `json:"client,omitzero"`
	Subnet  netip.Prefix `json:"subnet,omitzero"`  // an offer outside it is not taken; zero: any
	Address netip.Addr   `json:"address,omitzero"` // for all verbs but offer; of take: wished for, zero for none
	// of a probe, at most MaxProbe of them
	Addresses []netip.Addr `json:"addresses,omitempty"`
	Server    netip.Addr   `json:"server,omitzero"` // of the lease: release and decline name it; else zero
	// ServerID is the lease's, of DHCPv6: release and decline name it there, and confirm does, where it is known
	ServerID string   `json:"server_id,omitempty"`
	Within   Duration `json:"within"` // after that it is answered in any case
}

// LANClient is who a lease is for, as a DHCP server sees it.
type LANClient struct {
	// ID is the client identifier behind its type 0, such as berth:shop/web/1 (RFC 2132, 9.14); empty: none is sent,
	// and the server goes by the MAC
	ID       string `json:"id,omitempty"`
	Hostname string `json:"hostname,omitempty"` // empty: none is sent
	MAC      MAC    `json:"mac"`                // the hardware address in the packets (chaddr)
}

// LANAnswer is what came of a LANAsk.
type LANAnswer struct {
	ID      uint64     `json:"id"`
	Failure LANFailure `json:"failure,omitempty"` // empty: what was asked for is done
	Error   string     `json:"error,omitempty"`   // of a Failure, for people: interface, tries, what the server said
	Lease   LANLease   `json:"lease,omitzero"`    // of offer, take and confirm; of outside: what was offered
	// of a probe and of hear: who answered, or said so; of hear an address may be there several times
	Answered []LANNeighbour `json:"answered,omitempty"`
}

// MaxProbe is how many addresses one probe is of.
const MaxProbe = 256

// LANNeighbour is who says on a LAN that he has an address.
type LANNeighbour struct {
	Address netip.Addr `json:"address"`
	MAC     MAC        `json:"mac"`
}

// Unprobed is what of a network is to be probed: addresses that nobody ever had by the records.
type Unprobed struct {
	Network ID
	Name    string
	Parent  string // the hosts' interface to its LAN
	// Addresses are those that are given next of each of its subnets, in the order in which they are
	Addresses []netip.Addr
}

// LANLease is an address as a DHCP server gives it. Durations count from when the request was sent (RFC 2131, 4.4.1).
type LANLease struct {
	Address netip.Addr   `json:"address"`
	Subnet  netip.Prefix `json:"subnet,omitzero"`  // by the server's mask; DHCPv6 tells none
	Gateway netip.Addr   `json:"gateway,omitzero"` // the first router; DHCPv6 tells none
	Server  netip.Addr   `json:"server"`           // its identifier; of DHCPv6 the address that it answered from
	// ServerID is DHCPv6's DUID of the server in hexadecimal digits
	ServerID string   `json:"server_id,omitempty"`
	Lasts    Duration `json:"lasts"`
	T1       Duration `json:"t1"` // when it is to be renewed; the server's or half of Lasts
	T2       Duration `json:"t2"` // when any server is asked; the server's or 7/8 of Lasts
}

// LANFailure is why a question was not done.
type LANFailure string

// The failures.
const (
	LANSilent  LANFailure = "silent"  // nobody answered within the time
	LANRefused LANFailure = "refused" // the server said no: a NAK, or no address is left
	LANOutside LANFailure = "outside" // only addresses outside the subnet were offered
	LANParent  LANFailure = "parent"  // the interface is not there, is down, or cannot be spoken on
	LANNoEdge  LANFailure = "no_edge" // no edge is connected to the daemon, or it went meanwhile
)

// AskLAN has the edge of this host do something on a LAN, and waits for it, at most until ctx ends or a second longer
// than Within. An answer with a Failure is no error; an error is ctx's. Nothing may be held meanwhile that others wait
// for.
type AskLAN func(context.Context, LANAsk) (LANAnswer, error)

// The beginnings of client identifiers and of what stands in them for an owner that nobody knows: so that a server's
// list tells whose leases these are.
const (
	LANClientPrefix = "berth:"
	LANNameless     = "lease:" // and an id; no owner is called so
)

// Owner is whom the client identifier is of; empty where there is none.
func (c LANClient) Owner() string {
	owner, is := strings.CutPrefix(c.ID, LANClientPrefix)
	if !is {
		return ""
	}
	return owner
}

// String is how a client is called in sentences.
func (c LANClient) String() string {
	switch {
	case c.ID == "":
		return "the client with MAC " + c.MAC.String()
	case c.Owner() == "" || strings.HasPrefix(c.Owner(), LANNameless):
		return "the client " + c.ID
	}
	return c.Owner()
}

// SameClient tells whether a server takes both for one.
func (c LANClient) SameClient(other LANClient) bool {
	if c.ID != "" || other.ID != "" {
		return c.ID == other.ID
	}
	return c.MAC == other.MAC
}

// LANState is how it stands with a lease of a DHCP server.
type LANState uint8

// The states. Their numbers are stored.
const (
	LANBound       LANState = iota + 1 // the server gave it, or said so again
	LANUnconfirmed                     // it lasts by what the server said last, who does not answer now (RFC 2131, 3.2)
	LANLost                            // the server took it back, or its time was over, while somebody had it
	LANConflict                        // the server gave it to another client of ours, too
)

var lanStateNames = [...]string{LANBound: "bound", LANUnconfirmed: "unconfirmed", LANLost: "lost",
	LANConflict: "conflict"}

func (s LANState) String() string {
	if int(s) < len(lanStateNames) && lanStateNames[s] != "" {
		return lanStateNames[s]
	}
	return fmt.Sprintf("state %d", uint8(s))
}

// MarshalText makes a LANState its name in JSON.
func (s LANState) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads what MarshalText wrote.
func (s *LANState) UnmarshalText(b []byte) error {
	for i, name := range lanStateNames {
		if name != "" && name == string(b) {
			*s = LANState(i)
			return nil
		}
	}
	return fmt.Errorf("%w: no lease of a DHCP server is %q", ErrInvalid, b)
}

// DHCPLease is what the record of an address knows of the lease that a DHCP server gave of it (LN-15). It stays in the
// memory of who had it, so that he can have it again. Times are those of the wall clock: they outlast a restart.
type DHCPLease struct {
	State    LANState
	Why      string    // it is not bound, in the words of who found it; empty where it is
	Client   LANClient // as whom it was got
	Server   netip.Addr
	ServerID string // of DHCPv6
	Renews   time.Time
	Rebinds  time.Time
	Expires  time.Time
	Returned bool // its owner has ended: it is to be given back to the server, and then forgotten
}

// Asked is an address with what a DHCP server said of it.
type Asked struct {
	Address netip.Addr
	DHCP    *DHCPLease
}

// NewDHCPLease is what an answer makes of a lease. Its durations count from when it was asked for.
func NewDHCPLease(c LANClient, l LANLease, asked time.Time) *DHCPLease {
	at := func(d Duration) time.Time { return asked.Add(time.Duration(d)).UTC().Truncate(time.Microsecond) }
	return &DHCPLease{State: LANBound, Client: c, Server: l.Server, ServerID: l.ServerID, Renews: at(l.T1),
		Rebinds: at(l.T2), Expires: at(l.Lasts)}
}

// Lasts tells whether the address may be used by what the server has said.
func (d *DHCPLease) Lasts(now time.Time) bool {
	return d != nil && (d.State == LANBound || d.State == LANUnconfirmed) && !d.Returned && d.Expires.After(now)
}

// IsReturned tells whether the lease is on its way back to the server; so is none.
func (d *DHCPLease) IsReturned() bool { return d == nil || d.Returned }

// As is the lease in another state.
func (d *DHCPLease) As(s LANState, why string) *DHCPLease {
	after := *d
	after.State, after.Why = s, clip(why)
	return &after
}

// clip bounds what is kept of a text.
func clip(text string) string {
	if len(text) <= MaxText {
		return text
	}
	return text[:MaxText]
}

func (d *DHCPLease) append(b []byte) []byte {
	returned := byte(0)
	if d.Returned {
		returned = 1
	}
	b = append(b, byte(d.State), returned)
	b = appendString(b, d.Why)
	b = appendString(b, d.Client.ID)
	b = appendString(b, d.Client.Hostname)
	b = append(b, d.Client.MAC[:]...)
	b = appendSized(b, d.Server)
	b = appendString(b, d.ServerID)
	b = appendTime(b, d.Renews)
	b = appendTime(b, d.Rebinds)
	return appendTime(b, d.Expires)
}

func (d *Decoder) dhcpLease() *DHCPLease {
	l := &DHCPLease{State: LANState(d.Byte()), Returned: d.Byte() == 1, Why: d.String()}
	l.Client.ID, l.Client.Hostname = d.String(), d.String()
	d.Copy(l.Client.MAC[:])
	l.Server, l.ServerID = d.Addr(), d.String()
	l.Renews, l.Rebinds, l.Expires = d.Time(), d.Time(), d.Time()
	if l.State < LANBound || l.State > LANConflict {
		d.Failed = true
	}
	return l
}

// DHCPInfo is a lease of a DHCP server as it is shown.
type DHCPInfo struct {
	State    LANState   `json:"state"`
	Why      string     `json:"why,omitempty"`
	Server   netip.Addr `json:"server,omitzero"`
	ServerID string     `json:"server_id,omitempty"`
	ClientID string     `json:"client_id,omitempty"`
	Hostname string     `json:"hostname,omitempty"`
	MAC      MAC        `json:"mac"`
	Renews   time.Time  `json:"renews,omitzero"`
	Rebinds  time.Time  `json:"rebinds,omitzero"`
	Expires  time.Time  `json:"expires,omitzero"`
}

// Shown is how a lease shows it; nil where there is none.
func (d *DHCPLease) Shown() *DHCPInfo {
	if d == nil {
		return nil
	}
	return &DHCPInfo{State: d.State, Why: d.Why, Server: d.Server, ServerID: d.ServerID, ClientID: d.Client.ID,
		Hostname: d.Client.Hostname, MAC: d.Client.MAC, Renews: d.Renews, Rebinds: d.Rebinds, Expires: d.Expires}
}
