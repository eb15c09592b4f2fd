package cluster_test

import (
	"testing"
	"time"

	"berth/internal/ipam"
)

// A project is locked in the stores of the host that deploys it, and of the cluster. On any host the lock can be taken
// away, and the deploy does not get it again by renewing it (BD-1).
func TestDeployLockOfAnotherHost(t *testing.T) {
	p := newParish(t)
	a, b := p.host("a"), p.host("b")
	lock := &ipam.LockDeploy{Project: "shop", ID: ipam.NewID(), Host: "a", TTL: ipam.Duration(time.Minute)}
	a.must(lock)
	lock.Renews = true
	a.must(lock)
	_, err := b.Edit(t.Context(), ipam.EditOptions{},
		&ipam.LockDeploy{Project: "shop", ID: ipam.NewID(), TTL: ipam.Duration(time.Minute)})
	refusedBy(t, "a deploy on another host", err, ipam.ErrInUse)

	force := &ipam.UnlockDeploy{Project: "shop", Force: true}
	b.must(force)
	_, err = b.Edit(t.Context(), ipam.EditOptions{}, force)
	refusedBy(t, "what is locked no more", err, ipam.ErrNotFound)
	_, err = a.Edit(t.Context(), ipam.EditOptions{}, lock)
	refusedBy(t, "renewed after it was taken away", err, ipam.ErrInUse)
}
