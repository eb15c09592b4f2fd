package ledger

import (
	"context"

	"berth/internal/ipam"
)

// Join makes the host part of the cluster, and this daemon the only one that writes for it. It refuses a removed host
// until the host is admitted. It also refuses a second host of the same name and a second name of the same host.
func (s *Ledger) Join(ctx context.Context) error {
	if s.member == nil {
		return nil
	}
	if err := ipam.CheckName("host", s.host); err != nil {
		return err
	}
	if err := s.Update(ctx, (*Change).joinHost); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.joined = true
	return nil
}

func (c *Change) joinHost() error {
	if c.self == nil || c.self.State == ipam.HostRemoved && c.self.ID != c.member.Host {
		return c.addHost()
	}
	switch h := c.self; {
	case h.ID != c.member.Host:
		return ipam.Refuse(ipam.ErrHost,
			"there is a host %s in the cluster already, and this one is another (that one has "+
				"the id %s, and its daemon began at %s): give this one a name of its own with --host",
			h.Name, h.ID.Short(), h.Started.Format("2006-01-02 15:04:05 MST")).Advise(ipam.DoFreeHost, h.Name)
	case h.State == ipam.HostRemoved:
		return removed(h.Name)
	}
	again := *c.self
	again.Session, again.Started, again.Version = c.member.Session, c.now, c.member.Version
	return c.SetHost(&again)
}

// addHost writes the record of a new host.
func (c *Change) addHost() error {
	for _, known := range c.index.hosts {
		if h := known.Value; h.ID == c.member.Host && h.State != ipam.HostRemoved {
			return ipam.Refuse(ipam.ErrHost,
				"this host is known to the cluster as %s, with all it holds: start it with "+
					"--host %s", h.Name, h.Name).OrAdvise(ipam.DoRemoveThere, h.Name)
		}
	}
	if err := c.beingMended(); err != nil {
		return err
	}
	slot, err := c.FreeSlot()
	if err != nil {
		return err
	}
	h := &ipam.Host{Name: c.host, ID: c.member.Host, Session: c.member.Session, Slot: slot, Joined: c.now,
		Started: c.now,
		Version: c.member.Version}
	c.self = h
	if _, err := c.Event(&ipam.Event{Verb: ipam.HostJoined, Name: h.Name}); err != nil {
		return err
	}
	return c.SetHost(h)
}

// FreeSlot returns the lowest slot that no host has. If all ipam.MaxHosts are taken, it returns ipam.ErrHost.
func (c *Change) FreeSlot() (slot int, err error) {
	used := map[int]bool{}
	for _, known := range c.index.hosts {
		if known.Value.State != ipam.HostRemoved {
			used[known.Value.Slot] = true
		}
	}
	for used[slot] {
		slot++
	}
	if slot >= ipam.MaxHosts {
		return 0, ipam.Refuse(ipam.ErrHost, "the cluster has %d hosts, which is as many as can share a store",
			ipam.MaxHosts).Advise(ipam.DoRemoveAHost)
	}
	return slot, nil
}

// SetHost writes a host's record.
func (c *Change) SetHost(h *ipam.Host) error {
	raw, err := c.PutJSON(hostKey(h.Name), h)
	if err != nil {
		return err
	}
	before, was := c.index.hosts[h.Name]
	c.index.hosts[h.Name] = Cached[ipam.Host]{raw, h}
	c.undo = append(c.undo, func() {
		if was {
			c.index.hosts[h.Name] = before
		} else {
			delete(c.index.hosts, h.Name)
		}
	})
	return nil
}
