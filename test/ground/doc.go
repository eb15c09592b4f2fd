// Package ground is the common base of the suites that need a machine: test/engine, test/edge and test/machine. Two
// runs of a suite never overlap. A wait ends as soon as its condition holds, and is long enough for a busy machine.
// Mounts are removed completely.
//
// A suite begins with Exclusive (lock.go) and runs commands with Output (command.go). The function Eventually waits for
// their effects (wait.go), and a Probe shows who answers for an address (probe.go). UnmountUnder removes all mounts
// (mount.go).
package ground
