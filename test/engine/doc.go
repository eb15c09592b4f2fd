//go:build engine

// Package engine tests Berth on a real Docker Engine: the commands of a person, the engine's answers, and Berth's
// records. It leaves the engine as it found it. Its objects are named berth-t-..., and their addresses are in
// 10.213.0.0/16 or fd00:213::/32, unless Berth chooses them. They are removed before and after each run. The tests run
// as root, one run at a time.
//
// A second engine, for the swarm, has its own network namespace. A Cluster has several hosts, each with an engine and a
// Berth, and an etcd, all in namespaces. A Fabric is the network between them. Nothing outside sees it.
//
// A scenario is a function of a Harness: an engine with a Berth. That Berth is a daemon on a legacy plugin socket
// (Daemon) or a managed plugin (Plugin). The same scenarios run on both. They check Docker (its API, `ip addr` in
// containers) and Berth's command line (`berth lease ls`).
//
// Most tests run in parallel, because they mostly wait. Each test has a number that determines its names, addresses,
// engines, namespaces and daemons. A test removes only its own. It waits for events (lab.Eventually), never for a
// time. Tests that change shared state run alone. Measurements run alone, too, unless -short is set (beside).
//
// With -short each promise still has its test. Rounds, variants and the second generation of Compose belong to the full
// run (sample, eachGeneration). If there is enough memory, the tests' directory (base) is in memory.
package engine
