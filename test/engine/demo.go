//go:build engine

package engine

import (
	"context"
	"path/filepath"
	"time"

	"berth/test/ground"

	"berth/test/checkout"
)

// demoName keeps the tests' demonstration apart from a person's.
const demoName = mark + "demo"

// demo runs the tree's demonstration: up or down.
func demo(way string) (string, error) {
	root, err := checkout.Root()
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(context.Background(), ground.Patient(2*time.Minute))
	defer cancel()
	return run(ctx, nil, "env", "BERTH_DEMO_NAME="+demoName, "BERTH_DEMO_BINARY="+filepath.Join(base, "bin", "berth"),
		filepath.Join(root, "scripts/demo"), way)
}
