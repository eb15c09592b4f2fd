// Package cluster tests that hosts with a shared store never lease an address twice, whatever fails: members of etcd, a
// daemon, or a clock. Three members of etcd and three daemons run in network namespaces on one bridge. Callers on each
// host take and release addresses of a small pool over the plugin protocol. Meanwhile a fault is started, verified and
// ended. If etcd went back in time (back_test.go), only the repair by all hosts ends the fault, and until then nothing
// is leased.
//
// All requests and answers form a history (history_test.go). It is checked against a linearizable model per address
// (model_test.go), an independent ledger of acknowledged answers (ledger_test.go), and the records at the end.
// stray_test.go limits what an unanswered request may hold, and for how long. No limit of a history is a time, so a
// busy machine only makes it slower. The namespaces end with the tests (namespace_test.go).
package cluster
