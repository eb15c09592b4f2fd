package ipam

import (
	"errors"
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
	Refused bool   // with DryRun: an edit that is refused leaves the others to be tried, and all refusals are told
	IfMatch uint64 // refuse (ErrChanged) unless this is the revision of the first edit's network; 0: any

	Deploy ID // whose edits these are, where its project is locked for it; zero: no deploy's

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

	// Refused are the edits that would be refused, where all were asked for; their results are empty.
	Refused []Refused `json:"refused,omitempty"`
}

// Refused is an edit of a dry run that would be refused, as data: an error on either side of the wire.
type Refused struct {
	Index  int      `json:"index"` // from 0
	Detail string   `json:"detail"`
	Reason Code     `json:"reason,omitempty"`
	Advice []Advice `json:"advice,omitempty"`
}

// RefusedOf is the refusal of an edit as data. False: the error is none, but a failure.
func RefusedOf(index int, err error) (Refused, bool) {
	for _, refusal := range []error{ErrInvalid, ErrNotFound, ErrInUse, ErrExhausted, ErrOverlap, ErrChanged, ErrHost} {
		if errors.Is(err, refusal) {
			return Refused{index, err.Error(), CodeOf(err), AdviceOf(err)}, true
		}
	}
	return Refused{}, false
}

func (r *Refused) Error() string { return r.Detail }

// Helps is what helps against it.
func (r *Refused) Helps() []Advice { return r.Advice }

// EditError says which of several edits was refused.
type EditError struct {
	Index int // from 0
	Err   error
}

func (e *EditError) Error() string { return e.Err.Error() }
func (e *EditError) Unwrap() error { return e.Err }

// MaxEdits is how many edits one call makes, so that its transaction stays bounded.
const MaxEdits = 256

// MaxTried is how many edits one dry run tries: nothing of it is written.
const MaxTried = 1024

// Fits refuses a number of edits that one call does not make.
func (o *EditOptions) Fits(edits int) error {
	most, verb := MaxEdits, "makes"
	if o.DryRun {
		most, verb = MaxTried, "tries"
	}
	if edits == 0 {
		return Refuse(ErrInvalid, "the list is empty; there is nothing to change")
	}
	if edits > most {
		return Refuse(ErrInvalid, "%d changes were asked for; one request %s 1 to %d", edits, verb, most)
	}
	if o.Refused && !o.DryRun {
		return Refuse(ErrInvalid, "all refusals are told in a dry run alone, and these changes are to be made")
	}
	return nil
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

	// Answered is who has the one address of Range on the LAN by a probe, which nobody ever had by the records: else it
	// is refused (ErrInUse). No client can say so.
	Answered MAC `json:"-"`
}

// RemoveExclusion takes a range out of the exclusions, which splits those that it lies in (GA-20).
type RemoveExclusion struct {
	Network string `json:"network"`
	Range   Range  `json:"range"`
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
