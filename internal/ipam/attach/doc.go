// Package attach answers what the Docker Engine and its witness ask: pools and addresses requested and released, names
// and ends of leases as they were seen. It promises that a release succeeds whatever it finds, and that a request is
// answered after its commit.
//
// Desk.RequestPool (pool.go) makes an attachment to a subnet: one that is planned (attachplan.go), one that is named
// and off Docker's own (dockersubnet.go), or a carved one. Desk.RequestAddress (address.go) opens a Target of the room
// choose and takes what it decides. What the witness saw comes in by witness.go and stray.go; run.go is the
// housekeeping.
package attach
