package ipam

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"
)

// Edit is one change of the plan: to a network, subnet, pool, exclusion or reservation, or to an address held by a
// non-container. It gives its network by name or id, and a subnet by CIDR, name or id.
type Edit interface {
	// Op returns the operation's name, such as "pool.add", as NewEdit expects it.
	Op() string
}

// Result is what an edit made or changed. Fields that do not apply are zero.
type Result struct {
	Network   ID           `json:"network,omitzero"`
	Subnet    ID           `json:"subnet,omitzero"`
	CIDR      netip.Prefix `json:"cidr,omitzero"` // of the subnet
	Addresses []netip.Addr `json:"addresses,omitempty"`
	Warnings  []string     `json:"warnings,omitempty"` // one sentence each, for people
}

// EditOptions control how edits are made.
type EditOptions struct {
	DryRun  bool   // report the changes without making them
	Refused bool   // with DryRun: go on after a refusal, and report all refusals
	IfMatch uint64 // refuse with ErrChanged unless the first edit's network has this revision; 0: any

	Deploy ID // the deploy that sends the edits, if its project is locked for it; zero: none

	// Key makes edits idempotent. A repeat within KeyAge returns the first answer. Request is a digest of the
	// request and must be the same (else ErrKeyReused). Empty: no key.
	Key     string
	Request [32]byte
}

// KeyAge is how long the answer to a key is kept.
const KeyAge = 24 * time.Hour

// Outcome is the result of one call with edits.
type Outcome struct {
	Results  []Result `json:"results"` // one for each edit
	Changes  []Event  `json:"changes"` // in order; changes of a dry run have no id
	Revision uint64   `json:"revision"`
	Replayed bool     `json:"replayed,omitempty"` // this repeats the earlier answer to the same key

	// Refused lists the edits that would be refused, if EditOptions.Refused asked for them. Their results are
	// empty.
	Refused []Refused `json:"refused,omitempty"`
}

// Refused is a refused edit of a dry run, as data. It is an error on both sides of the wire.
type Refused struct {
	Index  int      `json:"index"` // from 0
	Detail string   `json:"detail"`
	Reason Code     `json:"reason,omitempty"`
	Advice []Advice `json:"advice,omitempty"`
}

// RefusedOf returns the refusal of an edit as data. It returns false if err is a failure and not a refusal.
func RefusedOf(index int, err error) (Refused, bool) {
	for _, refusal := range []error{ErrInvalid, ErrNotFound, ErrInUse, ErrExhausted, ErrOverlap, ErrChanged, ErrHost} {
		if errors.Is(err, refusal) {
			return Refused{index, err.Error(), CodeOf(err), AdviceOf(err)}, true
		}
	}
	return Refused{}, false
}

func (r *Refused) Error() string { return r.Detail }

// Helps returns the advice against the refusal.
func (r *Refused) Helps() []Advice { return r.Advice }

// EditError identifies which of several edits was refused.
type EditError struct {
	Index int // from 0
	Err   error
}

func (e *EditError) Error() string { return e.Err.Error() }
func (e *EditError) Unwrap() error { return e.Err }

// MaxEdits is the number of edits that one call may make. It bounds the transaction.
const MaxEdits = 256

// MaxTried is the number of edits that one dry run may try. It is higher because nothing is written.
const MaxTried = 1024

// Fits refuses an empty list, a list that is too long for one call, and Refused without DryRun.
func (o *EditOptions) Fits(edits int) error {
	most, verb := MaxEdits, "makes"
	if o.DryRun {
		most, verb = MaxTried, "tries"
	}
	if edits == 0 {
		return Refuse(ErrInvalid, "the list is empty; there is nothing to change")
	}
	if edits > most {
		return Refuse(ErrInvalid, "%d changes are too many; one request %s at most %d", edits, verb, most)
	}
	if o.Refused && !o.DryRun {
		return Refuse(ErrInvalid, "only a dry run reports all refusals, and this request is not a dry run")
	}
	return nil
}

// RemoveNetwork removes a network if nothing in it is in use. Force also removes its reservations.
type RemoveNetwork struct {
	Network string `json:"network"`
	Force   bool   `json:"force,omitempty"`
}

// AddSubnet adds a subnet.
type AddSubnet struct {
	Network string `json:"network"`
	SubnetSpec
}

// RemoveSubnet removes a subnet if nothing in it is in use.
type RemoveSubnet struct {
	Network string `json:"network"`
	Subnet  string `json:"subnet"`
}

// AddPool adds a pool. The zero Range means the whole of Subnet.
type AddPool struct {
	Network string `json:"network"`
	Range   Range  `json:"range,omitzero"`
	Subnet  string `json:"subnet,omitempty"`
	Name    string `json:"name,omitempty"`
}

// ModifyPool renames a pool: all ranges with a name, or the one with exactly this range. An empty Name removes
// the name.
type ModifyPool struct {
	Network string `json:"network"`
	Pool    string `json:"pool"` // a name or a range
	Name    string `json:"name"`
}

// RemovePool removes a range from the pools, or all ranges with a name. It splits pools that extend beyond the
// range. Addresses in use stay in use.
type RemovePool struct {
	Network string `json:"network"`
	Pool    string `json:"pool"` // a name or a range
}

// AddExclusion excludes a range. Addresses in use stay with their holders.
type AddExclusion struct {
	Network string `json:"network"`
	Range   Range  `json:"range"`
	Note    string `json:"note,omitempty"`

	// Answered is the MAC that answered a probe for the single address in Range. The edit is refused with ErrInUse
	// if the address has a record. Clients cannot set it.
	Answered MAC `json:"-"`
}

// RemoveExclusion removes a range from the exclusions. It splits exclusions that extend beyond the range.
type RemoveExclusion struct {
	Network string `json:"network"`
	Range   Range  `json:"range"`
}

// Duration is a time.Duration written as "10m" or "24h".
type Duration time.Duration

// String omits zero parts: 5m, not 5m0s.
func (d Duration) String() string {
	text := time.Duration(d).String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// MarshalText makes a Duration a string in JSON.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads what time.ParseDuration reads. Its errors wrap ErrInvalid.
func (d *Duration) UnmarshalText(b []byte) error {
	parsed, err := time.ParseDuration(string(b))
	if err != nil || parsed < 0 {
		return fmt.Errorf("%w: %q is not a duration such as 90s, 10m or 24h", ErrInvalid, b)
	}
	*d = Duration(parsed)
	return nil
}
