package cli

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"berth/internal/golden"
)

// TestGoldenExitCodes: each outcome of a command has the exit code of 1.0.
func TestGoldenExitCodes(t *testing.T) {
	var all []string
	for _, c := range []struct {
		what       string
		err        error
		understood bool
	}{
		{"done", nil, true},
		{"refused or failed", errors.New("no"), true},
		{"a difference", fmt.Errorf("more: %w", Difference("two findings")), true},
		{"wrong usage", errors.New("unknown flag"), false},
		{"interrupted", ErrInterrupted, true},
		{"interrupted by a signal", context.Canceled, true},
	} {
		all = append(all, fmt.Sprintf("%d %s", exitCode(c.err, c.understood), c.what))
	}
	golden.Names(t, "exitcodes.txt", all)
}
