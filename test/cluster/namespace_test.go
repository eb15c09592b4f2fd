package cluster

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"berth/test/lab"
)

// inside marks the process that runs the tests.
const inside = "BERTH_CLUSTER_INSIDE"

// base holds all files of the tests, on a tmpfs that ends with them, as the tests are not about the disk. The path
// is short because of the sockets in it.
const base = "/run/b"

// binary is the daemon. TestMain builds it.
const binary = base + "/berth"

// TestMain runs the tests in their own network, mount and process namespaces. These end with everything in them,
// and the machine does not change.
func TestMain(m *testing.M) {
	if os.Getenv(inside) == "" {
		os.Exit(enter())
	}
	if err := furnish(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// enter runs this program again in the namespaces and returns its exit code. A non-root user becomes root of a
// user namespace, if the machine allows that.
func enter() int {
	runtime.LockOSThread() // Pdeathsig belongs to the thread
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Env = append(os.Environ(), inside+"=yes")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL,
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWNET | syscall.CLONE_NEWPID}
	if os.Getuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	}
	if err := cmd.Run(); cmd.ProcessState == nil {
		fmt.Fprintf(os.Stderr, "the tests cannot have namespaces of their own: %v; run them as root\n", err)
		return 1
	}
	return cmd.ProcessState.ExitCode()
}

// furnish prepares the namespaces and builds the daemon.
func furnish() error {
	for _, mount := range []struct {
		source, target, kind string
		flags                uintptr
	}{
		{"none", "/", "", syscall.MS_REC | syscall.MS_PRIVATE},
		{"proc", "/proc", "proc", 0},
		{"tmpfs", "/run", "tmpfs", 0}, // `ip netns` keeps its names here
	} {
		if err := syscall.Mount(mount.source, mount.target, mount.kind, mount.flags, ""); err != nil {
			return fmt.Errorf("mounting %s: %w", mount.target, err)
		}
	}
	if err := os.MkdirAll(base, 0o700); err != nil {
		return err
	}
	if out, err := exec.Command("go", "build", "-o", binary, "berth/cmd/berth").CombinedOutput(); err != nil {
		return fmt.Errorf("building the daemon: %w\n%s", err, out)
	}
	return makeBridge()
}

// tempDir is a directory under base.
func tempDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp(base, "")
	lab.Must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Clean(dir)
}
