// Package allocator answers Docker's four calls, which request and release pools and addresses. An address never has
// two endpoints. An owner gets its reserved address, or else the one that it had. A release always succeeds.
//
// RequestPool (pool.go) attaches to a subnet: a planned one (attachplan.go), one that Docker names (dockersubnet.go),
// or one that it carves (carve.go). ReleasePool (poolrelease.go) ends the attachment and its leases.
//
// RequestAddress (address.go) opens a Target (target.go): the attachment, which may take over the leases of earlier
// ones after a swarm manager restarts (heir.go), and its subnet. preferred.go takes a requested address, gateway.go a
// gateway, and automatic.go any other. For automatic.go, doubt.go detects a repeated request, and guess.go finds the
// container of a request without a name. choose.go applies the order of order.go: reserved (for the owner, or for a
// removed replica that the container stands in for, standin.go), remembered (memory.go), never used, released longest
// ago. take.go writes the lease, release.go ends it, and ending.go ends reservations whose time is over.
//
// refusal.go words the errors; lanrefusal.go does so for DHCP servers, and exhausted.go for full pools. witness.go and
// stray.go receive the witness's observations. Edits, and addresses claimed in advance (headroom.go), are chosen in the
// order of order.go, too.
package allocator
