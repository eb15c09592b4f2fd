// Package cluster shows that hosts that share a store give no address twice, whatever becomes of the store's members, of a
// daemon or of a clock. Three members of etcd and three daemons of Berth run, each in a network namespace of its own on
// one bridge; callers on each host take and release addresses of one small pool over the plugin's protocol while a fault is put in
// force, proven to be in force, and ended.
//
// All that was asked and answered is a history (history_test.go). It is held against a model (model_test.go, linearizability
// address by address), against a ledger of what was acknowledged (ledger_test.go, which knows nothing of the model), and
// against the records, read back when all is over. The tests run in namespaces that end with them (namespace_test.go).
package cluster
