//go:build engine

package engine

import (
	"path/filepath"
	"time"

	"berth/test/lab"
)

// demoName keeps the tests' demonstration apart from a user's.
const demoName = mark + "demo"

// demo runs the repository's demonstration: up or down.
func demo(way string) (string, error) {
	root, err := lab.Root()
	if err != nil {
		return "", err
	}
	return lab.Run(2*time.Minute, nil, "env", "BERTH_DEMO_NAME="+demoName,
		"BERTH_DEMO_BINARY="+filepath.Join(base, "bin", "berth"),
		filepath.Join(root, "scripts/demo"), way)
}
