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

// The spaces that exist in every store.
const (
	LocalSpace  = "local"  // of one host
	GlobalSpace = "global" // of the cluster; swarm managers use it
)

// Space is a set of subnets that do not overlap. Subnets of different spaces may.
type Space struct {
	Name    string    `json:"name"`
	Created time.Time `json:"created"`
}

// Policy is how a network reuses released addresses.
type Policy struct {
	// sticky=off: do not keep a released address for its last holder
	Forget bool `json:"forget,omitempty"`
	// how long after its release an address is chosen only for its last holder
	Quarantine time.Duration `json:"quarantine,omitempty"`
}

// PutBackMode is which containers are put back to their own addresses.
type PutBackMode string

// The modes.
const (
	putBackDefault  PutBackMode = ""         // in a network: use the mode of the host's daemon; written "default"
	PutBackReserved PutBackMode = "reserved" // containers with a reserved address
	PutBackAll      PutBackMode = "all"      // also containers that had another address before
	PutBackOff      PutBackMode = "off"
)

func (m PutBackMode) String() string {
	if m == putBackDefault {
		return "default"
	}
	return string(m)
}

// ParsePutBackMode reads reserved, all, off or default. Empty means default.
func ParsePutBackMode(s string) (PutBackMode, error) {
	switch m := PutBackMode(s); m {
	case PutBackReserved, PutBackAll, PutBackOff, putBackDefault:
		return m, nil
	case "default":
		return putBackDefault, nil
	}
	return putBackDefault, Refuse(ErrInvalid, "%q is not a put-back mode: write reserved, all, off or default", s)
}

// Importer is a daemon of a cluster. Its imports end with its session.
type Importer struct {
	Host    string `json:"host"`
	Session ID     `json:"session"`
}

// Stage is why a network is incomplete.
type Stage string

// The stages. A complete network has none.
const (
	Arriving Stage = "arriving" // an import is writing it
	Leaving  Stage = "leaving"  // it was removed, and its records are being deleted in batches
	Moving   Stage = "moving"   // it is being copied to or from another store
)

// Being returns what a refusal says of such a network: it is being imported, removed or copied.
func (s Stage) Being() string {
	switch s {
	case Arriving:
		return "imported"
	case Leaving:
		return "removed"
	case Moving:
		return "copied between stores"
	}
	return string(s)
}

// Link is a network's L2 attachment on one host. It is only stated, shown and exported: Berth connects nothing.
type Link struct {
	Host string `json:"host"`
	Mode string `json:"mode"` // bridged, routed, macvlan, ipvlan, ovs
	Link string `json:"link"` // the bridge, the parent or the routing table
}

// Pool is a range of a subnet from which Berth chooses automatic addresses (libnetwork's subPool). Several pools
// may share a name, even across the subnets of a network.
type Pool struct {
	Name  string `json:"name,omitempty"`
	Range Range  `json:"range"`
}

// Exclusion is a range from which Berth never chooses. It gives an address of it only on a forced request.
type Exclusion struct {
	Range Range  `json:"range"`
	Note  string `json:"note,omitempty"`
}

// MaxRanges is how many pools, and how many exclusions, a subnet keeps. They are all in its one record, which each
// change rewrites.
const MaxRanges = 4096

func (x Exclusion) String() string {
	if x.Note == "" {
		return x.Range.String()
	}
	return fmt.Sprintf("%s (%s)", x.Range, x.Note)
}

// Attachment is a Docker network's hold on a subnet. RequestPool makes it, the engine knows it as a pool id, and
// ReleasePool ends it. A second request for the same CIDR in a space makes a second attachment to the same subnet.
type Attachment struct {
	ID      ID           `json:"id"`
	Space   string       `json:"space"`
	Subnet  ID           `json:"subnet"`
	CIDR    netip.Prefix `json:"cidr"`
	Pool    Range        `json:"pool,omitzero"`    // the requested subPool; zero: all pools of the subnet
	Named   string       `json:"named,omitempty"`  // the pool requested by name; it follows a renaming
	Gateway netip.Addr   `json:"gateway,omitzero"` // the gateway that the request named
	Host    string       `json:"host"`
	Created time.Time    `json:"created"`
	// the host's routes that overlapped the subnet when the attachment was made
	Beneath []HostRoute `json:"beneath,omitempty"`
	Ended   bool        `json:"ended,omitempty"` // ReleasePool was called; its leases are being released

	Swarm bool `json:"swarm,omitempty"` // held by a swarm manager
	// Chosen means that the Docker network named no subnet, so Berth chose one. An engine before 29.0.4 then refuses
	// `--ip`.
	Chosen bool `json:"chosen,omitempty"`
	// The names of the network and pool in the request. A restarted manager repeats them, even if they have changed
	// since.
	AskedNetwork string `json:"asked_network,omitempty"`
	AskedPool    string `json:"asked_pool,omitempty"`

	Succession
}

// Succession says which attachment a restarted swarm manager's replay made instead of an older one. The older one ends
// with its successor if it has no leases, or if the successor took over leases from it. The zero Succession means none.
type Succession struct {
	Successor ID   `json:"heir,omitzero"`
	TookOver  bool `json:"bereft,omitempty"`
}

// Range is a range of addresses, written as alloc.FormatRange does. The zero Range is none.
type Range struct{ netipx.IPRange }

// IsZero reports whether r is the zero Range.
func (r Range) IsZero() bool { return !r.IsValid() }

func (r Range) String() string {
	if r.IsZero() {
		return ""
	}
	return alloc.FormatRange(r.IPRange)
}

// MarshalText writes a Range as String does.
func (r Range) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads what MarshalText wrote. Its errors wrap ErrInvalid.
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

// Without returns a copy of ids without id.
func Without(ids []ID, id ID) []ID {
	return slices.DeleteFunc(slices.Clone(ids), func(other ID) bool { return other == id })
}

var (
	nameForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$`)

	// mistyped matches what may be meant as an address or a range: digits and a dot first, or nothing but digits and
	// '.', '-', '_'. Letters that look like 0 or 1 count as digits after the first one.
	mistyped = regexp.MustCompile(`^[0-9][0-9OolI]*(\.|[0-9OolI._-]*$)`)
)

// CheckNewName refuses an invalid name for a network, subnet, pool or space, which are named in Berth. A value that can
// be a name or a range must not become a name if the range in it is mistyped.
func CheckNewName(noun, name string) error {
	if err := CheckName(noun, name); err != nil {
		return err
	}
	if mistyped.MatchString(name) {
		return refuseRange(noun, name)
	}
	return nil
}

// CheckName refuses an invalid name for an object of the given noun. The grammar is that of Docker's names. A name must
// not read as a keyword of the command line, an address or an id. For what is named in Berth see CheckNewName: Docker's
// names, and with them owners, can be numbers.
func CheckName(noun, name string) error {
	_, idErr := ParseID(name)
	switch {
	case !nameForm.MatchString(name):
		return Refuse(ErrInvalid,
			"%q cannot name a %s: use 1 to 63 letters, digits, '_', '.' and '-', beginning with a letter or digit",
			name, noun)
	case name == "pool" || name == "none" || name == "all":
		return Refuse(ErrInvalid, "%q cannot name a %s: the word has a special meaning; choose another", name, noun)
	case meansRange(name):
		return refuseRange(noun, name)
	case idErr == nil:
		return Refuse(ErrInvalid, "%q cannot name a %s: it is an id; choose another", name, noun)
	}
	return nil
}

func refuseRange(noun, name string) error {
	return Refuse(ErrInvalid, "%q cannot name a %s: it looks like an address or a range; begin a name with a letter, "+
		"and write a range like %s", name, noun, alloc.RangeForms)
}

// NoPoolNamed refuses a reference to a pool that does not exist. It explains a mistyped range.
func NoPoolNamed(where, name string) *Refusal {
	if mistyped.MatchString(name) {
		return Refuse(ErrNotFound, "%s has no pool named %s; if you mean a range, write it like %s", where, name,
			alloc.RangeForms)
	}
	return Refuse(ErrNotFound, "%s has no pool named %s", where, name)
}

// meansRange reports whether a text was meant as an address or a range, valid or not. A mistyped one must not count as
// a name.
func meansRange(s string) bool {
	a, b, two := strings.Cut(s, "-")
	return meansAddress(a) && (!two || meansAddress(b))
}

func meansAddress(s string) bool {
	return strings.Contains(s, ":") || strings.Count(s, ".") == 3 && strings.Trim(s, "0123456789.") == ""
}

// RecordVersion is the first byte of every JSON record. Other versions are refused, so that they are not misread.
const RecordVersion = 1

// EncodeJSON encodes records that are few and seldom written.
func EncodeJSON(v any) ([]byte, error) {
	body, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return append([]byte{RecordVersion}, body...), nil
}

// DecodeJSON reads what EncodeJSON wrote. Its errors wrap ErrDamaged and name the record as what says.
func DecodeJSON(what string, b []byte, v any) error {
	if len(b) == 0 || b[0] != RecordVersion {
		return fmt.Errorf("%w: the record of %s has a version that this Berth cannot read", ErrDamaged, what)
	}
	if err := json.Unmarshal(b[1:], v); err != nil {
		return fmt.Errorf("%w: the record of %s: %w", ErrDamaged, what, err)
	}
	return nil
}

// LastRevision returns the network's revision, or its creation time if nobody has edited it. It is never 0.
func (n *Network) LastRevision() uint64 {
	if n.Revision == 0 {
		return uint64(max(n.Created.UnixMicro(), 1))
	}
	return n.Revision
}

// DockerSubnet is a subnet of one of the engine's own bridges, whose addresses are not Berth's. Berth must not grant
// it: the engine would then treat that bridge as stale, and docker0 would be lost.
type DockerSubnet struct {
	CIDR    netip.Prefix
	Network string // Docker's name of the network; empty: only its bridge was seen
	Link    string // the bridge on the host; empty: unknown

	// Unsure means that it may be one of Berth's networks. Only its bridge was seen, or its IPAM driver is neither
	// the engine's nor known as this Berth.
	Unsure bool
}
