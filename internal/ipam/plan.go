package ipam

import (
	"fmt"
	"net/netip"
)

// Plan is networks the way a document describes them (`berth export`, `berth import`). Lines are those of the document, for
// errors; 0: unknown.
type Plan struct {
	Networks []PlannedNetwork `json:"networks"`
}

// PlannedNetwork is one network of a Plan with all that is planned in it. An import makes it, or, where a network of its
// name is there, adds to that one what it lacks.
type PlannedNetwork struct {
	Name         string               `json:"name"`
	Space        string               `json:"space,omitempty"` // default: local
	Tags         map[string]string    `json:"tags,omitempty"`
	MACPrefix    string               `json:"mac_prefix,omitempty"`
	Links        []Link               `json:"links,omitempty"`
	Sticky       *bool                `json:"sticky,omitempty"`
	Quarantine   *Duration            `json:"quarantine,omitempty"`
	Subnets      []PlannedSubnet      `json:"subnets,omitempty"`
	Reservations []PlannedReservation `json:"reservations,omitempty"`
	Addresses    []PlannedAddress     `json:"addresses,omitempty"` // taken for what is no container
	Line         int                  `json:"line,omitempty"`
}

// PlannedSubnet is one subnet of a Plan.
type PlannedSubnet struct {
	CIDR       netip.Prefix       `json:"cidr"`
	Name       string             `json:"name,omitempty"`
	Gateway    netip.Addr         `json:"gateway,omitzero"`
	DHCP       bool               `json:"dhcp,omitempty"`
	Pools      []PlannedPool      `json:"pools,omitempty"`
	Exclusions []PlannedExclusion `json:"exclusions,omitempty"`
	Line       int                `json:"line,omitempty"`
}

// PlannedPool is one range of a pool.
type PlannedPool struct {
	Range Range  `json:"range"`
	Name  string `json:"name,omitempty"`
	Line  int    `json:"line,omitempty"`
}

// PlannedExclusion is one excluded range.
type PlannedExclusion struct {
	Range Range  `json:"range"`
	Note  string `json:"note,omitempty"`
	Line  int    `json:"line,omitempty"`
}

// PlannedReservation is one address that belongs to an owner.
type PlannedReservation struct {
	Owner     string     `json:"owner"`
	Address   netip.Addr `json:"address"`
	Automatic bool       `json:"automatic,omitempty"` // Berth chose it
	Interface int        `json:"interface,omitempty"`
	Slot      int        `json:"slot,omitempty"`
	Line      int        `json:"line,omitempty"`
}

// PlannedAddress is one address that is in use by what is no container.
type PlannedAddress struct {
	Owner     string     `json:"owner"`
	Address   netip.Addr `json:"address"`
	Interface int        `json:"interface,omitempty"`
	Slot      int        `json:"slot,omitempty"`
	Line      int        `json:"line,omitempty"`
}

// PlanProblem is one thing that is wrong with a plan.
type PlanProblem struct {
	Line int    `json:"line,omitempty"`
	Text string `json:"text"`
}

// PlanError is all that is wrong with a plan; nothing of it was written. It is of the kind ErrInvalid.
type PlanError struct{ Problems []PlanProblem }

func (e *PlanError) Error() string {
	first := e.Problems[0]
	text := first.Text
	if first.Line > 0 {
		text = fmt.Sprintf("line %d: %s", first.Line, text)
	}
	if n := len(e.Problems) - 1; n > 0 {
		text += fmt.Sprintf(" (and %d more)", n)
	}
	return text
}

func (e *PlanError) Unwrap() error { return ErrInvalid }

// ImportReport counts what an import came to.
type ImportReport struct {
	DryRun    bool `json:"dry_run,omitempty"`
	Added     int  `json:"added"`     // networks, subnets, pools, exclusions, reservations and addresses
	Unchanged int  `json:"unchanged"` // what was there already, just so
}

// ImportState is an import that has begun and not ended: it is under way, or was cut off.
type ImportState struct {
	ID      ID     `json:"id"`
	Actor   string `json:"actor"`
	Done    int    `json:"done"`  // steps
	Total   int    `json:"total"` // steps
	Undoing bool   `json:"undoing,omitempty"`
	Running bool   `json:"running"`           // this daemon works on it at this moment
	Network string `json:"network,omitempty"` // the one that it stopped in
}
