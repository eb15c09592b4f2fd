//go:build machine

// Package machine shows Berth on a whole machine: a Debian of its own with systemd as its init and a Docker Engine,
// on which a person types `make install` in a fresh clone, or installs the package. It is booted, restarted, robbed of
// its power in the middle of what it does, and what it acknowledged is held against what is there afterwards. Nothing
// of it is seen from outside: it has its own processes, network, cgroup and files, and the engine of the machine that
// the tests run on is never asked anything.
//
// The lines that docs show for such a machine are typed there as they stand (typing_test.go): on one where Berth is a
// service (pages_test.go), on one that is the first host of a cluster (clusterpages_test.go), and on one where it is a
// managed plugin (pluginpages_test.go). lines_test.go of the top says which headings are whose.
//
// A Machine is one such Debian: scripts/machine-tree makes the tree that all share, which stays as it is, and each
// Machine writes into a layer over it, in /var/tmp/berth-m, that goes with it. It runs under systemd-nspawn. A power
// cut is a SIGKILL of its init, with which all its processes end at once, as they are; what the kernel had not yet
// written to the disk is not lost by that, which test/crash has tests of. The tests run as root, one run at a time,
// and clean up before and after.
package machine
