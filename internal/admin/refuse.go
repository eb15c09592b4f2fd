package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"berth/internal/admin/api"
	pages "berth/internal/admin/page"
	"berth/internal/ipam"
	"berth/internal/shorten"
	"berth/store"
)

// kinds maps errors to status and code. The first match counts.
var kinds = []struct {
	is     error
	status int
	code   string
}{
	{ipam.ErrInvalid, http.StatusBadRequest, api.CodeInvalid},
	{ipam.ErrNotFound, http.StatusNotFound, api.CodeNotFound},
	{ipam.ErrInUse, http.StatusConflict, api.CodeInUse},
	{ipam.ErrExhausted, http.StatusConflict, api.CodeExhausted},
	{ipam.ErrOverlap, http.StatusConflict, api.CodeOverlap},
	{ipam.ErrChanged, http.StatusPreconditionFailed, api.CodeChanged},
	{ipam.ErrKeyReused, http.StatusUnprocessableEntity, api.CodeKeyReused},
	{ipam.ErrAlone, http.StatusConflict, api.CodeNoCluster},
	{ipam.ErrHost, http.StatusConflict, api.CodeHostRefused},
	{ipam.ErrForbidden, http.StatusForbidden, api.CodeForbidden},
	{ipam.ErrLAN, http.StatusServiceUnavailable, api.CodeUnavailable},
	{store.ErrAway, http.StatusServiceUnavailable, api.CodeAway},
	{store.ErrNoSpace, http.StatusInsufficientStorage, api.CodeNoSpace},
	{store.ErrAstray, http.StatusServiceUnavailable, api.CodeAstray},
	{store.ErrUnknown, http.StatusServiceUnavailable, api.CodeUnknownOutcome},
	{store.ErrLocked, http.StatusConflict, api.CodeInUse},
	{store.ErrClosed, http.StatusServiceUnavailable, api.CodeUnavailable},
	{context.DeadlineExceeded, http.StatusServiceUnavailable, api.CodeUnavailable},
	{context.Canceled, http.StatusServiceUnavailable, api.CodeUnavailable},
	{ipam.ErrDamaged, http.StatusInternalServerError, api.CodeDamaged},
	{store.ErrCorrupt, http.StatusInternalServerError, api.CodeDamaged},
}

// problemOf translates an error of the packages inside.
func problemOf(err error) *api.Problem {
	var one *ipam.EditError
	if errors.As(err, &one) {
		p := *problemOf(one.Err)
		p.Index = &one.Index
		return &p
	}
	var p *api.Problem
	if errors.As(err, &p) {
		return p
	}
	var plan *ipam.PlanError
	if errors.As(err, &plan) {
		return &api.Problem{Status: http.StatusBadRequest, Code: api.CodeInvalid, Detail: err.Error(),
			Problems: plan.Problems,
			More:     plan.More}
	}
	for _, k := range kinds {
		if errors.Is(err, k.is) {
			return &api.Problem{Status: k.status, Code: k.code, Detail: err.Error(), Reason: string(ipam.CodeOf(err)),
				Advice: ipam.AdviceOf(err)}
		}
	}
	return problem(http.StatusInternalServerError, api.CodeInternal, "%s", err.Error())
}

// problem returns a refusal.
func problem(status int, code, format string, args ...any) *api.Problem {
	return &api.Problem{Status: status, Code: code, Detail: fmt.Sprintf(format, args...)}
}

func invalid(format string, args ...any) *api.Problem {
	return problem(http.StatusBadRequest, api.CodeInvalid, format, args...)
}

func noSuchPath(path string) *api.Problem {
	return problem(http.StatusNotFound, api.CodeNoPath, "the admin API has no path %q; openapi.yaml lists the paths",
		path)
}

func noSuchMethod(method, path, allow string) *api.Problem {
	return problem(http.StatusMethodNotAllowed, api.CodeNoMethod, "%s accepts %s, not %s", path, allow, method)
}

func (s *Server) logRefusal(r *http.Request, p *api.Problem) {
	entry := s.log.WithField("path", pathOf(r)).WithField("code", p.Code)
	if p.Status >= http.StatusInternalServerError {
		entry.Error(p.Detail)
	} else {
		entry.Debug(p.Detail)
	}
}

// refuse answers with a problem. A browser that requests HTML outside the API's paths gets a page, and everybody else
// JSON. An answer that has begun is aborted, which the client notices.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, p *api.Problem) {
	p = shortened(p)
	s.logRefusal(r, p)
	if a, ok := w.(*answer); ok && a.begun {
		panic(http.ErrAbortHandler)
	}
	h := w.Header()
	h.Del("Content-Length")
	if pages.WantsHTML(r) && !strings.HasPrefix(r.URL.Path, "/v1/") && s.refusePage(w, r, p) == nil {
		return
	}
	var text bytes.Buffer
	_ = json.NewEncoder(&text).Encode(p) // a problem has nothing that JSON lacks
	h.Set("Content-Type", "application/problem+json")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Length", strconv.Itoa(text.Len())) // a client may still send its body, and must see the end of this
	w.WriteHeader(p.Status)
	_, _ = text.WriteTo(w) // the server notices a client that is gone
}

// shortened returns a problem with its title, and with long user-chosen values cut.
func shortened(p *api.Problem) *api.Problem {
	cut := *p
	if cut.Title == "" {
		cut.Title = http.StatusText(p.Status)
	}
	cut.Detail, cut.Advice = shorten.Text(p.Detail), shortAdvice(p.Advice)
	cut.Problems = slices.Clone(p.Problems)
	for i := range cut.Problems {
		one := &cut.Problems[i]
		one.Text, one.Advice = shorten.Text(one.Text), shortAdvice(one.Advice)
	}
	return &cut
}

func shortAdvice(all []ipam.Advice) []ipam.Advice {
	all = slices.Clone(all)
	for i := range all {
		all[i].With = slices.Clone(all[i].With)
		for j, text := range all[i].With {
			all[i].With[j] = shorten.To(text, ipam.MaxText)
		}
	}
	return all
}

// pathOf returns the path of a request for the log.
func pathOf(r *http.Request) string { return shorten.To(r.URL.Path, shorten.Most) }

// refusePage answers a browser. A caller who may not see the page, or not under this name, gets only the error.
func (s *Server) refusePage(w http.ResponseWriter, r *http.Request, p *api.Problem) error {
	role := callerIn(r.Context()).role
	if role != api.RoleAdmin && role != api.RoleReadOnly || misdirected(r) != nil {
		return s.page.TurnAway(w, r, p)
	}
	return s.page.Refuse(w, r, p)
}
