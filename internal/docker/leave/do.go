package leave

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"berth/internal/ipam"

	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
)

// callTime limits one call. The engine may wait for its own locks and for Berth.
const callTime = time.Minute

func pauses() []time.Duration {
	return []time.Duration{200 * time.Millisecond, time.Second, 3 * time.Second, 0}
}

// Leave moves the network to the engine's own IPAM driver, from whatever state an earlier run left it in, and reports
// each step. It finishes even if ctx ends. It skips containers that are gone.
func (c *Connector) Leave(ctx context.Context, note *Note, say func(format string, args ...any)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx)
	at, err := c.at(ctx, note)
	if err != nil {
		return err
	}
	if at == before {
		if err := c.clear(ctx, note, say); err != nil {
			return err
		}
		at = between
	}
	if at == between {
		if err := c.create(ctx, note.Network, &note.New); err != nil {
			return c.goBack(ctx, note, err)
		}
		say("%s is recreated with the engine's own IPAM driver", note.Network)
	}
	if err := c.connectAll(ctx, note, say); err != nil {
		return err
	}
	return c.look(ctx, note)
}

// place is the progress of a network.
type place int

const (
	before  place = iota // it is Berth's
	between              // it does not exist
	after                // it is the engine's own
)

// at returns the progress of the network.
func (c *Connector) at(ctx context.Context, note *Note) (place, error) {
	n, err := c.inspect(ctx, note.Network)
	switch {
	case isGone(err) || err == nil && n.Name != note.Network:
		return between, nil
	case err != nil:
		return 0, err
	case n.ID == note.ID:
		return before, nil
	case n.IPAM.Driver == builtIn && sameSubnets(n.IPAM.Config, note.New.IPAM.Config):
		return after, nil
	case n.IPAM.Driver == note.Old.IPAM.Driver && sameSubnets(n.IPAM.Config, note.Old.IPAM.Config):
		note.ID = n.ID // it was made again after the engine refused the new one
		return before, nil
	}
	return 0, ipam.Refuse(ipam.ErrChanged, "somebody has created another Docker network %s since %s; it stays "+
		"unchanged",
		note.Network, note.Taken.Format(time.RFC3339))
}

func sameSubnets(a, b []network.IPAMConfig) bool {
	subnets := func(all []network.IPAMConfig) (texts []string) {
		for _, c := range all {
			texts = append(texts, c.Subnet.String())
		}
		slices.Sort(texts)
		return texts
	}
	return slices.Equal(subnets(a), subnets(b))
}

func (c *Connector) inspect(ctx context.Context, name string) (*network.Inspect, error) {
	api, err := c.API(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	shown, err := api.NetworkInspect(ctx, name, client.NetworkInspectOptions{})
	if err != nil {
		return nil, fmt.Errorf("cannot read the Docker network %s: %w", name, err)
	}
	return &shown.Network, nil
}

// clear disconnects the containers and removes the network. It fails if a container has come since the note was taken.
func (c *Connector) clear(ctx context.Context, note *Note, say func(string, ...any)) error {
	n, err := c.inspect(ctx, note.Network)
	if err != nil {
		return err
	}
	for id, one := range n.Containers {
		if !slices.ContainsFunc(note.Endpoints, func(s Endpoint) bool { return s.has(id, one.Name) }) {
			return ipam.Refuse(ipam.ErrChanged,
				"%s joined the Docker network %s since %s; stop it, and run the command again",
				one.Name, note.Network, note.Taken.Format(time.RFC3339))
		}
	}
	api, err := c.API(ctx)
	if err != nil {
		return err
	}
	for i := range note.Endpoints {
		endpoint := &note.Endpoints[i]
		err := again(ctx, func(ctx context.Context) error {
			err := c.Mover().Off(ctx, api, note.ID, endpoint.ID, false)
			if isGone(err) || err != nil && strings.Contains(err.Error(), "is not connected to") {
				return nil
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("the engine did not disconnect %s from the Docker network %s: %w; run the command again",
				endpoint.Container, note.Network, err)
		}
		say("%s is disconnected from %s", endpoint.Container, note.Network)
	}
	err = again(ctx, func(ctx context.Context) error {
		_, err := api.NetworkRemove(ctx, note.ID, client.NetworkRemoveOptions{})
		if isGone(err) {
			return nil
		}
		return err
	})
	if err != nil {
		return c.reconnect(ctx, note,
			fmt.Errorf("the engine did not remove the Docker network %s: %w", note.Network, err))
	}
	return nil
}

// has reports whether an endpoint shown by the engine is this one. While a container is being disconnected, for example
// by a killed run, the engine shows its endpoint, which has the container's name.
func (s *Endpoint) has(id, name string) bool {
	return s.ID == id || strings.HasPrefix(id, "ep-") && s.Container == name
}

// again repeats a call until it succeeds, with pauses.
func again(ctx context.Context, call func(context.Context) error) (err error) {
	for _, pause := range pauses() {
		limited, cancel := context.WithTimeout(ctx, callTime)
		err = call(limited)
		cancel()
		if err == nil {
			return nil
		}
		time.Sleep(pause)
	}
	return err
}

func (c *Connector) create(ctx context.Context, name string, opt *client.NetworkCreateOptions) error {
	api, err := c.API(ctx)
	if err != nil {
		return err
	}
	return again(ctx, func(ctx context.Context) error {
		_, err := api.NetworkCreate(ctx, name, *opt)
		if err == nil {
			return nil
		}
		if n, found := c.inspect(ctx, name); found == nil && n.Name == name {
			return nil // the answer was lost
		}
		return err
	})
}

// goBack recreates the old network after the engine refused the new one.
func (c *Connector) goBack(ctx context.Context, note *Note, why error) error {
	why = fmt.Errorf("the engine refused the Docker network %s with its own IPAM driver: %w", note.Network, why)
	if err := c.create(ctx, note.Network, &note.Old); err != nil {
		return errors.Join(why, fmt.Errorf("and the engine refused the old network too, so THERE IS NO DOCKER "+
			"NETWORK %s: %w; fix the cause, and run the command again", note.Network, err))
	}
	return c.reconnect(ctx, note, why)
}

// reconnect reconnects the containers to the old network.
func (c *Connector) reconnect(ctx context.Context, note *Note, why error) error {
	if err := c.connectAll(ctx, note, func(string, ...any) {}); err != nil {
		return errors.Join(why, err)
	}
	return fmt.Errorf("%w; the network is on Berth as before, and its containers are back on it", why)
}

// connectAll connects the containers and starts those that ran. A failure with one does not stop the others.
func (c *Connector) connectAll(ctx context.Context, note *Note, say func(string, ...any)) error {
	api, err := c.API(ctx)
	if err != nil {
		return err
	}
	var failed []error
	for i := range note.Endpoints {
		endpoint := &note.Endpoints[i]
		now, err := c.presence(ctx, note, endpoint)
		if isGone(err) {
			say("%s is gone", endpoint.Container)
			c.Mover().Done(endpoint.ID)
			continue
		}
		if err == nil && now.on && (now.runs && now.has || !endpoint.Running) {
			c.Mover().Done(endpoint.ID)
			continue
		}
		if !now.on || now.runs && !now.has {
			err = again(ctx, func(ctx context.Context) error { return c.connect(ctx, note, endpoint) })
		}
		if err == nil && endpoint.Running && !now.runs {
			err = again(ctx, func(ctx context.Context) error { // it ended while it was disconnected
				_, err := api.ContainerStart(ctx, endpoint.ID, client.ContainerStartOptions{})
				return err
			})
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("%s IS NOT ON THE DOCKER NETWORK %s: %w; run the command again, or "+
				"connect the container with `%s`", endpoint.Container, note.Network, err, endpoint.Command))
			continue
		}
		c.Mover().Done(endpoint.ID)
		say("%s is on %s%s", endpoint.Container, note.Network, at(endpoint.Addresses))
	}
	return errors.Join(failed...)
}

func at(addrs []netip.Addr) string {
	if len(addrs) == 0 {
		return ""
	}
	texts := make([]string, len(addrs))
	for i, a := range addrs {
		texts[i] = a.String()
	}
	return " with " + strings.Join(texts, " and ")
}

// connect connects a container, even if it is half connected.
func (c *Connector) connect(ctx context.Context, note *Note, endpoint *Endpoint) error {
	now, err := c.presence(ctx, note, endpoint)
	if err == nil && now.on && (now.has || !now.runs) {
		return nil // an answer was lost
	}
	if err == nil && now.on {
		err = c.ForceOff(ctx, note.Network, endpoint.ID)
	}
	if err == nil {
		err = c.Connect(ctx, note.Network, endpoint.ID, endpoint.Settings)
	}
	return err
}

// presence is the state of a container on the network.
type presence struct{ on, runs, has bool } // has an address

func (c *Connector) presence(ctx context.Context, note *Note, endpoint *Endpoint) (s presence, err error) {
	api, err := c.API(ctx)
	if err != nil {
		return s, err
	}
	shown, err := api.ContainerInspect(ctx, endpoint.ID, client.ContainerInspectOptions{})
	if err != nil {
		return s, err
	}
	one := &shown.Container
	s.runs = one.State != nil && one.State.Running
	if one.NetworkSettings == nil || one.NetworkSettings.Networks[note.Network] == nil {
		return s, nil
	}
	ep := one.NetworkSettings.Networks[note.Network]
	s.on, s.has = true, ep.IPAddress.IsValid() || ep.GlobalIPv6Address.IsValid()
	return s, nil
}

// look compares the running containers with the note.
func (c *Connector) look(ctx context.Context, note *Note) error {
	var wrong []error
	for i := range note.Endpoints {
		endpoint := &note.Endpoints[i]
		ep, err := c.Endpoint(ctx, endpoint.ID, note.Network)
		if errors.Is(err, ipam.ErrNotFound) {
			continue
		}
		if err != nil {
			wrong = append(wrong, err)
			continue
		}
		for _, a := range endpoint.Addresses {
			if ep.Running && !slices.Contains(ep.Addresses, a) {
				wrong = append(wrong, fmt.Errorf("%s runs with %v on %s now, not with %s", endpoint.Container,
					ep.Addresses, note.Network, a))
			}
		}
	}
	return errors.Join(wrong...)
}
