//go:build engine

// Package engine shows Berth at work on a real Docker Engine: what a person types, what the engine answers, and what
// Berth has on record afterwards. It promises to leave the engine as it found it: whatever it makes is named
// berth-t-..., has its addresses in 10.213.0.0/16 or fd00:213::/32 (save where Berth chooses them), and is removed
// before and after each run, also what an interrupted run left. A second engine, for the swarm, lives in a network
// namespace of its own. It runs as root, and one run at a time. A Cluster, several hosts with an engine and a Berth
// each and an etcd of three members, is in namespaces of its own as a whole; a Fabric joins them, and nothing of it is
// seen from outside.
//
// A scenario is a function of a House: an engine and a running Berth, which is either a daemon on a legacy plugin
// socket (Daemon) or a managed plugin installed from a registry (Plugin). The same scenarios run over both. What they
// assert on is asked of Docker (its API, `ip addr` on a container's own interfaces) and of Berth's command line (`berth
// lease ls`).
//
// Most tests run beside one another: they wait more than they work. So each has a number of its own, from which come
// its names, its addresses, and those of its engines, namespaces and daemons; it removes what is its own and nothing
// else; and it waits for things (ground.Eventually), not for a time. What changes what all stand on says so and runs alone;
// without -short, so does what measures (beside).
//
// Under -short each promise has its test still. Rounds, variants of one thing, and the second generation of Compose are
// for the whole run (sample, eachGeneration). base is in memory then, as without, where there is enough of it.
package engine
