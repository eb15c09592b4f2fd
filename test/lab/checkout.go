package lab

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// Root is the top of the source tree.
func Root() (string, error) {
	out, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("go env GOMOD: %w", err)
	}
	return filepath.Dir(strings.TrimSpace(string(out))), nil
}

// Build builds a static binary of the tree at path, with the given version.
func Build(path, version string) error { return BuildFor(runtime.GOARCH, path, version) }

// BuildFor is Build for an architecture, named as Go names it.
func BuildFor(arch, path, version string) error {
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w -X main.version="+version, "-o", path,
		"berth/cmd/berth")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOARCH="+arch)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build berth: %w\n%s", err, out)
	}
	return nil
}

// Main builds the daemon for the tests of a package, sets its path, and runs the tests.
func Main(m *testing.M, program *string) int {
	dir, err := os.MkdirTemp("", "berth-lab")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	*program = filepath.Join(dir, "berth")
	// `go run` caches the linked program; `go build` does not.
	if out, err := exec.Command("go", "run", "-exec", "cp", "berth/cmd/berth", *program).CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "building the daemon: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// Tool is the path of a program for the tests: the one that scripts/needs unpacked, or the system's.
func Tool(name string) (string, error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	unpacked := filepath.Join(root, "build/tools", name)
	if _, err := os.Stat(unpacked); err == nil {
		return unpacked, nil
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("%w: scripts/needs installs it", err)
	}
	return path, nil
}
