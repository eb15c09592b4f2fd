// Package bench measures Berth as a whole: daemons on their sockets, services on a file, and hosts on etcd. Each
// package's own benchmarks measure the work of that package. docs/dev/benchmarks.md lists all of them, with their
// bounds and the last figures.
//
// Machines differ, so most benchmarks run two sides in turn and report a ratio (turns_test.go): `ratio` is Berth's
// rate divided by that of its yardstick. `time-ratio` is the time of a request with additional work divided by the
// time without.
package bench
