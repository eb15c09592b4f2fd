package admin

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"berth/internal/admin/api"
	"berth/internal/ipam"
)

// askFor sends a request as one who asks for one account.
func (h *house) askFor(t *testing.T, account string, since time.Time, method, path, body string) (int, string) {
	t.Helper()
	req := httptest.NewRequest(method, path, strings.NewReader(body))
	req.Header.Set("Content-Type", api.JSONType)
	who := &caller{actor: "token of " + account, role: api.RoleAccount, account: account, since: since}
	ctx := context.WithValue(ipam.WithAccount(req.Context(), account), callerKey{}, who)
	answer := httptest.NewRecorder()
	h.server.mux().ServeHTTP(timedRecorder{answer}, req.WithContext(ctx))
	return answer.Code, answer.Body.String()
}

// accountsHouse has the account shop with two addresses, of which one is mapped to its container shop/web/1, and rival
// with one that is mapped to rival/db.
func accountsHouse(t *testing.T) *house {
	h := start(t, nil)
	router, _ := h.planned(t)
	h.play(t, router, made(`{"op": "account.create", "account": "shop", "owners": ["shop/*"], "quota": 3},
		{"op": "account.create", "account": "rival", "owners": ["rival/*"]},
		{"op": "network.create", "name": "net3", "space": "lab", "subnets": [{"cidr": "192.0.2.0/24", "pool": true}]},
		{"op": "network.modify", "network": "net3", "elastic": "on"},
		{"op": "reservation.add", "network": "net3", "owner": "shop/web/1", "wishes": [{"slot": 0, "address": "192.0.2.11"}]},
		{"op": "reservation.add", "network": "net3", "owner": "rival/db", "wishes": [{"slot": 0, "address": "192.0.2.12"}]},
		{"op": "reservation.add", "network": "net3", "owner": "nobodys", "wishes": [{"slot": 0, "address": "192.0.2.13"}]},
		{"op": "elastic.range.add", "range": "203.0.113.10+6"},
		{"op": "elastic.allocate", "account": "shop"}, {"op": "elastic.allocate", "account": "shop"},
		{"op": "elastic.allocate", "account": "rival"},
		{"op": "elastic.associate", "address": "203.0.113.10", "instance": "shop/web/1"},
		{"op": "elastic.associate", "address": "203.0.113.12", "instance": "rival/db"}`, 200, ""))
	return h
}

func (h *house) created(t *testing.T, account string) time.Time {
	t.Helper()
	since, err := h.server.accountSince(t.Context(), account)
	must(t, err)
	return since
}

// TestAccountToken: who asks for one account sees and touches what is its own; of anything else he is not told whose it
// is, nor whether it is there (CS-5, CS-14).
func TestAccountToken(t *testing.T) {
	h := accountsHouse(t)
	since := h.created(t, "shop")
	edits := func(e string) string { return `{"edits": [` + e + `]}` }
	for _, c := range []struct {
		method, path, body string
		status             int
		has, hasNot        string
	}{
		{"GET", "/v1/elastic", "", 200, "203.0.113.10", "203.0.113.12"},
		{"GET", "/v1/elastic", "", 200, `"instance":"shop/web/1"`, "rival"},
		{"GET", "/v1/elastic?account=shop", "", 200, "203.0.113.11", "rival"},
		{"GET", "/v1/elastic?account=rival", "", 404, `there is no account \"rival\"`, "203.0.113.12"},
		{"GET", "/v1/elastic?account=nobody", "", 404, `there is no account \"nobody\"`, ""},
		{"GET", "/v1/elastic/203.0.113.10", "", 200, "shop/web/1", ""},
		{"GET", "/v1/elastic/203.0.113.12", "", 404, "account shop has no elastic address 203.0.113.12", "rival"},
		{"GET", "/v1/elastic/203.0.113.14", "", 404, "account shop has no elastic address 203.0.113.14", "free"},
		{"GET", "/v1/accounts", "", 200, `"name":"shop"`, "rival"},
		{"GET", "/v1/elastic/usage", "", 200, `"account":"shop"`, "rival"},
		{"GET", "/v1/edge/status", "", 200, `"connected":0`, ""},
		{"GET", "/v1/elastic/ranges", "", 403, "token of shop is for the elastic addresses of account shop alone", ""},
		{"GET", "/v1/networks", "", 403, "", ""},
		{"GET", "/v1/leases", "", 403, "", ""},
		{"GET", "/v1/events", "", 403, "", ""},
		{"GET", "/v1/status", "", 403, "", ""},
		{"POST", "/v1/tokens", "{}", 403, "", ""},
		{"GET", "/v1/edge", "", 403, "", ""},

		{"POST", "/v1/edits", edits(`{"op": "elastic.allocate"}`), 200, `"name":"shop"`, ""}, // 203.0.113.13, its own
		{"POST", "/v1/edits", edits(`{"op": "elastic.allocate"}`), 409, "QuotaExceeded", ""},
		{"POST", "/v1/edits", edits(`{"op": "elastic.release", "address": "203.0.113.13"}`), 200, "", ""},
		{"POST", "/v1/edits", edits(`{"op": "elastic.release", "address": "203.0.113.13"}`), 200, "", ""}, // again
		{"POST", "/v1/edits", `{"dry_run": true, "edits": [{"op": "elastic.allocate"}]}`, 200, "elastic.allocate", ""},
		{"POST", "/v1/edits", edits(`{"op": "elastic.allocate", "account": "rival"}`), 403, "", "203.0.113"},
		{"POST", "/v1/edits", edits(`{"op": "elastic.allocate", "account": "nobody"}`), 403, "", "there is no"},
		{"POST", "/v1/edits", edits(`{"op": "elastic.allocate", "address": "203.0.113.12"}`), 409,
			"203.0.113.12 is not free", "rival"},
		{"POST", "/v1/edits", edits(`{"op": "elastic.associate", "address": "203.0.113.12", "instance": "shop/web/1"}`),
			404, "account shop has no elastic address", "rival"},
		{"POST", "/v1/edits", edits(`{"op": "elastic.disassociate", "address": "203.0.113.12"}`), 404, "", "rival"},
		{"POST", "/v1/edits", edits(`{"op": "elastic.release", "address": "203.0.113.12"}`), 404, "", "rival"},
		{"POST", "/v1/edits", edits(`{"op": "elastic.associate", "address": "203.0.113.11", "instance": "rival/db"}`),
			409, `"reason":"ElasticOtherAccount"`, "192.0.2.12"},
		{"POST", "/v1/edits", edits(`{"op": "elastic.associate", "address": "203.0.113.11", "instance": "rival/x"}`),
			409, `"reason":"ElasticOtherAccount"`, "has no"}, // not there, and said in the same words
		{"POST", "/v1/edits", edits(`{"op": "elastic.associate", "address": "203.0.113.11", "instance": "nobodys"}`),
			409, `"reason":"ElasticOtherAccount"`, "default"},
		{"POST", "/v1/edits", edits(`{"op": "elastic.associate", "address": "203.0.113.11", "instance": "shop/x"}`),
			404, "ElasticGuestUnclear", ""},
		{"POST", "/v1/edits", edits(`{"op": "elastic.associate", "address": "203.0.113.10", "instance": "shop/web/1"}`),
			200, "", ""},
		{"POST", "/v1/edits", edits(`{"op": "elastic.disassociate", "address": "203.0.113.10"}`), 200,
			"elastic.disassociate", ""},
		{"POST", "/v1/edits", edits(`{"op": "account.remove", "account": "shop"}`), 403,
			"account.remove is not for one who asks for account shop", ""},
		{"POST", "/v1/edits", edits(`{"op": "account.create", "account": "shop2"}`), 403, "", ""},
		{"POST", "/v1/edits", edits(`{"op": "elastic.range.add", "range": "203.0.113.99"}`), 403, "", ""},
		{"POST", "/v1/edits", edits(`{"op": "network.modify", "network": "net1", "elastic": "off"}`), 403, "", ""},
		{"POST", "/v1/edits", edits(`{"op": "owner.release", "owner": "rival/db"}`), 403, "", ""},
	} {
		status, body := h.askFor(t, "shop", since, c.method, c.path, c.body)
		if status != c.status || !strings.Contains(body, c.has) || c.hasNot != "" && strings.Contains(body, c.hasNot) {
			t.Errorf("%s %s %s\n  is answered %d (want %d, with %q, without %q): %s", c.method, c.path, c.body, status,
				c.status, c.has, c.hasNot, body)
		}
	}
}

// TestAccountTokenReachesNothingElse: every other operation is refused to the token of an account (CS-14).
func TestAccountTokenReachesNothingElse(t *testing.T) {
	h := accountsHouse(t)
	since := h.created(t, "shop")
	for _, r := range h.server.routes() {
		status, body := h.askFor(t, "shop", since, r.Method, strings.NewReplacer("{", "", "}", "").Replace(r.Path), "")
		if (status == http.StatusForbidden) == r.Account {
			t.Errorf("%s %s is answered %d: %s", r.Method, r.Path, status, body)
		}
	}
}

// TestRemovedAccountsToken: the tokens of an account that was removed are refused, also where another of the same name
// was made since (CS-14).
func TestRemovedAccountsToken(t *testing.T) {
	h := accountsHouse(t)
	ctx := t.Context()
	since := h.created(t, "shop")
	if status, body := h.askFor(t, "shop", since, "GET", "/v1/elastic", ""); status != http.StatusOK {
		t.Fatalf("%d: %s", status, body)
	}
	_, err := h.server.cfg.Service.Edit(ctx, ipam.EditOptions{}, &ipam.RemoveAccount{Account: "shop", Force: true})
	must(t, err)
	for _, step := range []string{"removed", "recreated"} {
		status, body := h.askFor(t, "shop", since, "GET", "/v1/elastic", "")
		if status != http.StatusForbidden || !strings.Contains(body, "the account shop") {
			t.Errorf("%s: %d: %s", step, status, body)
		}
		_, err := h.server.cfg.Service.Edit(ctx, ipam.EditOptions{}, &ipam.CreateAccount{Account: "shop"})
		if step == "removed" {
			must(t, err)
		}
	}
	if status, body := h.askFor(t, ipam.DefaultAccount, time.Time{}, "GET", "/v1/elastic", ""); status != 200 {
		t.Errorf("the default account is always there: %d: %s", status, body)
	}
}

// TestAccountTokenCreated: a token is for an account that is there, with no role beside.
func TestAccountTokenCreated(t *testing.T) {
	h := accountsHouse(t)
	_, router := description(t)
	for _, c := range []struct {
		body   string
		status int
		has    string
	}{
		{`{"name":"shop","account":"shop"}`, 200, `"role":"account","account":"shop"`},
		{`{"name":"default","account":"default","role":"account"}`, 200, `"account":"default"`},
		{`{"name":"x","account":"nobody"}`, 404, api.CodeNotFound},
		{`{"name":"x","account":"shop","role":"admin"}`, 400, api.CodeInvalid},
		{`{"name":"x","account":"shop","role":"read-only"}`, 400, api.CodeInvalid},
		{`{"name":"x","role":"account"}`, 400, api.CodeInvalid},
	} {
		if answer := h.sent(t, router, "POST", "/v1/tokens", c.body, c.status); !strings.Contains(answer, c.has) {
			t.Errorf("%s: the answer has no %s: %s", c.body, c.has, answer)
		}
	}
	if list := h.checked(t, router, "GET", "/v1/tokens", 200); !strings.Contains(list, `"account":"shop"`) {
		t.Errorf("the list: %s", list)
	}
}
