package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"berth/internal/ipam"
	"berth/store"
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
	CodeUnavailable     = "unavailable"     // the daemon is ending, or too slow
	CodeInternal        = "internal"        // a defect of Berth
)

// Problem is a refusal as it goes over the wire (RFC 9457), and the error that Client returns for it.
type Problem struct {
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
	Code   string `json:"code"`
	Reason string `json:"reason,omitempty"` // what is wrong with a reservation or an address: an ipam.Code
	Index  *int   `json:"index,omitempty"`  // which of several changes was refused, from 0

	// Problems are all that is wrong with a plan, up to ipam.MaxProblems, and More how many there are beside those.
	Problems []ipam.PlanProblem `json:"problems,omitempty"`
	More     int                `json:"more,omitempty"`
}

func (p *Problem) Error() string { return p.Detail }

// kinds gives each kind of error its status and code. The first that matches counts.
var kinds = []struct {
	is     error
	status int
	code   string
}{
	{ipam.ErrInvalid, http.StatusBadRequest, CodeInvalid},
	{ipam.ErrNotFound, http.StatusNotFound, CodeNotFound},
	{ipam.ErrInUse, http.StatusConflict, CodeInUse},
	{ipam.ErrExhausted, http.StatusConflict, CodeExhausted},
	{ipam.ErrOverlap, http.StatusConflict, CodeOverlap},
	{ipam.ErrChanged, http.StatusPreconditionFailed, CodeChanged},
	{ipam.ErrKeyReused, http.StatusUnprocessableEntity, CodeKeyReused},
	{ipam.ErrAlone, http.StatusConflict, CodeNoCluster},
	{ipam.ErrHost, http.StatusConflict, CodeHostRefused},
	{store.ErrAway, http.StatusServiceUnavailable, CodeAway},
	{store.ErrNoSpace, http.StatusInsufficientStorage, CodeNoSpace},
	{store.ErrUnknown, http.StatusServiceUnavailable, CodeUnknownOutcome},
	{store.ErrClosed, http.StatusServiceUnavailable, CodeUnavailable},
	{context.DeadlineExceeded, http.StatusServiceUnavailable, CodeUnavailable},
	{context.Canceled, http.StatusServiceUnavailable, CodeUnavailable},
	{ipam.ErrDamaged, http.StatusInternalServerError, CodeDamaged},
	{store.ErrCorrupt, http.StatusInternalServerError, CodeDamaged},
}

// problemOf translates an error of the rooms inside.
func problemOf(err error) *Problem {
	var one *ipam.EditError
	if errors.As(err, &one) {
		p := *problemOf(one.Err)
		p.Index = &one.Index
		return &p
	}
	var p *Problem
	if errors.As(err, &p) {
		return p
	}
	var plan *ipam.PlanError
	if errors.As(err, &plan) {
		return &Problem{Status: http.StatusBadRequest, Code: CodeInvalid, Detail: err.Error(), Problems: plan.Problems, More: plan.More}
	}
	for _, k := range kinds {
		if errors.Is(err, k.is) {
			return &Problem{Status: k.status, Code: k.code, Detail: err.Error(), Reason: string(ipam.CodeOf(err))}
		}
	}
	return &Problem{Status: http.StatusInternalServerError, Code: CodeInternal, Detail: err.Error()}
}

func invalid(format string, args ...any) *Problem {
	return &Problem{Status: http.StatusBadRequest, Code: CodeInvalid, Detail: fmt.Sprintf(format, args...)}
}

func noSuchPath(path string) *Problem {
	return &Problem{Status: http.StatusNotFound, Code: CodeNoPath,
		Detail: fmt.Sprintf("the admin API has no path %q; openapi.yaml lists them", path)}
}

func noSuchMethod(method, path, allow string) *Problem {
	return &Problem{Status: http.StatusMethodNotAllowed, Code: CodeNoMethod,
		Detail: fmt.Sprintf("%s answers to %s, not to %s", path, allow, method)}
}

// refuse answers with a problem. Where an answer has begun already it can only be cut off, which the client notices.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, p *Problem) {
	if p.Title == "" {
		p.Title = http.StatusText(p.Status)
	}
	entry := s.log.WithField("path", r.URL.Path).WithField("code", p.Code)
	if p.Status >= http.StatusInternalServerError {
		entry.Error(p.Detail)
	} else {
		entry.Debug(p.Detail)
	}
	if a, ok := w.(*answer); ok && a.begun {
		panic(http.ErrAbortHandler)
	}
	h := w.Header()
	h.Del("Content-Length")
	h.Set("Content-Type", "application/problem+json")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // a client that is gone: the server notices
}
