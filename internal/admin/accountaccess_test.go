package admin

import (
	"testing"
	"time"

	"berth/internal/admin/api"
	"berth/internal/ipam"
)

// forAccount is the harness for a caller that is limited to one account.
func (h *harness) forAccount(account string, since time.Time) *harness {
	return h.as(&caller{actor: "token of " + account, role: api.RoleAccount, account: account, since: since})
}

// accountsHarness has two accounts: shop with two addresses, one of them mapped to its container shop/web/1, and
// rival with one, mapped to rival/db.
func accountsHarness(t *testing.T) *harness {
	h := start(t, nil)
	h.planned(t)
	h.plays(t, `
		edit {"op": "account.create", "account": "shop", "owners": ["shop/*"], "quota": 3},
			{"op": "account.create", "account": "rival", "owners": ["rival/*"]},
			{"op": "network.create", "name": "net3", "space": "lab",
			"subnets": [{"cidr": "192.0.2.0/24", "pool": true}]}, {"op": "network.modify",
			"network": "net3", "elastic": "on"}, {"op": "reservation.add", "network": "net3",
			"owner": "shop/web/1", "wishes": [{"slot": 0, "address": "192.0.2.11"}]},
			{"op": "reservation.add", "network": "net3", "owner": "rival/db", "wishes": [{"slot": 0,
			"address": "192.0.2.12"}]}, {"op": "reservation.add", "network": "net3",
			"owner": "nobodys", "wishes": [{"slot": 0, "address": "192.0.2.13"}]},
			{"op": "elastic.range.add", "range": "203.0.113.10+6"}, {"op": "elastic.allocate",
			"account": "shop"}, {"op": "elastic.allocate", "account": "shop"},
			{"op": "elastic.allocate", "account": "rival"}, {"op": "elastic.associate",
			"address": "203.0.113.10", "instance": "shop/web/1"}, {"op": "elastic.associate",
			"address": "203.0.113.12", "instance": "rival/db"} -> 200
	`)
	return h
}

func (h *harness) created(t *testing.T, account string) time.Time {
	t.Helper()
	since, err := h.server.accountSince(t.Context(), account)
	must(t, err)
	return since
}

// TestAccountToken: the token of an account sees and changes only what belongs to that account. For anything else
// it learns neither the owner nor whether it exists (CS-5, CS-14).
func TestAccountToken(t *testing.T) {
	h := accountsHarness(t)
	h.forAccount("shop", h.created(t, "shop")).plays(t, `
		GET /v1/elastic -> 200 203.0.113.10 without 203.0.113.12
		GET /v1/elastic -> 200 "instance":"shop/web/1" without rival
		GET /v1/elastic?account=shop -> 200 203.0.113.11 without rival
		GET /v1/elastic?account=rival -> 404 there is no account \"rival\" without 203.0.113.12
		GET /v1/elastic?account=nobody -> 404 there is no account \"nobody\"
		GET /v1/elastic/203.0.113.10 -> 200 shop/web/1
		GET /v1/elastic/203.0.113.12
			-> 404 account shop has no elastic address 203.0.113.12 without rival
		GET /v1/elastic/203.0.113.14
			-> 404 account shop has no elastic address 203.0.113.14 without free
		GET /v1/accounts -> 200 "name":"shop" without rival
		GET /v1/elastic/usage -> 200 "account":"shop" without rival
		GET /v1/edge/status -> 200 "connected":0
		GET /v1/elastic/ranges -> 403 token of shop is only for the elastic addresses of account shop
		GET /v1/networks -> 403
		GET /v1/leases -> 403
		GET /v1/events -> 403
		GET /v1/status -> 403
		POST /v1/tokens {} -> 403
		GET /v1/edge -> 403

		# 203.0.113.13, its own
		edit {"op": "elastic.allocate"} -> 200 "name":"shop"
		edit {"op": "elastic.allocate"} -> 409 QuotaExceeded
		edit {"op": "elastic.release", "address": "203.0.113.13"} -> 200
		# again
		edit {"op": "elastic.release", "address": "203.0.113.13"} -> 200
		POST /v1/edits {"dry_run": true, "edits": [{"op": "elastic.allocate"}]} -> 200 elastic.allocate
		edit {"op": "elastic.allocate", "account": "rival"} -> 403 without 203.0.113
		edit {"op": "elastic.allocate", "account": "nobody"} -> 403 without there is no
		edit {"op": "elastic.allocate", "address": "203.0.113.12"}
			-> 409 203.0.113.12 is not free without rival
		edit {"op": "elastic.associate", "address": "203.0.113.12", "instance": "shop/web/1"}
			-> 404 account shop has no elastic address without rival
		edit {"op": "elastic.disassociate", "address": "203.0.113.12"} -> 404 without rival
		edit {"op": "elastic.release", "address": "203.0.113.12"} -> 404 without rival
		edit {"op": "elastic.associate", "address": "203.0.113.11", "instance": "rival/db"}
			-> 409 "reason":"ElasticOtherAccount" without 192.0.2.12
		# not there, and said in the same words
		edit {"op": "elastic.associate", "address": "203.0.113.11", "instance": "rival/x"}
			-> 409 "reason":"ElasticOtherAccount" without has no
		edit {"op": "elastic.associate", "address": "203.0.113.11", "instance": "nobodys"}
			-> 409 "reason":"ElasticOtherAccount" without default
		edit {"op": "elastic.associate", "address": "203.0.113.11", "instance": "shop/x"}
			-> 404 ElasticGuestUnclear
		edit {"op": "elastic.associate", "address": "203.0.113.10", "instance": "shop/web/1"} -> 200
		edit {"op": "elastic.disassociate", "address": "203.0.113.10"} -> 200 elastic.disassociate
		edit {"op": "account.remove", "account": "shop"}
			-> 403 account.remove is not allowed for account shop
		edit {"op": "account.create", "account": "shop2"} -> 403
		edit {"op": "elastic.range.add", "range": "203.0.113.99"} -> 403
		edit {"op": "network.modify", "network": "net1", "elastic": "off"} -> 403
		edit {"op": "owner.release", "owner": "rival/db"} -> 403
	`)
}

// TestRemovedAccountsToken: the tokens of a removed account are refused, even if another account of the same name
// has been created since (CS-14).
func TestRemovedAccountsToken(t *testing.T) {
	h := accountsHarness(t)
	shop := h.forAccount("shop", h.created(t, "shop"))
	shop.plays(t, `GET /v1/elastic -> 200`)
	h.plays(t, `edit {"op": "account.remove", "account": "shop", "force": true} -> 200`)
	shop.plays(t, `GET /v1/elastic -> 403 the account shop`)
	h.plays(t, `edit {"op": "account.create", "account": "shop"} -> 200`)
	shop.plays(t, `GET /v1/elastic -> 403 the account shop`)
	h.forAccount(ipam.DefaultAccount, time.Time{}).plays(t, `GET /v1/elastic -> 200`) // which always exists
}

// TestAccountTokenCreated: an account token needs an existing account, and takes no role besides.
func TestAccountTokenCreated(t *testing.T) {
	h := accountsHarness(t)
	h.plays(t, `
		POST /v1/tokens {"name":"shop","account":"shop"} -> 200 "role":"account","account":"shop"
		POST /v1/tokens {"name":"default","account":"default","role":"account"} -> 200 "account":"default"
		POST /v1/tokens {"name":"x","account":"nobody"} -> 404 not_found
		POST /v1/tokens {"name":"x","account":"shop","role":"admin"} -> 400 invalid
		POST /v1/tokens {"name":"x","account":"shop","role":"read-only"} -> 400 invalid
		POST /v1/tokens {"name":"x","role":"account"} -> 400 invalid
		GET /v1/tokens -> 200 "account":"shop"
	`)
}
