//go:build edge

package edge_test

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// inside tells the test process that it has its namespaces, and where it shares files with those beside it
// (beside_test.go); child makes it an edge of its own (frozen_test.go).
const (
	inside = "BERTH_EDGE_INSIDE"
	child  = "BERTH_EDGE_CHILD"
)

// TestMain runs each test in a network namespace of its own, with a /run where other ones can be named.
func TestMain(m *testing.M) {
	switch {
	case os.Getenv(child) != "":
		os.Exit(beChild())
	case os.Getenv(inside) == "":
		os.Exit(runBeside())
	}
	err := syscall.Mount("tmpfs", "/run", "tmpfs", 0, "")
	if err == nil {
		err = os.MkdirAll("/run/netns", 0o755)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "these tests need root:", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// enter is this program in namespaces of its own. Words are added to its own ones.
func enter(shared string, words ...string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe", append(os.Args[1:len(os.Args):len(os.Args)], words...)...)
	cmd.Env = append(os.Environ(), inside+"="+shared)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Unshareflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS,
		Pdeathsig:    syscall.SIGKILL,
	}
	return cmd
}
