package ledger

import (
	"testing"
	"time"

	"berth/internal/ipam"
)

// A reader that fell behind rereads less than everything, and misses nothing that may still come.
func TestTailReadsAgain(t *testing.T) {
	var s settledEvents
	var m ipam.StoreMark
	begun := time.Now()
	for i, step := range []struct {
		after time.Duration
		id    uint64
		from  uint64
	}{
		{0, 100, 0},
		{LateCommit, 500, 0},
		{LateCommit + time.Second, 600, 100},
		{2 * LateCommit, 700, 100},
		{2*LateCommit + time.Second, 800, 500},
		{9 * LateCommit, 900, 800},
	} {
		if m.After = s.caughtUp(begun.Add(step.after), step.id); m.After != step.from {
			t.Errorf("step %d: it reads from %d, want %d", i, m.After, step.from)
		}
	}
	if m.Pass(800) || !m.Pass(900) || m.Pass(900) || !m.Pass(901) {
		t.Error("what was told is told again, or what was not is not")
	}
}
