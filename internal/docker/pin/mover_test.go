package pin

import (
	"context"
	"errors"
	"testing"

	"berth/internal/ipam"
)

// While one process has a container disconnected, no other process moves it.
func TestMovedByOne(t *testing.T) {
	e, _ := newSeated(t)
	one, other := open(e), open(e)
	ctx := context.Background()
	ep, err := one.Endpoint(ctx, webID, "front")
	must(t, err)
	must(t, one.Disconnect(ctx, ep))

	_, err = other.API(ctx)
	must(t, err)
	gone, cancel := context.WithCancel(ctx)
	cancel()
	if err := other.Connect(gone, ep.Network, ep.ID, nil); !errors.Is(err, ipam.ErrInUse) {
		t.Fatalf("another process puts it on: %v", err)
	}
	_, err = one.Reconnect(ctx, ep, nil)
	must(t, err)
	must(t, other.Disconnect(ctx, ep))
	if off, err := other.Reconnect(ctx, ep, nil); off || err != nil {
		t.Fatalf("it is off: %t, %v", off, err)
	}
}
