// Package choose decides which address somebody gets, and which subnet a pool that names none. It promises that an
// address which an endpoint has is never given to a second one, that an owner gets what is reserved for it or what
// it had, and that a witness's guess chooses among free addresses only.
//
// A request goes through the files once, in this order. It opens its Target (target.go): the attachment, which may
// be the heir of others (heir.go), and its subnet. One for a certain address is preferred.go, one for a gateway
// gateway.go, any other automatic.go: what repeats an earlier request is told by doubt.go, whose a nameless one is
// by guess.go; then choose.go asks order.go, where the rule is: reserved (or a vacancy that a replica stands in for,
// standin.go), remembered (memory.go), never used, longest released. take.go writes the lease, with its kind.
//
// What is refused is worded in refusal.go, and in exhausted.go where nothing is free. Leases end in release.go.
// Edits and a host's headroom (headroom.go) ask the same rule. Subnets are chosen in carve.go.
package choose
