package pin

import (
	"cmp"
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

// callTime bounds each call to the engine, which may wait for the engine's locks and for its requests to Berth.
// Connecting is tried again after each of the pauses.
const callTime = time.Minute

func pauses() []time.Duration {
	return []time.Duration{200 * time.Millisecond, time.Second, 3 * time.Second}
}

// Moved is the result of a change of an endpoint.
type Moved struct {
	Cut       time.Duration // how long a running container was without its network
	Addresses []netip.Addr  // its addresses afterwards; empty if it does not run
	Off       bool          // it is off its network, and could not be connected again
}

// Move changes the addresses that a container asks for on a network, to none if addrs is empty. It disconnects the
// container and connects it again with all its other settings. Once begun, it does not stop when ctx ends. If the
// engine refuses the addresses, Move connects the container without any. If that fails too, the error holds the command
// that does it. At the end Move reads the endpoint: if the container runs with other addresses, that is an error.
func (c *Connector) Move(ctx context.Context, ep *Endpoint, addrs []netip.Addr) (Moved, error) {
	if err := ctx.Err(); err != nil {
		return Moved{}, err
	}
	ctx = context.WithoutCancel(ctx)
	defer c.mover.Done(ep.ID)
	begin := time.Now()
	if err := c.Disconnect(ctx, ep); err != nil {
		return Moved{}, err
	}
	off, err := c.Reconnect(ctx, ep, addrs)
	moved := Moved{Cut: time.Since(begin), Off: off}
	if err != nil {
		return moved, err
	}
	now, err := c.Endpoint(ctx, ep.ID, ep.Network)
	if err != nil {
		return moved, fmt.Errorf("%s was reconnected to the Docker network %s, but its state there cannot be read: %w",
			ep.Container, ep.Network, err)
	}
	moved.Addresses = now.Addresses
	return moved, now.asDesired(ep, addrs)
}

// Reconnect connects a container that was taken off a network again, without its addresses if the engine refuses them.
// It reports whether the container is still off the network.
func (c *Connector) Reconnect(ctx context.Context, ep *Endpoint, addrs []netip.Addr) (off bool, err error) {
	err = c.connect(ctx, ep, addrs)
	switch {
	case err != nil && len(addrs) > 0:
		off, err = c.goBack(ctx, ep, addrs, err)
	case err != nil:
		off, err = true, lost(ep, addrs, err)
	}
	if !off {
		c.mover.Done(ep.ID)
	}
	return off, err
}

// Restore connects a container that may be off a network again, with its addresses. It does nothing if the container is
// on the network. It returns ipam.ErrNotFound if the container or the network is gone.
func (c *Connector) Restore(ctx context.Context, ep *Endpoint, addrs []netip.Addr) error {
	api, err := c.API(ctx)
	if err != nil {
		return err
	}
	defer c.mover.Done(ep.ID)
	there, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	if _, err := api.ContainerInspect(there, ep.ID, client.ContainerInspectOptions{}); errdefs.IsNotFound(err) {
		return ipam.Refuse(ipam.ErrNotFound, "the engine has no container %s any more", ep.Container)
	} else if err != nil {
		return fmt.Errorf("cannot read the engine's container %s: %w", ep.Container, err)
	}
	if off, known := c.isOff(ctx, ep); known && !off {
		return nil
	}
	_, err = api.NetworkInspect(there, ep.Network, client.NetworkInspectOptions{})
	if errdefs.IsNotFound(err) {
		return ipam.Refuse(ipam.ErrNotFound, "the Docker network %s, which the container %s was on, no longer exists "+
			"in the engine", ep.Network,
			ep.Container)
	}
	off, err := c.Reconnect(ctx, ep, addrs)
	if !off {
		return nil
	}
	return err
}

// asDesired returns an error if an endpoint asks for addresses other than addrs, or runs with others, or has lost the
// MAC that it had before.
func (ep *Endpoint) asDesired(before *Endpoint, addrs []netip.Addr) error {
	mac, had := ep.Settings.MacAddress, before.Settings.MacAddress
	switch {
	case !before.LosesMAC && !slices.Equal(mac, had):
		return ipam.Refuse(ipam.ErrDamaged, "%s was reconnected to the Docker network %s, where its configuration "+
			"now has the MAC %s, not %s", ep.Container, ep.Network, cmp.Or(mac.String(), "none"), had)
	case !sameAddrs(ep.Asked, addrs):
		return ipam.Refuse(ipam.ErrDamaged,
			"%s was reconnected to the Docker network %s, where it now requests %s, not %s",
			ep.Container, ep.Network, listed(ep.Asked), listed(addrs))
	case ep.Running && len(addrs) > 0 && !sameAddrs(ep.Addresses, addrs):
		return ipam.Refuse(ipam.ErrInUse,
			"%s was reconnected to the Docker network %s, where it now runs with %s, not %s",
			ep.Container, ep.Network, listed(ep.Addresses), listed(addrs))
	}
	return nil
}

// goBack connects a container without addresses, after the engine refused these.
func (c *Connector) goBack(ctx context.Context, ep *Endpoint, addrs []netip.Addr, why error) (off bool, err error) {
	if err := c.connect(ctx, ep, nil); err != nil {
		return true, lost(ep, addrs, errors.Join(why, err))
	}
	return false, fmt.Errorf("%s is back on the Docker network %s, but requests no address there, because the "+
		"engine refused %s: %w",
		ep.Container, ep.Network, listed(addrs), why)
}

func lost(ep *Endpoint, addrs []netip.Addr, why error) error {
	return fmt.Errorf("%s IS NO LONGER ON THE DOCKER NETWORK %s, and the engine did not reconnect it: %w; "+
		"reconnect it with `%s`", ep.Container, ep.Network, why, ep.Command(addrs))
}

// Disconnect takes a container off a network. If the engine reports an error and the container is off nevertheless,
// that is a success.
func (c *Connector) Disconnect(ctx context.Context, ep *Endpoint) error {
	api, err := c.API(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	err = c.mover.Off(ctx, api, ep.Network, ep.ID, false)
	if err == nil {
		return nil
	}
	if off, known := c.isOff(ctx, ep); known && !off {
		c.mover.Done(ep.ID)
		return fmt.Errorf("the engine did not disconnect %s from the Docker network %s, where it is unchanged: %w",
			ep.Container, ep.Network, err)
	}
	return nil // connecting it again does no harm in any case
}

// isOff reports whether a container is off a network, and whether the engine could tell. It asks even if ctx has ended.
func (c *Connector) isOff(ctx context.Context, ep *Endpoint) (off, known bool) {
	now, err := c.Endpoint(context.WithoutCancel(ctx), ep.ID, ep.Network)
	switch {
	case errors.Is(err, ipam.ErrNotFound):
		return true, true
	case err != nil:
		return false, false
	}
	return now.Running && len(now.Addresses) == 0, true
}

// connect connects a container to a network, and tries again if that fails, until ctx ends. It does not repeat what will
// always fail.
func (c *Connector) connect(ctx context.Context, ep *Endpoint, addrs []netip.Addr) (err error) {
	for _, pause := range append(pauses(), 0) {
		err = c.connectOnce(ctx, ep, addrs)
		if err == nil || forGood(err) {
			return err
		}
		if c.isOn(ctx, ep, addrs) {
			return nil // the engine's answer was lost
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return err
		}
	}
	return err
}

// isOn reports whether a container is on a network and asks for exactly these addresses.
func (c *Connector) isOn(ctx context.Context, ep *Endpoint, addrs []netip.Addr) bool {
	now, err := c.Endpoint(ctx, ep.ID, ep.Network)
	if err != nil || !sameAddrs(now.Asked, addrs) {
		return false
	}
	return !now.Running || len(now.Addresses) > 0
}

func (c *Connector) connectOnce(ctx context.Context, ep *Endpoint, addrs []netip.Addr) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	return c.Connect(ctx, ep.Network, ep.ID, ep.Asking(addrs))
}

// forGood reports whether the engine refused what it always refuses: an address on a network whose subnet its user did
// not configure.
func forGood(err error) bool { return strings.Contains(err.Error(), "user configured subnets") }

// sameAddrs reports whether both have the same addresses, in any order.
func sameAddrs(a, b []netip.Addr) bool {
	return slices.Equal(slices.SortedFunc(slices.Values(a), netip.Addr.Compare),
		slices.SortedFunc(slices.Values(b), netip.Addr.Compare))
}

// listed formats addresses for a person.
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

// quoted quotes a word for a shell, if it needs quotes.
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
