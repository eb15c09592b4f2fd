package lab

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
)

// Unmount unmounts everything on a directory and below it, deepest first.
func Unmount(dir string) error {
	return unmount(func(point string) bool { return point == dir || strings.HasPrefix(point, dir+"/") })
}

// UnmountUnder unmounts everything below a directory, deepest first.
func UnmountUnder(dir string) error {
	return unmount(func(point string) bool { return strings.HasPrefix(point, dir+"/") })
}

func unmount(which func(point string) bool) error {
	b, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return err
	}
	var points []string
	for line := range strings.Lines(string(b)) {
		if fields := strings.Fields(line); len(fields) > 1 && which(fields[1]) {
			points = append(points, fields[1])
		}
	}
	slices.Reverse(points)
	for _, point := range points {
		if unmountErr := syscall.Unmount(point, syscall.MNT_DETACH); unmountErr != nil {
			err = errors.Join(err, fmt.Errorf("unmount %s: %w", point, unmountErr))
		}
	}
	return err
}
