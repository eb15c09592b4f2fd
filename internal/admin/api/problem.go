package api

import (
	"berth/internal/ipam"
)

// The codes of problems. They are part of the API: programs compare them, people read the detail.
const (
	CodeInvalid         = "invalid"         // the request makes no sense
	CodeNotFound        = "not_found"       // the named thing is not there
	CodeInUse           = "in_use"          // somebody else holds it
	CodeExhausted       = "exhausted"       // nothing is left to give
	CodeOverlap         = "overlap"         // it overlaps another
	CodeNoPath          = "no_such_path"    // the API has no such path
	CodeNoMethod        = "no_such_method"  // the path has no such method
	CodeForbidden       = "forbidden"       // you may not
	CodeUnauthenticated = "unauthenticated" // you do not say who you are, or it is not true
	CodeBusy            = "busy"            // somebody else does the same at this moment
	CodeNoWitness       = "no_witness"      // nobody tells this daemon what runs
	CodeNoCluster       = "no_cluster"      // the daemon's store is its host's own
	CodeHostRefused     = "host_refused"    // the host may not do that in its cluster
	CodeAway            = "store_away"      // the shared store is out of reach
	CodeChanged         = "changed"         // it is no longer as If-Match says
	CodeKeyReused       = "key_reused"      // the Idempotency-Key is that of another request
	CodeMediaType       = "media_type"      // the body is not of the type that the operation reads
	CodeTooLarge        = "too_large"       // the request's body
	CodeDamaged         = "damaged"         // what is stored cannot be read
	CodeNoSpace         = "no_space"        // the disk is full
	CodeUnknownOutcome  = "unknown_outcome" // a write failed half-way; the daemon must be started again
	CodeAstray          = "state_astray"    // the state's file is not in its place
	CodeUnavailable     = "unavailable"     // the daemon is ending, or too slow
	CodeMisdirected     = "misdirected"     // the page is asked for under a name that is not the daemon's
	CodeInternal        = "internal"        // a defect of Berth
)

// Problem is a refusal as it goes over the wire (RFC 9457), and the error that a client returns for it.
type Problem struct {
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
	Code   string `json:"code"`
	Reason string `json:"reason,omitempty"` // what is wrong with a reservation or an address: an ipam.Code
	Index  *int   `json:"index,omitempty"`  // which of several changes was refused, from 0

	// Advice is what helps, as data; who shows the problem writes the sentence.
	Advice []ipam.Advice `json:"advice,omitempty"`

	// Problems are all that is wrong with a plan, up to ipam.MaxProblems, and More how many there are beside those.
	Problems []ipam.PlanProblem `json:"problems,omitempty"`
	More     int                `json:"more,omitempty"`
}

func (p *Problem) Error() string { return p.Detail }

// Helps is what helps against it, on this side of the wire as on the other.
func (p *Problem) Helps() []ipam.Advice { return p.Advice }
