package pin

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"berth/internal/ipam"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"
)

// How a container is put back on its network: each call may wait for the engine's locks and for what it asks of
// Berth, and is made again after each of the pauses.
const callTime = time.Minute

func pauses() []time.Duration {
	return []time.Duration{200 * time.Millisecond, time.Second, 3 * time.Second}
}

// Moved is what came of a change of an endpoint.
type Moved struct {
	Cut       time.Duration // how long a running container was without its network
	Addresses []netip.Addr  // that it has then; none of one that does not run
	Off       bool          // it was taken off its network, and could not be put on again
}

// Move has a container ask for other addresses on a network from now on, none where there are none: it is taken
// off the network and put back with all else that its user had set. It does not end with ctx in the midst of that.
// Where it cannot be put back asking for them it is put back asking for none, and where that fails too the error
// says which command does it. Afterwards the container is looked at: one that runs with other addresses is an
// error, too.
func (h *Hand) Move(ctx context.Context, ep *Endpoint, addrs []netip.Addr) (Moved, error) {
	if err := ctx.Err(); err != nil {
		return Moved{}, err
	}
	ctx = context.WithoutCancel(ctx)
	defer h.mover.Done(ep.ID)
	begin := time.Now()
	if err := h.TakeOff(ctx, ep); err != nil {
		return Moved{}, err
	}
	off, err := h.PutOn(ctx, ep, addrs)
	moved := Moved{Cut: time.Since(begin), Off: off}
	if err != nil {
		return moved, err
	}
	now, err := h.Endpoint(ctx, ep.ID, ep.Network)
	if err != nil {
		return moved, fmt.Errorf("%s was put back on the Docker network %s, and how it is there cannot be read: %w",
			ep.Container, ep.Network, err)
	}
	moved.Addresses = now.Addresses
	return moved, now.asDesired(addrs)
}

// PutOn puts a container that was taken off a network on it again, without its addresses where the engine refuses
// these, and tells whether it is off the network still.
func (h *Hand) PutOn(ctx context.Context, ep *Endpoint, addrs []netip.Addr) (off bool, err error) {
	err = h.connect(ctx, ep, addrs)
	switch {
	case err != nil && len(addrs) > 0:
		off, err = h.goBack(ctx, ep, addrs, err)
	case err != nil:
		off, err = true, lost(ep, addrs, err)
	}
	if !off {
		h.mover.Done(ep.ID)
	}
	return off, err
}

// Restore puts a container that may be off a network on it again, as it was to be. One that is on it is left as it is;
// ipam.ErrNotFound: the container is gone, or the network.
func (h *Hand) Restore(ctx context.Context, ep *Endpoint, addrs []netip.Addr) error {
	ctx = context.WithoutCancel(ctx)
	api, err := h.agree(ctx)
	if err != nil {
		return err
	}
	defer h.mover.Done(ep.ID)
	there, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	if _, err := api.ContainerInspect(there, ep.ID, client.ContainerInspectOptions{}); errdefs.IsNotFound(err) {
		return ipam.Refuse(ipam.ErrNotFound, "the engine has no container %s any more", ep.Container)
	} else if err != nil {
		return fmt.Errorf("the engine's container %s: %w", ep.Container, err)
	}
	if off, known := h.isOff(ctx, ep); known && !off {
		return nil
	}
	_, err = api.NetworkInspect(there, ep.Network, client.NetworkInspectOptions{})
	if errdefs.IsNotFound(err) {
		return ipam.Refuse(ipam.ErrNotFound, "the engine has no Docker network %s any more, on which %s was", ep.Network,
			ep.Container)
	}
	off, err := h.PutOn(ctx, ep, addrs)
	if !off {
		return nil
	}
	return err
}

// asDesired refuses an endpoint that asks for, or runs with, other addresses than were wanted of it.
func (ep *Endpoint) asDesired(addrs []netip.Addr) error {
	switch {
	case !sameAddrs(ep.Asked, addrs):
		return ipam.Refuse(ipam.ErrDamaged,
			"%s was put back on the Docker network %s, where it asks for %s now, and not for %s",
			ep.Container, ep.Network, listed(ep.Asked), listed(addrs))
	case ep.Running && len(addrs) > 0 && !sameAddrs(ep.Addresses, addrs):
		return ipam.Refuse(ipam.ErrInUse,
			"%s was put back on the Docker network %s, where it runs with %s now, and not with %s",
			ep.Container, ep.Network, listed(ep.Addresses), listed(addrs))
	}
	return nil
}

// goBack puts a container back as it was, since it cannot be put back as it was to be.
func (h *Hand) goBack(ctx context.Context, ep *Endpoint, addrs []netip.Addr, why error) (off bool, err error) {
	if err := h.connect(ctx, ep, nil); err != nil {
		return true, lost(ep, addrs, errors.Join(why, err))
	}
	return false, fmt.Errorf("%s is back on the Docker network %s, and asks for no address there, because the engine "+
		"refused %s: %w",
		ep.Container, ep.Network, listed(addrs), why)
}

func lost(ep *Endpoint, addrs []netip.Addr, why error) error {
	return fmt.Errorf("%s IS NOT ON THE DOCKER NETWORK %s ANY MORE, and the engine does not put it back; do it "+
		"with `%s`: %w",
		ep.Container, ep.Network, ep.Command(addrs), why)
}

// TakeOff takes a container off a network. One that is off it although the engine says that something failed is
// off it.
func (h *Hand) TakeOff(ctx context.Context, ep *Endpoint) error {
	api, err := h.agree(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	err = h.mover.Off(ctx, api, ep.Network, ep.ID, false)
	if err == nil {
		return nil
	}
	if off, known := h.isOff(context.WithoutCancel(ctx), ep); known && !off {
		h.mover.Done(ep.ID)
		return fmt.Errorf("the engine does not take %s off the Docker network %s, where it still is as it was: %w",
			ep.Container, ep.Network, err)
	}
	return nil // that it is put back harms in no case
}

// isOff tells whether a container is off a network, where the engine says so at all.
func (h *Hand) isOff(ctx context.Context, ep *Endpoint) (off, known bool) {
	now, err := h.Endpoint(ctx, ep.ID, ep.Network)
	switch {
	case errors.Is(err, ipam.ErrNotFound):
		return true, true
	case err != nil:
		return false, false
	}
	return now.Running && len(now.Addresses) == 0, true
}

// connect puts a container on a network, and tries again when that fails. What cannot come of a second try is
// tried once.
func (h *Hand) connect(ctx context.Context, ep *Endpoint, addrs []netip.Addr) (err error) {
	for _, pause := range append(pauses(), 0) {
		err = h.connectOnce(ctx, ep, addrs)
		if err == nil || forGood(err) {
			return err
		}
		if h.isOn(ctx, ep, addrs) {
			return nil // the answer got lost
		}
		pauseFor(pause)
	}
	return err
}

// isOn tells whether a container is on a network, and asks for exactly these addresses there.
func (h *Hand) isOn(ctx context.Context, ep *Endpoint, addrs []netip.Addr) bool {
	now, err := h.Endpoint(ctx, ep.ID, ep.Network)
	if err != nil || !sameAddrs(now.Asked, addrs) {
		return false
	}
	return !now.Running || len(now.Addresses) > 0
}

func (h *Hand) connectOnce(ctx context.Context, ep *Endpoint, addrs []netip.Addr) error {
	api, err := h.agree(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	return h.mover.On(ctx, api, ep.Network, ep.ID, ep.asking(addrs))
}

// forGood tells whether the engine refused what it will always refuse: an address on a network without a subnet of
// its user's.
func forGood(err error) bool { return strings.Contains(err.Error(), "user configured subnets") }

func pauseFor(d time.Duration) {
	if d > 0 {
		time.Sleep(d)
	}
}

// sameAddrs tells whether both have the same addresses, in whatever order.
func sameAddrs(a, b []netip.Addr) bool {
	return slices.Equal(slices.SortedFunc(slices.Values(a), netip.Addr.Compare),
		slices.SortedFunc(slices.Values(b), netip.Addr.Compare))
}

// listed writes addresses for a person.
func listed(addrs []netip.Addr) string {
	if len(addrs) == 0 {
		return "none"
	}
	texts := make([]string, len(addrs))
	for i, addr := range addrs {
		texts[i] = addr.String()
	}
	return strings.Join(texts, " and ")
}

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }

// quoted is a word as a shell takes it.
func quoted(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' ||
			strings.ContainsRune("-_./:=,@+", r)
	}
	if word != "" && !strings.ContainsFunc(word, func(r rune) bool { return !plain(r) }) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
