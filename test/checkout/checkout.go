// Package checkout finds the source tree and builds Berth from it, for the tests outside of the packages.
package checkout

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// Root is the top of the source tree.
func Root() (string, error) {
	out, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("go env GOMOD: %w", err)
	}
	return filepath.Dir(strings.TrimSpace(string(out))), nil
}

// Build makes a static binary of the tree at path, with a version of its own.
func Build(path, version string) error { return BuildFor(runtime.GOARCH, path, version) }

// BuildFor is Build for an architecture, as Go calls it.
func BuildFor(arch, path, version string) error {
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w -X main.version="+version, "-o", path,
		"berth/cmd/berth")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOARCH="+arch)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build berth: %w\n%s", err, out)
	}
	return nil
}
