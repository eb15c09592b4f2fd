package ipam

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"time"

	"berth/internal/alloc"

	"go4.org/netipx"
)

// The spaces that exist in every store (LN-5).
const (
	LocalSpace  = "local"  // of one host
	GlobalSpace = "global" // of the cluster; swarm managers ask in it
)

// Space is a set of subnets that do not overlap; subnets of different spaces may (LN-5).
type Space struct {
	Name    string    `json:"name"`
	Created time.Time `json:"created"`
}

// Policy says how the addresses of a network go round.
type Policy struct {
	// sticky=off: a released address is not kept for its last holder
	Forget bool `json:"forget,omitempty"`
	// how long a released address is chosen for nobody but its last holder
	Quarantine time.Duration `json:"quarantine,omitempty"`
}

// PutBackMode says which containers are put back to their own addresses.
type PutBackMode string

// The modes.
const (
	putBackDefault  PutBackMode = ""         // of a network: that of its host's daemon; written "default"
	PutBackReserved PutBackMode = "reserved" // those that have an address reserved
	PutBackAll      PutBackMode = "all"      // these, and those that had another address before
	PutBackOff      PutBackMode = "off"
)

func (m PutBackMode) String() string {
	if m == putBackDefault {
		return "default"
	}
	return string(m)
}

// ParsePutBackMode reads reserved, all, off or default; nothing is the default, too.
func ParsePutBackMode(s string) (PutBackMode, error) {
	switch m := PutBackMode(s); m {
	case PutBackReserved, PutBackAll, PutBackOff, putBackDefault:
		return m, nil
	case "default":
		return putBackDefault, nil
	}
	return putBackDefault, Refuse(ErrInvalid,
		"%q does not say which containers of a network are put back: write reserved, all, off or default", s)
}

// Importer is a daemon of a cluster. Its imports end with its session.
type Importer struct {
	Host    string `json:"host"`
	Session ID     `json:"session"`
}

// Stage says why a network is not there as a whole.
type Stage string

// The stages. A network that is there has none.
const (
	Arriving Stage = "arriving" // an import writes it
	Leaving  Stage = "leaving"  // it was removed, and its records go in pages
	Moving   Stage = "moving"   // it is copied from another store, or to it
)

// Link is a network's L2 attachment on one host: how, and to what (GA-2). It is stated, shown and exported; Berth
// connects nothing.
type Link struct {
	Host string `json:"host"`
	Mode string `json:"mode"` // bridged, routed, macvlan, ipvlan, ovs
	Link string `json:"link"` // the bridge, the parent or the routing table
}

// Pool is a range of a subnet out of which automatic addresses come (libnetwork's subPool; LN-6). Several may have one
// name, in several subnets of a network.
type Pool struct {
	Name  string `json:"name,omitempty"`
	Range Range  `json:"range"`
}

// Exclusion is a range of which nothing is given automatically, and by request only where that is forced (GA-8, GA-9).
type Exclusion struct {
	Range Range  `json:"range"`
	Note  string `json:"note,omitempty"`
}

// MaxRanges is how many pools, and how many exclusions, a subnet keeps: all of them are in its one record, which each
// change of one of them writes anew.
const MaxRanges = 4096

func (x Exclusion) String() string {
	if x.Note == "" {
		return x.Range.String()
	}
	return fmt.Sprintf("%s (%s)", x.Range, x.Note)
}

// Subnet is a prefix with its gateway, pools and exclusions (libnetwork's pool; GA-4). It names the attachments that
// hold it, so that the last one to go is known from this record alone.
type Subnet struct {
	ID      ID           `json:"id"`
	Network ID           `json:"network"`
	Space   string       `json:"space"`
	Name    string       `json:"name,omitempty"` // unique in its network
	CIDR    netip.Prefix `json:"cidr"`
	Gateway netip.Addr   `json:"gateway,omitzero"`
	// what the gateway is, in a person's words; it goes with it
	GatewayNote string `json:"gateway_note,omitempty"`
	// the only attachment that has asked for it, with which it goes; zero: it stays
	GatewayBy ID     `json:"gateway_by,omitzero"`
	NoGateway bool   `json:"no_gateway,omitempty"` // none is chosen for it
	Note      string `json:"note,omitempty"`       // what it is for, in a person's words
	// a DHCP server serves it (GA-12); Berth serves none, and asks that one where the terms say so
	DHCP bool `json:"dhcp,omitempty"`
	LANTerms
	Pools      []Pool      `json:"pools"`
	Exclusions []Exclusion `json:"exclusions,omitempty"` // disjoint, the lowest first
	// bands for static use: nothing automatic comes out of them (BO-10); like Exclusions
	Static      []Range   `json:"static,omitempty"`
	Attachments []ID      `json:"attachments"` // the oldest first
	Created     time.Time `json:"created"`     // unique in a store: the order of a network's subnets
}

// Attachment is a Docker network's hold on a subnet: what RequestPool makes, what the engine knows as its pool id, and
// what ReleasePool ends. The same CIDR asked for again in a space is a second attachment to the same subnet.
type Attachment struct {
	ID      ID           `json:"id"`
	Space   string       `json:"space"`
	Subnet  ID           `json:"subnet"`
	CIDR    netip.Prefix `json:"cidr"`
	Pool    Range        `json:"pool,omitzero"`    // the subPool asked for; zero: all pools of the subnet
	Named   string       `json:"named,omitempty"`  // the pool asked for by name; it follows a renaming
	Gateway netip.Addr   `json:"gateway,omitzero"` // the one that the request for it named
	Host    string       `json:"host"`
	Created time.Time    `json:"created"`
	// the host's routes that overlapped the subnet when the attachment was made
	Beneath []HostRoute `json:"beneath,omitempty"`
	Ended   bool        `json:"ended,omitempty"` // ReleasePool was asked for; its leases are being released

	Swarm bool `json:"swarm,omitempty"` // held by a swarm manager
	// Chosen tells that the Docker network named no subnet, so that Berth chose this one. An engine before v29 takes no
	// address of a container's own there.
	Chosen bool `json:"chosen,omitempty"`
	// The names by which the network and pool were asked for then: a manager that restarts says them again, whatever
	// they are now.
	AskedNetwork string `json:"asked_network,omitempty"`
	AskedPool    string `json:"asked_pool,omitempty"`

	// Heir is the attachment that the manager's replay after its restart made in the place of this one. It ends with
	// its heir, if nothing is held through it or it is Bereft, which means that the heir took leases over (heir.go).
	Heir   ID   `json:"heir,omitzero"`
	Bereft bool `json:"bereft,omitempty"`
}

// Range is a range of addresses, written as alloc.FormatRange does. The zero Range is none.
type Range struct{ netipx.IPRange }

// IsZero tells whether r is no range at all.
func (r Range) IsZero() bool { return !r.IsValid() }

func (r Range) String() string {
	if r.IsZero() {
		return ""
	}
	return alloc.FormatRange(r.IPRange)
}

// MarshalText makes a Range a string in JSON.
func (r Range) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads what MarshalText wrote.
func (r *Range) UnmarshalText(b []byte) error {
	*r = Range{}
	if len(b) == 0 {
		return nil
	}
	parsed, err := alloc.ParseRange(string(b))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	r.IPRange = parsed
	return nil
}

// Without returns ids less id, in a slice of its own.
func Without(ids []ID, id ID) []ID {
	return slices.DeleteFunc(slices.Clone(ids), func(other ID) bool { return other == id })
}

var nameForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$`)

// CheckName refuses what cannot name a thing of the given noun: the grammar is that of Docker's own names, and a name
// must not read as a word of the command line or as an address.
func CheckName(noun, name string) error {
	_, idErr := ParseID(name)
	switch {
	case !nameForm.MatchString(name):
		return Refuse(ErrInvalid,
			"%q cannot name a %s: use 1 to 63 letters, digits, '_', '.' and '-', beginning with a letter or digit",
			name, noun)
	case name == "pool" || name == "none" || name == "all":
		return Refuse(ErrInvalid, "%q cannot name a %s: the word has a meaning of its own; choose another", name, noun)
	case meansRange(name):
		return Refuse(ErrInvalid, "%q cannot name a %s: it reads as an address or a range; choose another", name, noun)
	case idErr == nil:
		return Refuse(ErrInvalid, "%q cannot name a %s: it is an id; choose another", name, noun)
	}
	return nil
}

// meansRange tells whether a text was meant as an address or a range, right or wrong: a mistyped one must not pass for
// a name.
func meansRange(s string) bool {
	a, b, two := strings.Cut(s, "-")
	return meansAddress(a) && (!two || meansAddress(b))
}

func meansAddress(s string) bool {
	return strings.Contains(s, ":") || strings.Count(s, ".") == 3 && strings.Trim(s, "0123456789.") == ""
}

// RecordVersion leads every JSON record. A record of another one is refused instead of misread.
const RecordVersion = 1

// EncodeJSON is the form of the few records that are seldom written.
func EncodeJSON(v any) ([]byte, error) {
	body, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return append([]byte{RecordVersion}, body...), nil
}

// DecodeJSON reads what EncodeJSON wrote; what names the record for the error.
func DecodeJSON(what string, b []byte, v any) error {
	if len(b) == 0 || b[0] != RecordVersion {
		return fmt.Errorf("%w: the record of %s has a version that this Berth does not read", ErrDamaged, what)
	}
	if err := json.Unmarshal(b[1:], v); err != nil {
		return fmt.Errorf("%w: the record of %s: %w", ErrDamaged, what, err)
	}
	return nil
}

// LastRevision is never 0: of a network that nobody has edited it is the time at which it was made.
func (n *Network) LastRevision() uint64 {
	if n.Revision == 0 {
		return uint64(max(n.Created.UnixMicro(), 1))
	}
	return n.Revision
}

// DockerSubnet is a subnet of one of the engine's own bridges, whose addresses are not Berth's. The engine takes a
// bridge whose subnet a driver of addresses accepts once more for a stale one: docker0 is lost that way.
type DockerSubnet struct {
	CIDR    netip.Prefix
	Network string // Docker's name of it; empty: only its bridge was seen
	Link    string // the bridge in the host; empty: not known

	// Unsure tells that it may be a network of Berth's own: only its bridge was seen, or its driver of addresses is
	// neither the engine's nor known as this Berth.
	Unsure bool
}
