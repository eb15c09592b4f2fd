package ground

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
)

// UnmountUnder takes off what is mounted below a directory, the deepest first.
func UnmountUnder(dir string) error {
	b, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return err
	}
	var points []string
	for line := range strings.Lines(string(b)) {
		if fields := strings.Fields(line); len(fields) > 1 && strings.HasPrefix(fields[1], dir+"/") {
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
