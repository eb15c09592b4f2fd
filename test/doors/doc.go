// Package doors tests that a daemon stays small and serves the engine under any load on any of its listeners. Attacks
// are silent and slow connections by the thousand, bodies of 1 GB, deeply nested JSON, unread answers, and endless
// answers of webhook receivers. The tests use only the loopback, unix sockets and a temporary directory, and end only
// their own processes, by id.
//
// A test starts a daemon with all listeners (daemon_test.go) and an engine that takes and releases addresses throughout
// (engine_test.go). Then it runs an attack (attack_test.go, the table in doors_test.go), a hostile receiver
// (receiver_test.go), or a large import (import_test.go), and limits the daemon's memory. Each test logs its figures.
// `go test ./test/doors -v` runs all attacks on all listeners for some minutes; -short runs a few.
package doors
