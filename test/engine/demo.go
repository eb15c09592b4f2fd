//go:build engine

package engine

import (
	"context"
	"path/filepath"
	"time"
)

// demoName keeps the tests' demonstration apart from a person's.
const demoName = prefix + "demo"

// demo runs the tree's demonstration: up or down.
func demo(way string) (string, error) {
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	return run(ctx, nil, "env", "BERTH_DEMO_NAME="+demoName, "BERTH_DEMO_BINARY="+filepath.Join(base, "bin", "berth"),
		filepath.Join(root, "scripts/demo"), way)
}
