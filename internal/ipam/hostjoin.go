package ipam

import (
	"context"
	"fmt"
)

// join has the host take part in the cluster, and this daemon speak for it from now on. A host that was removed is refused
// until it is admitted, and so is a second host of one name, or a second name of one host.
func (s *Service) join(ctx context.Context) error {
	if s.member == nil {
		return nil
	}
	if err := CheckName("host", s.host); err != nil {
		return err
	}
	if err := s.change(ctx, (*change).joinHost); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.joined = true
	return nil
}

func (c *change) joinHost() error {
	if c.self == nil || c.self.State == HostRemoved && c.self.ID != c.member.Host {
		return c.addHost()
	}
	switch h := c.self; {
	case h.ID != c.member.Host:
		return &refusal{ErrHost, fmt.Sprintf("there is a host %s in the cluster already, and this one is another (that one has the id %s, and its daemon began at %s): "+
			"give this one a name of its own with --host; if that one is gone for good, `berth host rm %s --off` frees its name and all it held",
			h.Name, h.ID.Short(), h.Started.Format("2006-01-02 15:04:05 MST"), h.Name)}
	case h.State == HostRemoved:
		return &refusal{ErrHost, removedText(h.Name)}
	}
	again := *c.self
	again.Session, again.Started, again.Version = c.member.Session, c.now, c.member.Version
	return c.setHost(&again)
}

// addHost makes the record of a host that is new.
func (c *change) addHost() error {
	for _, known := range c.ix.hosts {
		if h := known.value; h.ID == c.member.Host && h.State != HostRemoved {
			return &refusal{ErrHost, fmt.Sprintf("this host is known to the cluster as %s, with all it holds: start it with --host %s, or remove it there first with `berth host rm %s`", h.Name, h.Name, h.Name)}
		}
	}
	slot, err := c.freeSlot()
	if err != nil {
		return err
	}
	h := &Host{Name: c.host, ID: c.member.Host, Session: c.member.Session, Slot: slot, Joined: c.now, Started: c.now, Version: c.member.Version}
	c.self = h
	if _, err := c.event(&Event{Verb: HostJoined, Name: h.Name}); err != nil {
		return err
	}
	return c.setHost(h)
}

// freeSlot is the lowest that no host has.
func (c *change) freeSlot() (slot int, err error) {
	used := map[int]bool{}
	for _, known := range c.ix.hosts {
		if known.value.State != HostRemoved {
			used[known.value.Slot] = true
		}
	}
	for used[slot] {
		slot++
	}
	if slot >= maxHosts {
		return 0, &refusal{ErrHost, fmt.Sprintf("the cluster has %d hosts, which is as many as can share a store; remove one with `berth host rm`", maxHosts)}
	}
	return slot, nil
}

// setHost writes a host's record.
func (c *change) setHost(h *Host) error {
	raw, err := c.putJSON(hostKey(h.Name), h, false)
	if err != nil {
		return err
	}
	before, was := c.ix.hosts[h.Name]
	c.ix.hosts[h.Name] = cached[Host]{raw, h}
	c.undo = append(c.undo, func() {
		if was {
			c.ix.hosts[h.Name] = before
		} else {
			delete(c.ix.hosts, h.Name)
		}
	})
	return nil
}
