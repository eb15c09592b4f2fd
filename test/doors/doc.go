// Package doors shows that a daemon stays small, and the engine is served, whatever comes through any of its doors, from
// whomever, and however much of it: silent and slow connections by the thousand, bodies of 1 GB, JSON that goes down and
// down, answers that nobody reads, receivers of webhooks that answer without end. Only the loopback, unix sockets and a
// temporary directory are touched, and only processes that the tests started are ended, by their id.
//
// A test starts a daemon with all doors open (daemon_test.go), and an engine that takes addresses and gives them back all
// the while (engine_test.go). Then it lets an attack loose on a door (attack_test.go, the table in doors_test.go), or has
// a receiver answer (receiver_test.go), or imports a large plan (import_test.go), and holds the memory of the daemon's
// process against a bound. Each logs its figures. `go test ./test/doors -v` tries all attacks on all doors, which takes
// some minutes; under -short it is the crowd at the engine's door, and a few of the others.
package doors
