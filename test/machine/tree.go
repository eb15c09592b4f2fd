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

// base holds everything that the tests put on the disk, but for the tree that they share.
const base = "/var/tmp/berth-m"

// files are what a machine has besides what Debian's packages put there.
var files = map[string]string{
	// Without an id its first boot would be one at which systemd asks and decides things.
	"etc/machine-id": "be57be57be57be57be57be57be57be57\n",
	"etc/hostname":   "harbour\n",
	// The names that the pages use. They are there before any daemon looks one up: one that is written in Go remembers
	// this file for five seconds.
	"etc/hosts": "127.0.0.1 localhost registry.example hooks.example\n10.0.0.5 berth.example\n",
	// Under cgroup v1 systemd-nspawn gives the controllers read-only, so that no container would start. These are the
	// machine's own group of each, and no more. Under v2 there is nothing to do.
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

// mountTree lays a machine's own layer over the tree that all share: dir/root is the machine's root. Where the kernel
// has no such layers, as on a disk that is one itself, it is a copy.
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
	wants := filepath.Join(root, "etc/systemd/system/sysinit.target.wants")
	if err := os.MkdirAll(wants, 0o755); err != nil {
		return err
	}
	return os.Symlink("../cgroups.service", filepath.Join(wants, "cgroups.service"))
}

// clone puts a fresh clone of the source tree's last commit into a directory.
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
