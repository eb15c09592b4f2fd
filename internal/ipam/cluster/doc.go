// Package cluster combines a host's own store and the shared store, and keeps the host working while the shared one is
// unreachable. No address is leased that another host may have leased meanwhile. Every release is delivered eventually.
// An etcd that went back to an earlier state is detected and can be repaired.
//
// A Service (service.go) sends requests and plans to one of the two stores. edits.go does so for edits, by their
// subject (place.go). Reads go directly to the two ledgers (ledger.Homes), which index the records of the two stores.
// Shared (shared.go) is the shared store: sharedcall.go answers requests, even during an outage, and sharedrun.go keeps
// the connection.
//
// During an outage the host's own store holds the waiting releases (outbox.go) and the headroom: addresses that the
// host claimed in advance. headroom.go defines the headroom, headroomkeep.go claims it, and headroomuse.go leases from
// it. recall.go remembers data for a repair. mend.go runs the repair: mendplan.go restores the plan, mendown.go the
// host's leases, and mendseen.go adds the addresses of the engine's containers.
package cluster
