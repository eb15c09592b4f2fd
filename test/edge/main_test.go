//go:build edge

package edge_test

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// inside says that the test process has its namespaces, and names the directory of files that it shares with
// parallel tests (beside_test.go). child makes the process a separate edge (frozen_test.go).
const (
	inside = "BERTH_EDGE_INSIDE"
	child  = "BERTH_EDGE_CHILD"
)

// TestMain runs each test in its own network namespace, with a /run in which it can name further namespaces.
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

// enter is the command that runs this program in its own namespaces, with words added to its arguments.
func enter(shared string, words ...string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe", append(os.Args[1:len(os.Args):len(os.Args)], words...)...)
	cmd.Env = append(os.Environ(), inside+"="+shared)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Unshareflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS,
		Pdeathsig:    syscall.SIGKILL,
	}
	return cmd
}
