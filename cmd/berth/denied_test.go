package main

import (
	"bytes"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// TestPermissionDenied: a user who may not open the socket learns which socket it is, and what to do.
func TestPermissionDenied(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "admin.sock")
	l, err := net.Listen("unix", socket)
	fine(t, err)
	defer l.Close()
	fine(t, os.Chmod(socket, 0))
	// This program acts as berth by that name (TestMain). It runs as the user nobody, who cannot open its path.
	berth := exec.Cmd{Path: "/proc/self/exe", Args: []string{"berth", "network", "ls"}, Dir: "/",
		Env: []string{"BERTH_ADMIN_SOCKET=" + socket}}
	if os.Geteuid() == 0 { // root may open all
		const nobody = 65534
		berth.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	var out, failed bytes.Buffer
	berth.Stdout, berth.Stderr = &out, &failed
	var ended *exec.ExitError
	if err := berth.Run(); !errors.As(err, &ended) || ended.ExitCode() != 1 {
		t.Errorf("it ended with %v", err)
	}
	want := "berth: permission denied on the socket " + socket +
		": run the command as root, or join the group berth and log in again\n"
	if got := failed.String(); got != want || out.Len() > 0 {
		t.Errorf("it said %q%q, want %q", out.String(), got, want)
	}
}
