package api

import (
	"berth/internal/ipam"
)

// The codes of problems. They are part of the API: programs compare them, people read the detail.
const (
	CodeInvalid         = "invalid"         // the request makes no sense
	CodeNotFound        = "not_found"       // the named object does not exist
	CodeInUse           = "in_use"          // somebody else holds it
	CodeExhausted       = "exhausted"       // no address is left
	CodeOverlap         = "overlap"         // it overlaps another
	CodeNoPath          = "no_such_path"    // the API has no such path
	CodeNoMethod        = "no_such_method"  // the path has no such method
	CodeForbidden       = "forbidden"       // the caller may not do that
	CodeUnauthenticated = "unauthenticated" // the credentials are missing or wrong
	CodeBusy            = "busy"            // the same operation is already running
	CodeNoWitness       = "no_witness"      // the daemon has no witness
	CodeNoCluster       = "no_cluster"      // the daemon's store is not shared
	CodeHostRefused     = "host_refused"    // the host may not do that in its cluster
	CodeAway            = "store_away"      // the shared store is unreachable
	CodeChanged         = "changed"         // the revision differs from If-Match
	CodeKeyReused       = "key_reused"      // the Idempotency-Key was used for another request
	CodeMediaType       = "media_type"      // the operation does not read this content type
	CodeTooLarge        = "too_large"       // the request's body is too large
	CodeDamaged         = "damaged"         // a record cannot be read
	CodeNoSpace         = "no_space"        // the disk is full
	CodeUnknownOutcome  = "unknown_outcome" // a write failed halfway; restart the daemon
	CodeAstray          = "state_astray"    // the state's file is not at its path
	CodeUnavailable     = "unavailable"     // the daemon is ending or too slow
	CodeMisdirected     = "misdirected"     // the page was requested under a name that is not the daemon's
	CodeInternal        = "internal"        // a defect of Berth
)

// Problem is a refusal on the wire (RFC 9457). It is also the error that a client returns.
type Problem struct {
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
	Code   string `json:"code"`
	Reason string `json:"reason,omitempty"` // an ipam.Code: what is wrong with a reservation or an address
	Index  *int   `json:"index,omitempty"`  // the index of the refused change if there are several, from 0

	// Advice is what helps, as data. The program that shows the problem writes the sentence.
	Advice []ipam.Advice `json:"advice,omitempty"`

	// Problems lists what is wrong with a plan, up to ipam.MaxProblems. More is the number of further ones.
	Problems []ipam.PlanProblem `json:"problems,omitempty"`
	More     int                `json:"more,omitempty"`
}

func (p *Problem) Error() string { return p.Detail }

// Helps returns the advice, as on the server's side.
func (p *Problem) Helps() []ipam.Advice { return p.Advice }
