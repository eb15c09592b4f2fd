//go:build machine

package machine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"berth/test/lab"
)

const cgroupRoot = "/sys/fs/cgroup"

// cgroups are the directories of a machine's own group: one for each mounted hierarchy, or a single one under
// cgroup v2. They contain everything that a machine starts, its containers included, and nothing else.
func cgroups(name string) []string {
	if _, err := os.Stat(filepath.Join(cgroupRoot, "cgroup.procs")); err == nil {
		return []string{filepath.Join(cgroupRoot, name)}
	}
	var all []string
	procs, _ := filepath.Glob(filepath.Join(cgroupRoot, "*", "cgroup.procs"))
	for _, file := range procs {
		dir := filepath.Dir(file)
		if info, err := os.Lstat(dir); err == nil && info.IsDir() { // links to cpu,cpuacct exist too
			all = append(all, filepath.Join(dir, name))
		}
	}
	return all
}

// makeCgroups makes a machine's group.
func makeCgroups(name string) error {
	dirs := cgroups(name)
	if len(dirs) == 0 {
		return fmt.Errorf("no cgroups are mounted in %s", cgroupRoot)
	}
	for _, dir := range dirs {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		// In this hierarchy a new group accepts no process until its processors and memory are set.
		for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
			above, err := os.ReadFile(filepath.Join(filepath.Dir(dir), file))
			if err != nil {
				continue // another hierarchy, or cgroup v2
			}
			if err := os.WriteFile(filepath.Join(dir, file), above, 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}

// endCgroups kills everything that still runs in a machine's group, even from an interrupted run, and removes the
// group.
func endCgroups(name string) error {
	return lab.Eventually(20*time.Second, func() error {
		var errs []error
		for _, dir := range cgroups(name) {
			pids, groups := within(dir)
			for _, pid := range pids {
				_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended
			}
			for i := len(groups) - 1; i >= 0; i-- {
				if err := syscall.Rmdir(groups[i]); err != nil && !errors.Is(err, fs.ErrNotExist) {
					errs = append(errs, fmt.Errorf("%s: %w", groups[i], err))
				}
			}
		}
		return errors.Join(errs...)
	})
}

// within are the processes of a group and its subgroups, and these groups, parents first.
func within(dir string) (pids []int, groups []string) {
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // what has gone meanwhile is no concern
		}
		if d.IsDir() {
			groups = append(groups, path)
			return nil
		}
		if d.Name() != "cgroup.procs" {
			return nil
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return nil
		}
		for field := range strings.FieldsSeq(string(b)) {
			if pid, err := strconv.Atoi(field); err == nil && pid > 0 {
				pids = append(pids, pid)
			}
		}
		return nil
	})
	return pids, groups
}
