//go:build engine

package engine

import (
	"fmt"
	"os"
	"strings"
	"syscall"
)

// enough is how many kilobytes of memory must be available to keep base there: engines with their images, and the logs
// of some etcds, take a gigabyte or two.
const enough = 6 << 20

// inMemory puts base into memory, if there is enough. The engine's tests kill only processes, which makes no
// difference between disk and memory. test/machine cuts the power.
func inMemory() error {
	b, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return err
	}
	_, after, _ := strings.Cut(string(b), "MemAvailable:")
	var available uint64
	if _, err := fmt.Sscan(after, &available); err != nil {
		return fmt.Errorf("/proc/meminfo: %w", err)
	}
	if available < enough {
		return nil
	}
	if err := os.MkdirAll(base, 0o700); err != nil {
		return err
	}
	return syscall.Mount(mark+"base", base, "tmpfs", 0, "mode=0755")
}
