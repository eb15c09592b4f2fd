//go:build edge

package edge_test

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// inside tells the test process that it has its namespaces; child makes it an edge of its own (frozen_test.go).
const (
	inside = "BERTH_EDGE_INSIDE"
	child  = "BERTH_EDGE_CHILD"
)

// TestMain runs the tests in a network namespace, with a /run where other ones can be named.
func TestMain(m *testing.M) {
	switch {
	case os.Getenv(child) != "":
		os.Exit(beChild())
	case os.Getenv(inside) == "":
		os.Exit(enter())
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

func enter() int {
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Env = append(os.Environ(), inside+"=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Unshareflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS,
		Pdeathsig:    syscall.SIGKILL,
	}
	err := cmd.Run()
	if ended, ok := err.(*exec.ExitError); ok {
		return ended.ExitCode()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "these tests need root:", err)
		return 1
	}
	return 0
}
