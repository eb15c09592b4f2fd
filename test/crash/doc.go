// Package crash shows that Berth keeps what it has acknowledged, whatever ends it: the tests build the daemon, kill it
// in the midst of its work, fail its disk, and read back. What was acknowledged is there and in one holder's hands;
// what was not may be there. Nothing outside of a temporary directory is touched, and only processes that the tests
// started are ended, by their id.
//
// A test starts a daemon (daemon_test.go) over a state directory, lets callers take and release (caller_test.go), who
// write down what they asked for and what they heard in a ledger (ledger_test.go), then ends the daemon, starts it
// again, and has the ledger ask for everything that must be there. Or it puts an older state in the place of its own,
// by hand, and the engine's word, which is that of the ledger, puts it right (rollback_test.go); or two hosts work on
// an etcd that is put back to a snapshot, or to nothing, and `berth state mend` on both puts it right (mend_test.go).
// `go test ./test/crash -run Soak -rounds 1000` goes on for long.
package crash
