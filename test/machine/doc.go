//go:build machine

// Package machine tests Berth on a whole machine: its own Debian with systemd and a Docker Engine. A test installs
// Berth as a person would: with `make install` in a fresh clone, or from the package. The machine is booted, restarted
// and cut off from power, and acknowledged data is checked afterwards. It has its own processes, network, cgroup and
// files, and never uses the engine of the host.
//
// The tests type the lines of the docs exactly (typing_test.go). There are machines for the service (pages_test.go),
// the first host of a cluster (clusterpages_test.go), and the managed plugin (pluginpages_test.go). lines_test.go at
// the top of the repository maps the headings of pages to tests.
//
// scripts/machine-tree makes one read-only tree that all machines share. Each Machine writes to a layer over it in
// /var/tmp/berth-m, and runs under systemd-nspawn. A power cut is a SIGKILL of its init, which ends all its processes
// at once. Data that the kernel had not yet written survives that; test/crash tests its loss. The tests run as root,
// one run at a time, and clean up before and after.
package machine
