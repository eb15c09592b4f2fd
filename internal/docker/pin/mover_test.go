package pin

import (
	"context"
	"errors"
	"testing"

	"berth/internal/ipam"
)

// What one process has taken off its network no other one moves, until it is on again.
func TestMovedByOne(t *testing.T) {
	e := newSeated(t)
	one, other := e.open(), e.open()
	ctx := context.Background()
	ep, err := one.Endpoint(ctx, webID, "front")
	must(t, err)
	must(t, one.TakeOff(ctx, ep))

	gone, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := other.PutOn(gone, ep, nil); !errors.Is(err, ipam.ErrInUse) {
		t.Fatalf("another process puts it on: %v", err)
	}
	_, err = one.PutOn(ctx, ep, nil)
	must(t, err)
	must(t, other.TakeOff(ctx, ep))
	if off, err := other.PutOn(ctx, ep, nil); off || err != nil {
		t.Fatalf("it is off: %t, %v", off, err)
	}
}
