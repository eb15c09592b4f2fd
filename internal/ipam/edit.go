package ipam

import (
	"fmt"
	"net/netip"
	"time"
)

// Edit is one change of the plan: a network, subnet, pool, exclusion, reservation, or an address taken for what is no
// container. It names its network by name or id, and a subnet by CIDR, name or id.
type Edit interface {
	// Op names the operation, such as "pool.add", as NewEdit reads it.
	Op() string
}

// Result tells what an edit made or changed. Fields that do not apply are zero.
type Result struct {
	Network   ID           `json:"network,omitzero"`
	Subnet    ID           `json:"subnet,omitzero"`
	CIDR      netip.Prefix `json:"cidr,omitzero"` // of the subnet
	Addresses []netip.Addr `json:"addresses,omitempty"`
	Warnings  []string     `json:"warnings,omitempty"` // what a person should know of what was done, a sentence each
}

// EditOptions say how edits are made.
type EditOptions struct {
	DryRun  bool   // tell what would change, and change nothing
	IfMatch uint64 // refuse (ErrChanged) unless this is the revision of the first edit's network; 0: any

	// Key makes edits happen once: given again within KeyAge it gets the first answer, provided that Request, a digest
	// of what was asked, is the same (else ErrKeyReused). Empty: none.
	Key     string
	Request [32]byte
}

// KeyAge is how long the answer to a key is kept.
const KeyAge = 24 * time.Hour

// Outcome is what edits came to.
type Outcome struct {
	Results  []Result `json:"results"` // one for each edit
	Changes  []Event  `json:"changes"` // in order; those of a dry run have no id
	Revision uint64   `json:"revision"`
	Replayed bool     `json:"replayed,omitempty"` // the answer is that of the same key before
}

// EditError says which of several edits was refused.
type EditError struct {
	Index int // from 0
	Err   error
}

func (e *EditError) Error() string { return e.Err.Error() }
func (e *EditError) Unwrap() error { return e.Err }

// MaxEdits is how many edits one call makes, so that its transaction stays bounded.
const MaxEdits = 256

// CreateNetwork makes a network with its subnets (GA-1, GA-2).
type CreateNetwork struct {
	Name       string            `json:"name"`
	Space      string            `json:"space,omitempty"` // default: local
	Tags       map[string]string `json:"tags,omitempty"`
	MACPrefix  string            `json:"mac_prefix,omitempty"`
	Links      []Link            `json:"links,omitempty"`
	Sticky     *bool             `json:"sticky,omitempty"`
	Quarantine *Duration         `json:"quarantine,omitempty"`
	// addresses that each host keeps claimed for each of its attachments
	Headroom   int          `json:"headroom,omitempty"`
	Type       string       `json:"type,omitempty"` // manual (default), dynamic or vip (BO-8)
	Static     []Range      `json:"static,omitempty"`
	OwnerRules []OwnerRule  `json:"owner_rules,omitempty"`
	Subnets    []SubnetSpec `json:"subnets,omitempty"`
}

// SubnetSpec describes a subnet that is to be made: by its CIDR, or as the lowest free prefix of Bits inside From.
type SubnetSpec struct {
	CIDR    netip.Prefix `json:"cidr,omitzero"`
	Bits    int          `json:"bits,omitempty"`
	From    netip.Prefix `json:"from,omitzero"`
	Name    string       `json:"name,omitempty"`
	Gateway netip.Addr   `json:"gateway,omitzero"` // zero: none (GA-5)
	DHCP    bool         `json:"dhcp,omitempty"`
	Pool    bool         `json:"pool,omitempty"` // a pool of the whole subnet (GA-15, GA-18)
}

// ModifyNetwork changes what is not nil.
type ModifyNetwork struct {
	Network    string             `json:"network"`
	Name       *string            `json:"name,omitempty"`
	Tags       map[string]*string `json:"tags,omitempty"` // nil removes a tag; tags that are not named stay
	MACPrefix  *string            `json:"mac_prefix,omitempty"`
	Links      []Link             `json:"links,omitempty"` // replaces that of the same host; an empty Mode removes it
	Sticky     *bool              `json:"sticky,omitempty"`
	Quarantine *Duration          `json:"quarantine,omitempty"`
	Headroom   *int               `json:"headroom,omitempty"`
	// the bands for static use; replaces those there are (BO-10)
	Static *[]Range `json:"static,omitempty"`
	// replaces that of the same pattern; one without owner and pool removes it
	OwnerRules []OwnerRule `json:"owner_rules,omitempty"`
}

// RemoveNetwork removes a network of which nothing is in use. Force removes it with its reservations.
type RemoveNetwork struct {
	Network string `json:"network"`
	Force   bool   `json:"force,omitempty"`
}

// AddSubnet adds a subnet (GA-11).
type AddSubnet struct {
	Network string `json:"network"`
	SubnetSpec
}

// ModifySubnet changes what is not nil (GA-11 to GA-14).
type ModifySubnet struct {
	Network string        `json:"network"`
	Subnet  string        `json:"subnet"`
	Name    *string       `json:"name,omitempty"` // "": none
	CIDR    *netip.Prefix `json:"cidr,omitempty"`
	Gateway *netip.Addr   `json:"gateway,omitempty"` // the zero Addr: none
	DHCP    *bool         `json:"dhcp,omitempty"`
}

// RemoveSubnet removes a subnet of which nothing is in use (GA-11).
type RemoveSubnet struct {
	Network string `json:"network"`
	Subnet  string `json:"subnet"`
}

// AddPool adds a pool: a range, or with the zero Range the whole of Subnet (GA-17, GA-18).
type AddPool struct {
	Network string `json:"network"`
	Range   Range  `json:"range,omitzero"`
	Subnet  string `json:"subnet,omitempty"`
	Name    string `json:"name,omitempty"`
}

// ModifyPool renames a pool: all ranges of a name, or the one of exactly a range (GA-21). The empty Name takes the name
// away.
type ModifyPool struct {
	Network string `json:"network"`
	Pool    string `json:"pool"` // a name or a range
	Name    string `json:"name"`
}

// RemovePool takes a range out of the pools, which splits those that it lies in, or all ranges of a name (GA-19). What
// is in use stays in use.
type RemovePool struct {
	Network string `json:"network"`
	Pool    string `json:"pool"` // a name or a range
}

// AddExclusion excludes a range; what is in use stays with its holder (GA-10, GA-20).
type AddExclusion struct {
	Network string `json:"network"`
	Range   Range  `json:"range"`
	Note    string `json:"note,omitempty"`
}

// RemoveExclusion takes a range out of the exclusions, which splits those that it lies in (GA-20).
type RemoveExclusion struct {
	Network string `json:"network"`
	Range   Range  `json:"range"`
}

// AddReservation reserves addresses for an owner: given ones (static), or such as Berth chooses (automatic). What the
// owner has reserved already stays, if the wish can mean it (BO-5). Force goes over exclusions, and reserves what
// somebody holds, for after its release.
type AddReservation struct {
	Network string `json:"network"`
	Owner   string `json:"owner"`
	Number  int    `json:"interface,omitempty"` // of the owner's interface
	Wishes  []Wish `json:"wishes,omitempty"`    // none: one address out of any pool
	Force   bool   `json:"force,omitempty"`

	// Automatic makes given addresses automatic ones, which those of a static band cannot be.
	Automatic bool `json:"automatic,omitempty"`
	// Replace keeps an address that is not wished for any more until its owner runs with the new one (BO-13).
	Replace bool `json:"replace,omitempty"`
	// Only lists, with Replace, the networks besides this one on which the owner is to have anything, by name or id:
	// what it has on others is kept until it runs with what it is to have (BO-13). Nil: what it has on others stays as
	// it is.
	Only []string `json:"only,omitempty"`
	// For is how long the owner lives; then what is reserved for it is nobody's (BO-11). Zero: without an end.
	For Duration `json:"for,omitempty"`
}

// BindReservations makes what is reserved for owners what is wanted, as a deploy does: what is there and fits is bound
// first (BO-9), then static addresses are reserved, then automatic ones (BO-10). What an owner has elsewhere, or has
// otherwise, is kept until it runs with the new one (BO-13).
type BindReservations struct {
	Wanted []AddReservation `json:"wanted"` // at most MaxEdits, one for each owner and network (BO-6)
}

// ReleaseOwner ends all that is reserved for an owner, on all networks and where there is none any more (BO-3, BO-12),
// and what it has in hand by TakeAddress. What an endpoint has in use stays in use.
type ReleaseOwner struct {
	Owner string `json:"owner"`
	Under bool   `json:"under,omitempty"` // and of all owners whose path begins with it: shop, shop/web
	// only what was replaced, where the owner has its new address in use (BO-13)
	Replaced bool `json:"replaced,omitempty"`
}

// RemoveReservation ends the reservation of one address of an owner, or with the zero Address of all. What is in use
// stays in use.
type RemoveReservation struct {
	Network string     `json:"network"`
	Owner   string     `json:"owner"`
	Address netip.Addr `json:"address,omitzero"`
}

// TakeAddress takes addresses for an interface of what is no container: a router, a VM, a printer (GA-24).
type TakeAddress struct {
	Network   string    `json:"network"`
	Subnet    string    `json:"subnet,omitempty"` // only out of this one
	Owner     string    `json:"owner"`
	Interface Interface `json:"interface"`
	Force     bool      `json:"force,omitempty"` // over exclusions (GA-9)
}

// ReleaseAddress gives back one address that was taken for an owner by TakeAddress, or with the zero Address all.
type ReleaseAddress struct {
	Network string     `json:"network"`
	Owner   string     `json:"owner"`
	Address netip.Addr `json:"address,omitzero"`
}

// Duration is a time.Duration written as in "10m" or "24h".
type Duration time.Duration

// MarshalText makes a Duration a string in JSON.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText reads what MarshalText wrote.
func (d *Duration) UnmarshalText(b []byte) error {
	parsed, err := time.ParseDuration(string(b))
	if err != nil || parsed < 0 {
		return fmt.Errorf("%w: %q is not a duration such as 90s, 10m or 24h", ErrInvalid, b)
	}
	*d = Duration(parsed)
	return nil
}
