// Package service joins the rooms over one ledger into the Service that the driver, the API, the hooks and the witness
// ask. It promises that a Service which Open has returned is ready: all records are read, what a crash cut off is
// finished, and the host takes part.
//
// Open (service.go) builds the ledger, loads it and settles it; rebuild.go makes a state that forgets anew out of what
// runs. run.go is the housekeeping. import.go adds a plan as what compare finds and edit makes, at a pace that lets
// others in (importpace.go), once all of it was tried in a draft (importdraft.go).
package service
