package ipam

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// Plan is networks in the form of a document (`berth plan export`, `berth plan import`). Each Line is a line of the
// document, for errors; 0 means unknown.
type Plan struct {
	Networks []PlannedNetwork `json:"networks"`

	Elastic *PlannedElastic `json:"elastic,omitempty"` // elastic addresses, made after the networks
}

// Cleared are the keys that a document writes with their default, such as headroom: 0. They take a setting back. A key
// that the document leaves out changes nothing.
type Cleared []string

// Has reports whether the document clears a key.
func (c Cleared) Has(key string) bool { return slices.Contains(c, key) }

// PlannedPool is one range of a pool.
type PlannedPool struct {
	Range   Range   `json:"range"`
	Name    string  `json:"name,omitempty"`
	Line    int     `json:"line,omitempty"`
	Cleared Cleared `json:"cleared,omitempty" plan:"-"`
}

// PlannedExclusion is one excluded range.
type PlannedExclusion struct {
	Range   Range   `json:"range"`
	Note    string  `json:"note,omitempty"`
	Line    int     `json:"line,omitempty"`
	Cleared Cleared `json:"cleared,omitempty" plan:"-"`
}

// PlannedBand is one range for static use.
type PlannedBand struct {
	Range Range `json:"range"`
	Line  int   `json:"line,omitempty"`
}

// PlanProblem is one error in a plan.
type PlanProblem struct {
	Line   int      `json:"line,omitempty"`
	Text   string   `json:"text"`
	Advice []Advice `json:"advice,omitempty"`
}

func (p PlanProblem) String() string {
	if p.Line > 0 {
		return fmt.Sprintf("line %d: %s", p.Line, p.Text)
	}
	return p.Text
}

// MaxProblems is how many problems of a plan are listed. Further ones are only counted.
const MaxProblems = 100

// PlanError lists all errors in a plan, of which nothing was written. It wraps ErrInvalid. The zero PlanError has no
// errors.
type PlanError struct {
	Problems []PlanProblem `json:"problems"`
	More     int           `json:"more,omitempty"` // number of further problems
}

// Add adds a problem at a line; 0 means unknown.
func (e *PlanError) Add(line int, format string, args ...any) {
	if len(e.Problems) >= MaxProblems {
		e.More++
		return
	}
	e.Problems = append(e.Problems, PlanProblem{Line: line, Text: fmt.Sprintf(format, args...)})
}

// AddHelp is Add for a problem with advice.
func (e *PlanError) AddHelp(advice []Advice, line int, format string, args ...any) {
	before := len(e.Problems)
	e.Add(line, format, args...)
	if len(e.Problems) > before {
		e.Problems[before].Advice = advice
	}
}

// Err returns e with its problems sorted by line, or nil if there are none.
func (e *PlanError) Err() error {
	if len(e.Problems) == 0 {
		return nil
	}
	slices.SortStableFunc(e.Problems, func(a, b PlanProblem) int { return cmp.Compare(a.Line, b.Line) })
	return e
}

func (e *PlanError) Error() string {
	text := e.Problems[0].String()
	if n := len(e.Problems) - 1 + e.More; n > 0 {
		text += fmt.Sprintf(" (and %d more)", n)
	}
	return text
}

func (e *PlanError) Unwrap() error { return ErrInvalid }

// Counts is a number of objects of each kind.
type Counts struct {
	Networks     int `json:"networks"`
	Subnets      int `json:"subnets"`
	Pools        int `json:"pools"`
	Exclusions   int `json:"exclusions"`
	Reservations int `json:"reservations"`
	Addresses    int `json:"addresses"`

	// Elastic addresses.
	Accounts     int `json:"accounts,omitempty"`
	Ranges       int `json:"ranges,omitempty"`
	Elastic      int `json:"elastic,omitempty"`
	Associations int `json:"associations,omitempty"`
}

// Sum returns the total.
func (n Counts) Sum() int {
	return n.Networks + n.Subnets + n.Pools + n.Exclusions + n.Reservations + n.Addresses +
		n.Accounts + n.Ranges + n.Elastic + n.Associations
}

// Plus returns n + times*m.
func (n Counts) Plus(m Counts, times int) Counts {
	return Counts{n.Networks + times*m.Networks, n.Subnets + times*m.Subnets, n.Pools + times*m.Pools,
		n.Exclusions + times*m.Exclusions, n.Reservations + times*m.Reservations, n.Addresses + times*m.Addresses,
		n.Accounts + times*m.Accounts, n.Ranges + times*m.Ranges, n.Elastic + times*m.Elastic,
		n.Associations + times*m.Associations}
}

// Counts counts the objects in a plan, without reservations that have ended.
func (p *Plan) Counts(now time.Time) (n Counts) {
	for i := range p.Networks {
		of := &p.Networks[i]
		if of.Name != "" {
			n.Networks++
		}
		n.Subnets += len(of.Subnets)
		n.Pools += len(of.Pools)
		n.Exclusions += len(of.Exclusions)
		n.Addresses += len(of.Addresses)
		for j := range of.Subnets {
			n.Pools += len(of.Subnets[j].Pools)
			n.Exclusions += len(of.Subnets[j].Exclusions)
		}
		for j := range of.Reservations {
			if r := &of.Reservations[j]; r.Until.IsZero() || r.Until.After(now) {
				n.Reservations++
			}
		}
	}
	if p.Elastic == nil {
		return n
	}
	n.Accounts, n.Ranges, n.Elastic = len(p.Elastic.Accounts), len(p.Elastic.Ranges), len(p.Elastic.Addresses)
	for i := range p.Elastic.Addresses {
		if p.Elastic.Addresses[i].Instance != "" {
			n.Associations++
		}
	}
	return n
}

func (n Counts) String() string {
	var parts []string
	for _, one := range []struct {
		n    int
		noun string
	}{{n.Networks, "network"}, {n.Subnets, "subnet"}, {n.Pools, "pool"}, {n.Exclusions, "exclusion"},
		{n.Reservations, "reservation"}, {n.Addresses, "address"}, {n.Accounts, "account"},
		{n.Ranges, "elastic range"}, {n.Elastic, "elastic address"}, {n.Associations, "association"}} {
		switch {
		case one.n == 1:
			parts = append(parts, "1 "+one.noun)
		case one.n > 1 && strings.HasSuffix(one.noun, "s"):
			parts = append(parts, fmt.Sprintf("%d %ses", one.n, one.noun))
		case one.n > 1:
			parts = append(parts, fmt.Sprintf("%d %ss", one.n, one.noun))
		}
	}
	if len(parts) == 0 {
		return "nothing"
	}
	return strings.Join(parts, ", ")
}

// ImportReport is the result of an import.
type ImportReport struct {
	DryRun    bool              `json:"dry_run,omitempty"`
	Added     Counts            `json:"added"`
	Unchanged Counts            `json:"unchanged"`          // identical objects that already existed
	Networks  []ImportedNetwork `json:"networks,omitempty"` // in a dry run: the networks that would change
	Unmade    []PlanProblem     `json:"unmade,omitempty"`   // refused associations; all else was added
}

// ImportedNetwork is what an import would add to one network.
type ImportedNetwork struct {
	Name  string `json:"name"`
	New   bool   `json:"new,omitempty"`
	Added Counts `json:"added"`
}

// ImportOptions control how a plan is imported.
type ImportOptions struct {
	DryRun   bool
	Progress func(done, total int) // called after each transaction; may be nil
}

// PlannedElastic is the elastic part of a document: accounts, ranges, and allocated addresses with their associations.
// It has no system addresses, and nothing of what edges have applied.
type PlannedElastic struct {
	Accounts  []PlannedAccount        `json:"accounts,omitempty"`
	Ranges    []PlannedElasticRange   `json:"ranges,omitempty"`
	Addresses []PlannedElasticAddress `json:"addresses,omitempty"`
}

// PlannedAccount is an account in a document.
type PlannedAccount struct {
	CreateAccount
	Line    int     `json:"line,omitempty"`
	Cleared Cleared `json:"cleared,omitempty" plan:"-"`
}

// PlannedElasticRange is a range of elastic addresses in a document.
type PlannedElasticRange struct {
	AddElasticRange
	Line    int     `json:"line,omitempty"`
	Cleared Cleared `json:"cleared,omitempty" plan:"-"`
}

// PlannedElasticAddress is an elastic address in a document. Without an instance it has no association. The guest
// counts only if the rest is ambiguous.
type PlannedElasticAddress struct {
	Address    netip.Addr `json:"address"`
	Account    string     `json:"account,omitempty"`
	Instance   string     `json:"instance,omitempty"`
	Network    string     `json:"network,omitempty"`
	Guest      netip.Addr `json:"guest,omitzero"`
	EgressOnly bool       `json:"egress_only,omitempty"`
	ReleaseOn  string     `json:"release_on,omitempty"` // never (default), destroy or stop
	Line       int        `json:"line,omitempty"`
	Cleared    Cleared    `json:"cleared,omitempty" plan:"-"`
}
