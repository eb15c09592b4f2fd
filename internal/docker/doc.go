// Package docker is the witness: it reads the engine's containers and addresses, compares them with the records, and
// repairs certain differences. It only reads from the engine. A request waits for the witness at most a quarter of a
// second. The witness ends a lease only if several checks in a row, over some time, found no endpoint. So a partition,
// a stopped engine or a late answer ends nothing.
//
// An Engine returns a view (view.go). compare (compare.go) compares it with the records. A difference that a second
// view also shows becomes a finding. The Witness (witness.go) remembers how long each finding lasts (patience.go) and
// repairs those that last long enough (repair.go). Each file judges the findings of one subject: leases.go, pools.go,
// reservations.go, strays.go, empty.go. records.go reads the records, and finding.go sorts the findings.
//
// Between checks the witness follows the engine's events (follow.go, run.go) into the Roster of current containers
// (roster.go), from which guess.go and replicas.go answer requests. If a request has no name, the witness asks the
// engine about each candidate. The engine does not answer about the container that it is starting, because it holds
// that container's lock (locks.go). A look (look.go) is a view without findings: it names the containers of leases and
// notes the endpoints seen (sighting.go). internal/docker/pin makes containers keep their addresses, and reconnects
// them for that.
package docker
