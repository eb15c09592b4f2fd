// Package choose decides which address somebody gets, and which subnet a pool that names none. It promises that an
// address which an endpoint has is never given to a second one, that an owner gets what is reserved for it or what it
// had, and that a witness's guess chooses among free addresses only.
//
// A request opens its Target (address.go): the attachment and its subnet. What repeats an earlier request is told by
// doubt.go; whose a nameless one is by guess.go; then choose.go asks order.go, where the rule is: reserved, remembered,
// never used, longest released. The lease is then written, with its kind, by address.go, which also ends leases and
// refuses. Edits and a host's headroom ask the same rule. Gateways are gateway.go, subnets
// carve.go, attachments that come back heir.go, replicas' vacancies standin.go, and what a host claims ahead
// headroom.go.
package choose
