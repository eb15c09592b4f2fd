package admin

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"berth/internal/admin/api"
	"berth/internal/ipam"
	"berth/store/storetest"
)

// TestTokenEvents: the audit trail names who creates and removes tokens. If the event cannot be recorded the token
// is not created, and a removed token stays removed.
func TestTokenEvents(t *testing.T) {
	h, faulty := startFaulty(t)
	h.plays(t, `
		POST /v1/tokens {"name": "ci", "role": "admin", "lifetime": "1h"} -> 200
		GET /v1/events?last=1
			-> 200 "verb":"token.create" && "name":"ci" && "detail":"admin until 2 && $ACTOR && "host":"alpha"
		POST /v1/tokens {"name": "look", "role": "read-only", "no_end": true} -> 200
		GET /v1/events?last=1 -> 200 "verb":"token.create" && "name":"look" && "detail":"read-only"
		DELETE /v1/tokens/ci -> 200
		GET /v1/events?last=1 -> 200 "verb":"token.remove" && "name":"ci" && "detail":"admin until 2 && $ACTOR
	`, "$ACTOR", `"actor":"`+(&peer{uid: os.Geteuid()}).actor()+`"`)
	faulty.Next(storetest.Fault{Before: errors.New("no")})
	if _, err := h.client.CreateToken(t.Context(), api.TokenRequest{Name: "secret", Role: api.RoleAdmin}); err == nil {
		t.Error("a token was created without an event")
	}
	faulty.Next(storetest.Fault{Before: errors.New("no")})
	h.plays(t, `
		DELETE /v1/tokens/look -> 200
		GET /v1/tokens -> 200 "tokens":[]
	`)
}

// TestTokensAsDescribed creates tokens of every form, and checks the refusals.
func TestTokensAsDescribed(t *testing.T) {
	h := start(t, nil)
	h.plays(t, `
		POST /v1/tokens {"name":"ci","role":"admin"} -> 200 "role":"admin"
		POST /v1/tokens {"name":"look","role":"read-only","lifetime":"720h"} -> 200 "expires":"
		POST /v1/tokens {"name":"ever","role":"admin","no_end":true} -> 200 "token":"berth_
		POST /v1/tokens {"name":"roleless"} -> 400 has no role
		POST /v1/tokens {"name":"both","role":"admin","no_end":true,"lifetime":"1h"}
			-> 400 give only one of lifetime and no_end
		POST /v1/tokens {"name":"ci","role":"admin"} -> 409 in_use
		POST /v1/tokens {"name":"pool"} -> 400 invalid
		POST /v1/tokens {"name":"a b"} -> 400 invalid
		POST /v1/tokens {} -> 400 invalid
		POST /v1/tokens -> 400 invalid
		POST /v1/tokens null -> 400 invalid
		POST /v1/tokens {"name":"x","role":"root"} -> 400 invalid
		POST /v1/tokens {"name":"x","lifetime":"1ns"} -> 400 invalid
		POST /v1/tokens {"name":"x","lifetime":"-1h"} -> 400 invalid
		POST /v1/tokens {"name":"x","lifetime":"for ever"} -> 400 invalid
		POST /v1/tokens {"name":"x","rank":"admin"} -> 400 invalid
		POST /v1/tokens {"name":"x"}{"name":"y"} -> 400 invalid
		POST /v1/tokens {"name":"$LONG"} -> 413 too_large
	`, "$LONG", strings.Repeat("x", api.MaxBody))
	list := h.plays(t, `GET /v1/tokens -> 200`).body
	if strings.Contains(list, api.TokenPrefix) || strings.Count(list, `"name"`) != 3 {
		t.Errorf("the list: %s", list)
	}
	h.plays(t, `
		DELETE /v1/tokens/ci -> 200 "name":"ci"
		DELETE /v1/tokens/ci -> 404 not_found
		DELETE /v1/tokens/CI -> 404 not_found
		DELETE /v1/tokens/a%20b -> 404 not_found
		DELETE /v1/tokens/%2e%2e -> 404 not_found
		DELETE /v1/tokens/a%2Fb -> 404 not_found
	`)
}

// TestTokensEnd: a token has a purpose, and by default ends after 90 days. From two weeks before its end Berth
// reports it, until it has ended.
func TestTokensEnd(t *testing.T) {
	now := time.Now()
	tokens := &Tokens{now: func() time.Time { return now }}
	for _, req := range []api.TokenRequest{{Name: "none"},
		{Name: "both", Role: api.RoleAdmin, NoEnd: true, Lifetime: ipam.Duration(time.Hour)}} {
		if _, err := tokens.create(req, time.Time{}, "x"); err == nil {
			t.Errorf("%+v is a token", req)
		}
	}
	begun := now.UTC().Truncate(time.Second)
	for _, c := range []struct {
		req  api.TokenRequest
		ends time.Time
	}{{api.TokenRequest{Name: "usual", Role: api.RoleReadOnly}, begun.Add(90 * 24 * time.Hour)},
		{api.TokenRequest{Name: "long", Role: api.RoleAdmin, Lifetime: ipam.Duration(2400 * time.Hour)},
			begun.Add(2400 * time.Hour)},
		{api.TokenRequest{Name: "ever", Role: api.RoleAdmin, NoEnd: true}, time.Time{}}} {
		made, err := tokens.create(c.req, time.Time{}, "x")
		must(t, err)
		if !made.Expires.Equal(c.ends) {
			t.Errorf("%s ends at %s, want %s", made.Name, made.Expires, c.ends)
		}
	}
	for _, c := range []struct {
		after time.Duration
		want  string
	}{{0, ""}, {76*24*time.Hour - time.Second, ""}, {76 * 24 * time.Hour, "usual"}, {86 * 24 * time.Hour, "long usual"},
		{90 * 24 * time.Hour, "long"}, {100 * 24 * time.Hour, ""}} {
		now = begun.Add(c.after)
		var told []string
		for _, f := range tokens.Findings("alpha") {
			if f.Kind != ipam.EndingToken || f.Host != "alpha" {
				t.Errorf("found is %+v", f)
			}
			name, _, _ := strings.Cut(strings.TrimPrefix(f.Detail, "the token "), " ")
			if first := map[string]int{"usual": 76, "long": 86}[name]; !f.Seen.Equal(begun.AddDate(0, 0, first)) {
				t.Errorf("%s ends soon since %s", name, f.Seen)
			}
			told = append(told, name)
		}
		if got := strings.Join(told, " "); got != c.want {
			t.Errorf("after %s it tells of %q, want %q", c.after, got, c.want)
		}
	}
}
