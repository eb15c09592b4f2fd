// Package crash shows that Berth keeps what it has acknowledged, whatever ends it: the tests build the daemon, kill it in
// the midst of its work, fail its disk, and read back. What was acknowledged is there and in one holder's hands; what was
// not may be there. Nothing outside of a temporary directory is touched, and only processes that the tests started are
// ended, by their id.
//
// A test starts a daemon (daemon_test.go) over a state directory, lets callers take and release (caller_test.go), who write
// down what they asked for and what they heard in a ledger (ledger_test.go), then ends the daemon, starts it again, and has
// the ledger ask for everything that must be there. `go test ./test/crash -run Soak -rounds 1000` goes on for long.
package crash
