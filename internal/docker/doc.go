// Package docker is the witness: it reads from the Docker Engine of a host which container has which address, holds
// that against the records, and puts right what is sure. It promises that it only ever reads from the engine, that a
// request of the engine's waits for it a quarter of a second at most, and that a repair ends nothing which a
// partition, a stopped engine or a lagging answer only hides: what is not known to the engine must have been so for a
// time and in several checks, without a break.
//
// An Engine is asked for a view (view.go); compare (compare.go) holds the view against the records, once more with a
// view that was taken after them, and makes findings; the Witness (witness.go) remembers since when each is there
// (patience.go), and repairs those that are ripe (repair.go). A finding is judged in the file of what it is about:
// leases.go, pools.go, reservations.go, strays.go, empty.go; records.go is what the records say, finding.go the order.
//
// Between checks the witness follows the engine's events (follow.go, run.go), which the Roster keeps as who is there at
// this moment (roster.go; guess.go and replicas.go answer requests out of it). Which container asks without a name is
// found out from the engine's locks (locks.go). A look (look.go) is a view without
// findings: it gives leases the names of their containers, and notes which endpoints it saw (sighting.go). What takes
// containers off networks and puts them back is the room pin above.
package docker
