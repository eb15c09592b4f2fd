// Package ground is what the suites on a machine stand on: those on the engine (test/engine), those of elastic
// addresses (test/edge), and those on a whole Debian (test/machine). It promises that one run of a suite does not meet
// another, that a thing is waited for as long as a busy machine may take and no longer than it needs, and that what is
// taken off is taken off whole.
//
// A suite begins with Exclusive (lock.go), runs its commands by Output (command.go), waits for what they lead to with
// Eventually (wait.go), asks by a Probe who answers for an address (probe.go), and leaves nothing mounted
// (UnmountUnder, mount.go).
package ground
