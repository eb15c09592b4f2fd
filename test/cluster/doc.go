// Package cluster shows that hosts that share a store give no address twice, whatever becomes of the store's members,
// of a daemon or of a clock. Three members of etcd and three daemons of Berth run, each in a network namespace of its
// own on one bridge; callers on each host take and release addresses of one small pool over the plugin's protocol while
// a fault is put in force, proven to be in force, and ended. Where etcd went back to a snapshot, or to nothing
// (back_test.go), it is the mending of all hosts that ends it, and nothing is given until then.
//
// All that was asked and answered is a history (history_test.go). It is held against a model (model_test.go,
// linearizability address by address), against a ledger of what was acknowledged (ledger_test.go, which knows nothing
// of the model), and against the records, read back when all is over. What an unanswered request may have taken, and
// how long, is in stray_test.go. No bound of a history is one on time: a busy machine makes it slower. The tests run in
// namespaces that end with them (namespace_test.go).
package cluster
