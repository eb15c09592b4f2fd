// Package crash tests that Berth keeps everything it has acknowledged, however it ends. The tests build the daemon,
// kill it while it is working, make its disk fail, and read its records back. Each acknowledged address must still
// belong to the holder that got it; unacknowledged ones may be missing. The tests touch only a temporary directory and
// end only their own processes, by id.
//
// A test starts a daemon (daemon_test.go) and callers that take and release (caller_test.go) and record everything in a
// ledger (ledger_test.go). Then it ends and restarts the daemon, and the ledger checks that nothing is lost. Other
// tests put back an older state, which is repaired from the engine's view. In these tests the ledger supplies that view
// (rollback_test.go). With two hosts, etcd itself goes back, and `berth state mend` on both repairs it (mend_test.go).
// `go test ./test/crash -run Soak -rounds 1000` runs for a long time.
package crash
