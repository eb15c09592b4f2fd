//go:build machine

package machine

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"berth/test/lab"
)

// base holds all files of the tests on the disk, except the shared tree.
const base = "/var/tmp/berth-m"

// files are a machine's files beyond those of Debian's packages.
var files = map[string]string{
	// Without an id systemd would treat the first boot as a first boot, and ask and decide things.
	"etc/machine-id": "be57be57be57be57be57be57be57be57\n",
	"etc/hostname":   "harbour\n",
	// The names in the pages. They must be there before any daemon looks a name up: a Go daemon caches this file for
	// five seconds.
	"etc/hosts": "127.0.0.1 localhost registry.example hooks.example\n10.0.0.5 berth.example\n",
	// Under cgroup v1 systemd-nspawn mounts the controllers read-only, so no container would start. This mounts only
	// the machine's own group of each. Under v2 there is nothing to do.
	"etc/systemd/system/cgroups.service": `[Unit]
DefaultDependencies=no
Before=sysinit.target
ConditionPathExists=!/sys/fs/cgroup/cgroup.procs
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/sh -c 'for d in $(cut -f 1 /proc/cgroups); do [ ! -d /sys/fs/cgroup/$d ] || { umount -l /sys/fs/cgroup/$d; mount -t cgroup -o $d cgroup /sys/fs/cgroup/$d; } || exit 1; done'
[Install]
WantedBy=sysinit.target
`,
}

// mountTree mounts a machine's own layer over the shared tree: dir/root is the machine's root. Where the kernel
// cannot do that, for example on an overlay, it copies the tree.
func mountTree(shared, dir string) error {
	root, upper, work := filepath.Join(dir, "root"), filepath.Join(dir, "upper"), filepath.Join(dir, "work")
	for _, d := range []string{root, upper, work, filepath.Join(dir, "docker")} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return err
		}
	}
	layers := fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s", shared, upper, work)
	if err := syscall.Mount("berth-m", root, "overlay", 0, layers); err != nil {
		if out, err := exec.Command("cp", "-a", shared+"/.", root).CombinedOutput(); err != nil {
			return fmt.Errorf("copy %s: %w: %s", shared, err, out)
		}
	}
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return err
		}
	}
	if *otherEngine != "" {
		if err := installEngine(*otherEngine, root); err != nil {
			return err
		}
	}
	wants := filepath.Join(root, "etc/systemd/system/sysinit.target.wants")
	if err := os.MkdirAll(wants, 0o755); err != nil {
		return err
	}
	return os.Symlink("../cgroups.service", filepath.Join(wants, "cgroups.service"))
}

// installEngine replaces Debian's Docker Engine by one that scripts/dockerd built. Debian's docker.service and command
// stay.
func installEngine(built, root string) error {
	programs, err := filepath.Glob(filepath.Join(built, "bin", "*"))
	if err != nil {
		return err
	}
	if len(programs) == 0 {
		return fmt.Errorf("%s has no engine: scripts/dockerd builds it", built)
	}
	// its dockerd starts ../dockerd with flags
	args := append([]string{"--target-directory", filepath.Join(root, "usr/sbin")}, programs...)
	if err := exec.Command("cp", args...).Run(); err != nil {
		return err
	}
	return exec.Command("cp", filepath.Join(built, "dockerd"), filepath.Join(root, "usr/dockerd")).Run()
}

// clone clones the last commit of the source tree into a directory.
func clone(to string) error {
	root, err := lab.Root()
	if err != nil {
		return err
	}
	if out, err := exec.Command("git", "clone", "--quiet", "--no-hardlinks", root, to).CombinedOutput(); err != nil {
		return fmt.Errorf("git clone: %w: %s", err, out)
	}
	return nil
}
