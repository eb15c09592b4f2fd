package docker

import (
	"context"
	"net/netip"
	"sync"
	"time"

	"berth/internal/ipam"
)

// endpointTime is how long after its request an endpoint may not be visible in a view.
const endpointTime = 10 * time.Second

// returns reports whether a lease has no endpoint, and its address may go back to the container of a name, which is
// being started. Either the lease names that container: it has one endpoint on a network, and its last start has ended.
// Or the recorded container was removed, and this one has its name. Or the lease names nobody, because Berth ended
// before the engine showed who has it, and this container is the only one that asks for its address by its
// configuration. Nobody may have been seen with the address.
//
// A name alone proves nothing, because a renamed container may run. So the engine must have shown its containers since
// the lease was made, and it must be the engine of the records. A lease with a guessed name, or without an id, may be
// another container's: then its endpoint must have had the time to show.
func (r *Roster) returns(space string, cidr netip.Prefix, l *ipam.Lease, name string) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	m := r.named(name)
	if m == nil || !r.live() || r.other {
		return false
	}
	for _, h := range r.holdersIn(space, cidr, l.Address) {
		if len(h.all) > 0 {
			return false
		}
	}
	sure := l.Container != "" && !l.Guessed
	switch {
	case !sure && !r.viewed.After(l.Since.Add(endpointTime)):
		return false
	case l.Container == ipam.ShortContainer(m.ID):
		// docker rename waits for the end of a start, so a container that a view does not show as running is itself
		return r.viewed.After(l.Since) || !m.runs && !m.fresh && m.turned.After(l.Since)
	}
	if l.Container == "" && l.Name == "" && l.MAC == (ipam.MAC{}) {
		only, _ := r.wanter(space, cidr, l.Address)
		return only == name
	}
	gone := l.Container == "" || !r.ids[l.Container]
	return gone && ipam.RememberedName(l.Name) == ipam.RememberedName(name)
}

// unnetworked reports whether the engine has no Docker network to which an attachment of a time can belong. The
// attachment must be so old that its network is listed.
func (r *Roster) unnetworked(space string, cidr netip.Prefix, created time.Time) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if !r.live() || r.other || r.networked.Before(created.Add(networkCreation)) {
		return false
	}
	for _, n := range r.networks {
		if (n.Swarm || serves(n, space, cidr)) && !younger(n, created) {
			return false
		}
	}
	return true
}

// recognize notes whether the engine is the one of the records.
func (r *Roster) recognize(is bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.other = !is
}

// clockStep is the largest difference between the engine's clock and Berth's. They run on one host.
const clockStep = time.Second

// younger reports whether a Docker network was created after an attachment, so that the attachment is not its own: the
// engine requests the pools of a network while it creates it.
func younger(n *ipam.EngineNetwork, attached time.Time) bool {
	return !n.Swarm && n.Created.After(attached.Add(clockStep))
}

// firstViewTime is the longest that all requests together wait for the first view: less than a second, because a
// starting engine requests addresses before it answers anybody.
const firstViewTime = 900 * time.Millisecond

// firstView lets requests wait for the first view after the daemon's start. The zero firstView lets nobody wait.
type firstView struct {
	done  chan struct{} // closed at the end of the wait
	ended sync.Once
	begun sync.Once
}

// await makes requests wait from now on.
func (f *firstView) await() { f.done = make(chan struct{}) }

// end ends the wait.
func (f *firstView) end() {
	if f.done != nil {
		f.ended.Do(func() { close(f.done) })
	}
}

// wait waits for the end, or until the first one to wait has waited firstViewTime.
func (f *firstView) wait(ctx context.Context) {
	if f.done == nil {
		return
	}
	f.begun.Do(func() { time.AfterFunc(firstViewTime, f.end) })
	select {
	case <-f.done:
	case <-ctx.Done():
	}
}
