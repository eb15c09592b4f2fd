// Package allocator answers Docker's four calls: a pool requested and released, an address requested and released. It
// promises that an address which an endpoint has is never given to a second one, that an owner gets what is reserved for
// it or what it had, and that a release succeeds whatever it finds.
//
// RequestPool (pool.go) attaches to a subnet: one that is planned (attachplan.go), one that is named and off Docker's own
// (dockersubnet.go), or one that is carved (carve.go). ReleasePool (poolrelease.go) ends the attachment and its leases.
//
// RequestAddress (address.go) opens a Target (target.go): the attachment, which may be the heir of others (heir.go), and
// its subnet. A certain address is taken in preferred.go, a gateway in gateway.go, any other in automatic.go. There
// doubt.go tells a repetition, guess.go finds the container of a request that sends no name, and choose.go asks
// order.go, where the rule is: reserved (or a replica's vacancy, standin.go), remembered (memory.go), never used,
// longest released. take.go writes the lease. Leases end in release.go; owners whose time is over end in ending.go.
//
// Refusals are worded in refusal.go, in lanrefusal.go for DHCP servers, and in exhausted.go where nothing is free. What
// the witness saw comes in by witness.go and stray.go. Edits and a host's headroom (headroom.go) ask the same rule.
package allocator
