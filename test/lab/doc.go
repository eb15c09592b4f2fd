// Package lab is the common base of the suites in this folder and of tests that run a daemon. Two runs of a suite never
// overlap. A wait ends as soon as its condition holds, and is long enough for a busy machine. Mounts are removed
// completely.
//
// A suite on the machine begins with Exclusive (lock.go). The tree is found and built by Root and Build (checkout.go),
// or by Main for the tests of a daemon. A Process runs beside a test (process.go), and commands are run with Output
// (command.go). Await and Eventually wait for their effects (wait.go), and a Probe shows who answers for an address
// (probe.go). Call asks the driver as an engine does (driver.go). Page and its kin read what the documentation shows
// (page.go). Free and Listening give addresses and sockets (ports.go, sockets.go). UnmountUnder removes all mounts
// (mount.go).
package lab
