package ipam

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"time"
)

// LANVerb is a task for a host's edge on a LAN.
type LANVerb string

// The verbs. For DHCPv6 they use the corresponding messages of RFC 8415.
const (
	LANOffer   LANVerb = "offer"   // what the server would give, without taking it: DISCOVER
	LANTake    LANVerb = "take"    // take an address of the server's choice: DISCOVER, REQUEST (RFC 2131, 3.1)
	LANConfirm LANVerb = "confirm" // take Address again, or extend it: REQUEST in INIT-REBOOT (RFC 2131, 3.2)
	LANRelease LANVerb = "release" // return Address; the server does not answer
	LANDecline LANVerb = "decline" // report that another machine uses Address; the server does not answer
	LANProbe   LANVerb = "probe"   // who has Addresses: ARP (RFC 5227), neighbour discovery (RFC 4861)
	LANHear    LANVerb = "hear"    // who announces addresses of Subnet, unasked, within the time
)

// LANAsk is one question to a host's edge. Only the edge sends packets on the LANs of its host.
type LANAsk struct {
	ID     uint64       `json:"id"` // the question's id for its answer; unique in a daemon's run
	Verb   LANVerb      `json:"verb"`
	Parent string       `json:"parent"` // the host's interface to that LAN
	IPv6   bool         `json:"ipv6,omitempty"`
	Client LANClient    `json:"client,omitzero"`
	Subnet netip.Prefix `json:"subnet,omitzero"` // offers outside it are not taken; zero: any
	// for all verbs except offer; for take: the preferred one, zero for none
	Address netip.Addr `json:"address,omitzero"`
	// for probe, at most MaxProbe
	Addresses []netip.Addr `json:"addresses,omitempty"`
	Server    netip.Addr   `json:"server,omitzero"` // the lease's, for release and decline; otherwise zero
	// ServerID is the lease's, for DHCPv6: release and decline need it, and confirm sends it if known
	ServerID string   `json:"server_id,omitempty"`
	Within   Duration `json:"within"` // the edge answers by then in any case
}

// LANClient is a lease's client, as a DHCP server sees it.
type LANClient struct {
	// ID is the client identifier after its type 0, such as berth:shop/web/1 (RFC 2132, 9.14). If it is empty, none
	// is sent and the server goes by the MAC.
	ID       string `json:"id,omitempty"`
	Hostname string `json:"hostname,omitempty"` // empty: none is sent
	MAC      MAC    `json:"mac"`                // the hardware address in the packets (chaddr)
}

// LANAnswer is the result of a LANAsk.
type LANAnswer struct {
	ID      uint64     `json:"id"`
	Failure LANFailure `json:"failure,omitempty"` // empty: the task is done
	// for a Failure: the interface, the tries and the server's words, for people
	Error string   `json:"error,omitempty"`
	Lease LANLease `json:"lease,omitzero"` // for offer, take and confirm; for the failures outside and wrong: the offer, if any
	// for probe and hear: the machines that answered or announced themselves. For hear, an address may occur
	// several times.
	Answered []LANNeighbour `json:"answered,omitempty"`
}

// MaxProbe is the maximum number of addresses in one probe.
const MaxProbe = 256

// LANNeighbour is a machine on a LAN that claims an address.
type LANNeighbour struct {
	Address netip.Addr `json:"address"`
	MAC     MAC        `json:"mac"`
}

// Unprobed lists a network's addresses to be probed: those without any record.
type Unprobed struct {
	Network ID
	Name    string
	Parent  string // the hosts' interface to its LAN
	// Addresses are the next ones to be given from each of its subnets, in that order
	Addresses []netip.Addr
}

// LANLease is an address as a DHCP server gives it. Durations count from the sending of the request (RFC 2131, 4.4.1).
type LANLease struct {
	Address netip.Addr   `json:"address"`
	Subnet  netip.Prefix `json:"subnet,omitzero"`  // from the server's mask; DHCPv6 has none
	Gateway netip.Addr   `json:"gateway,omitzero"` // the first router; DHCPv6 has none
	Server  netip.Addr   `json:"server"`           // its identifier; for DHCPv6 the address that it answered from
	// ServerID is the server's DUID in hexadecimal digits (DHCPv6)
	ServerID string   `json:"server_id,omitempty"`
	Lasts    Duration `json:"lasts"`
	T1       Duration `json:"t1"` // renewal time: the server's, or half of Lasts
	T2       Duration `json:"t2"` // rebinding time, when any server is asked: the server's, or 7/8 of Lasts
}

// LANFailure is the reason why a question failed.
type LANFailure string

// The failures.
const (
	LANSilent  LANFailure = "silent"  // nobody answered in time
	LANRefused LANFailure = "refused" // the server refused with a NAK, or has no address left
	LANOutside LANFailure = "outside" // the server offered only addresses outside the subnet
	LANWrong   LANFailure = "wrong"   // servers answered, and none of the answers can be used
	LANParent  LANFailure = "parent"  // the interface does not exist, is down, or cannot be used
	LANNoEdge  LANFailure = "no_edge" // no edge is connected to the daemon, or it disconnected meanwhile
)

// AskLAN sends a task to the edge of this host and waits for the answer. It waits until ctx ends, or a second longer
// than Within. A Failure in the answer is no error; an error comes from ctx. Callers must not hold a lock or
// transaction meanwhile.
type AskLAN func(context.Context, LANAsk) (LANAnswer, error)

// The prefixes of client identifiers, and of the substitute for an unknown owner. They let a reader of the server's
// list recognize Berth's leases.
const (
	LANClientPrefix = "berth:"
	LANNameless     = "lease:" // followed by an id; no owner has such a name
)

// Owner returns the owner in the client identifier, or the empty string.
func (c LANClient) Owner() string {
	owner, is := strings.CutPrefix(c.ID, LANClientPrefix)
	if !is {
		return ""
	}
	return owner
}

// String returns the client's name for messages.
func (c LANClient) String() string {
	switch {
	case c.ID == "":
		return "the client with MAC " + c.MAC.String()
	case c.Owner() == "" || strings.HasPrefix(c.Owner(), LANNameless):
		return "the client " + c.ID
	}
	return c.Owner()
}

// SameClient reports whether a DHCP server treats both as one client.
func (c LANClient) SameClient(other LANClient) bool {
	if c.ID != "" || other.ID != "" {
		return c.ID == other.ID
	}
	return c.MAC == other.MAC
}

// LANState is the state of a DHCP lease.
type LANState uint8

// The states. Their numbers are stored.
const (
	LANBound       LANState = iota + 1 // the server gave it, or confirmed it
	LANUnconfirmed                     // it has not expired, but the server does not answer now (RFC 2131, 3.2)
	LANLost                            // the server took it back, or it expired, while in use
	LANConflict                        // the server also gave it to another client of Berth
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
	return fmt.Errorf("%w: no DHCP lease has the state %q", ErrInvalid, b)
}

// DHCPLease is the DHCP lease in the record of an address. The memory of the last holder keeps it, so that the
// holder can get it again. Times are wall-clock times, because they must survive a restart.
type DHCPLease struct {
	State    LANState
	Why      string    // why it is not bound, in the finder's words; empty if it is
	Client   LANClient // the client that got it
	Server   netip.Addr
	ServerID string // DHCPv6 only
	Renews   time.Time
	Rebinds  time.Time
	Expires  time.Time
	Returned bool // its owner has ended: return it to the server, then forget it
}

// Asked is an address with its DHCP lease.
type Asked struct {
	Address netip.Addr
	DHCP    *DHCPLease
}

// NewDHCPLease makes a bound lease from an answer. asked is when the request was sent; durations count from there.
func NewDHCPLease(c LANClient, l LANLease, asked time.Time) *DHCPLease {
	at := func(d Duration) time.Time { return asked.Add(time.Duration(d)).UTC().Truncate(time.Microsecond) }
	return &DHCPLease{State: LANBound, Client: c, Server: l.Server, ServerID: l.ServerID, Renews: at(l.T1),
		Rebinds: at(l.T2), Expires: at(l.Lasts)}
}

// Lasts reports whether the server's last answer still allows use of the address.
func (d *DHCPLease) Lasts(now time.Time) bool {
	return d != nil && (d.State == LANBound || d.State == LANUnconfirmed) && !d.Returned && d.Expires.After(now)
}

// IsReturned reports whether the lease is being returned to the server. A nil lease counts as returned.
func (d *DHCPLease) IsReturned() bool { return d == nil || d.Returned }

// As returns the lease in another state.
func (d *DHCPLease) As(s LANState, why string) *DHCPLease {
	after := *d
	after.State, after.Why = s, clip(why)
	return &after
}

// clip cuts a text to MaxText bytes.
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

func (d *decoder) dhcpLease() *DHCPLease {
	l := &DHCPLease{State: LANState(d.Byte()), Returned: d.Byte() == 1, Why: d.String()}
	l.Client.ID, l.Client.Hostname = d.String(), d.String()
	d.Copy(l.Client.MAC[:])
	l.Server, l.ServerID = d.Addr(), d.String()
	l.Renews, l.Rebinds, l.Expires = d.time(), d.time(), d.time()
	if l.State < LANBound || l.State > LANConflict {
		d.Failed = true
	}
	return l
}

// DHCPInfo is a DHCP lease as shown to users.
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

// Shown returns the lease as shown to users, nil for none.
func (d *DHCPLease) Shown() *DHCPInfo {
	if d == nil {
		return nil
	}
	return &DHCPInfo{State: d.State, Why: d.Why, Server: d.Server, ServerID: d.ServerID, ClientID: d.Client.ID,
		Hostname: d.Client.Hostname, MAC: d.Client.MAC, Renews: d.Renews, Rebinds: d.Rebinds, Expires: d.Expires}
}
