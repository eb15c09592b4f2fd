// Package allocator answers Docker's four calls, which request and release pools and addresses. An address never has
// two endpoints. An owner gets its reserved address, or else the one that it had. A release always succeeds.
//
// RequestPool (pool.go) attaches to a subnet (subnet.go): a planned one, one that Docker names, or one that it carves.
// ReleasePool (poolrelease.go) ends the attachment and its leases.
//
// RequestAddress (address.go) opens a Target (target.go): the attachment, which may take over the leases of earlier
// ones after a swarm manager restarts (replay.go), and its subnet. It takes a requested address, a gateway
// (gateway.go), or any other. For any other, doubt.go detects a repeated request, and guess.go finds the container of a
// request without a name. choose.go applies the order: reserved (for the owner, or for a removed replica that the
// container stands in for, standin.go), remembered, never used, released longest ago. Where the DHCP server of a LAN
// chooses, dhcp.go asks it (lan.go). release.go ends leases, and reservations whose time is over.
//
// waiting.go keeps releases that the host's own store cannot write. refusal.go words the errors. witness.go receives
// the witness's observations. Edits, and addresses claimed in advance (headroom.go), are chosen in the order of
// choose.go, too.
package allocator
