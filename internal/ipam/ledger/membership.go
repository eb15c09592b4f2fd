package ledger

import (
	"context"
	"encoding/binary"

	"berth/internal/ipam"
	"berth/store"
)

// membership is the part of a change that only a shared store needs. It does nothing in a host's own store.
//
// The commit of a shared store compares the records that were read, but not the index. So each change reads two more
// records. Every change of anything but leases and events writes the record at PlanKey. So the index of networks,
// subnets, pools, attachments and owners is current at the commit, or the change runs again. The other record is the
// host's own: it fences a removed host, or a daemon that a later one has replaced, which cannot commit.
type membership struct {
	member *ipam.Member
	self   *ipam.Host // the host's record
	plans  bool       // the change touches the plan
	mends  bool       // the change is part of a repair of the store
	tx     plannedTx  // wraps the store's, to set plans

	present func() map[string][]byte // the hosts whose daemons are running
}

// PlanKey is the key of the number of the last change of the plan.
func PlanKey() []byte { return append([]byte{SettingKeys}, "plan"...) }

// hostKey is the key of a host's record.
func hostKey(name string) []byte { return append([]byte{HostKeys}, name...) }

// plannedTx detects writes to the plan.
type plannedTx struct {
	store.Tx
	plans *bool
}

func (t *plannedTx) Put(key, value []byte) error {
	t.note(key)
	return t.Tx.Put(key, value)
}

func (t *plannedTx) Delete(key []byte) error {
	t.note(key)
	return t.Tx.Delete(key)
}

func (t *plannedTx) note(key []byte) {
	if len(key) > 0 && key[0] != LeaseKeys && key[0] != EventKeys {
		*t.plans = true
	}
}

// enter begins a change in a shared store. It brings the index up to date, and refuses a host that may not take part.
func (c *Change) enter(joined bool) error {
	if c.member == nil {
		return nil
	}
	c.plans = false
	c.membership.tx = plannedTx{c.tx, &c.plans}
	c.tx = &c.membership.tx
	if _, err := c.tx.Get(PlanKey()); err != nil {
		return err
	}
	if err := c.sameFormat(); err != nil {
		return err
	}
	if err := c.readAgain(); err != nil {
		return err
	}
	if !joined {
		return c.ReadSelf()
	}
	return c.asHost()
}

// ReadSelf reads the host's own record, if there is one.
func (c *Change) ReadSelf() error {
	self, err := ReadKnown(c.tx, hostKey(c.host), c.index.hosts[c.host], "host", text(c.host))
	c.self = self
	return err
}

// asHost refuses a host that does not take part in the cluster.
func (c *Change) asHost() error {
	if err := c.ReadSelf(); err != nil {
		return err
	}
	if err := c.beingMended(); err != nil {
		return err
	}
	return SpeaksFor(c.member, c.host, c.self)
}

// SpeaksFor refuses this daemon with ipam.ErrHost unless h, the host's record, names it as the one that writes for the
// host. A nil h means no record.
func SpeaksFor(m *ipam.Member, host string, h *ipam.Host) error {
	const form = "2006-01-02 15:04:05 MST"
	switch {
	case h == nil || h.ID != m.Host && h.State == ipam.HostRemoved:
		return ipam.Refuse(ipam.ErrHost, "host %s is not in the cluster; start its daemon again", host)
	case h.ID != m.Host:
		return ipam.Refuse(ipam.ErrHost,
			"the name %s has belonged to another host of the cluster (id %s) since %s; give this host "+
				"another name with --host", host, h.ID.Short(), h.Joined.Format(form))
	case h.State == ipam.HostRemoved:
		return removed(host)
	case h.Session != m.Session:
		return ipam.Refuse(ipam.ErrHost,
			"another daemon of host %s took over at %s: two daemons run with copies of one state; stop one daemon, "+
				"and remove its copy of the state", host, h.Started.Format(form))
	}
	return nil
}

// removed is the refusal of a removed host.
func removed(host string) error {
	return ipam.Refuse(ipam.ErrHost,
		"host %s was removed from the cluster, and others may have its addresses: stop its containers on shared "+
			"networks, and admit it again on another host", host).
		Advise(ipam.DoLetHostIn, host)
}

// MayTake refuses new addresses and pools to a host that is being drained or removed.
func (c *Change) MayTake() error {
	if c.member == nil || c.self.State == "" {
		return nil
	}
	return ipam.Refuse(ipam.ErrHost, "host %s is %s, and takes nothing new in the cluster's spaces",
		c.host,
		c.self.State).Advise(ipam.DoEndDrain, c.host)
}

// leave ends a successful change. If the change touched the plan, it writes PlanKey.
func (c *Change) leave() error {
	if c.member == nil || !c.plans {
		return nil
	}
	return c.membership.tx.Tx.Put(PlanKey(), binary.BigEndian.AppendUint64(nil, c.NextID()))
}

// own is the first id from at on that belongs to this host. The remainder of a host's ids, divided by ipam.MaxHosts, is
// its slot.
func (m *membership) own(at uint64) uint64 {
	if m.member == nil || m.self == nil {
		return at
	}
	return at + (uint64(m.self.Slot)+ipam.MaxHosts-at%ipam.MaxHosts)%ipam.MaxHosts
}

// Member is this host's part in a cluster, or nil if the store is the host's own.
func (m *membership) Member() *ipam.Member { return m.member }

// Self is this host's record, or nil.
func (m *membership) Self() *ipam.Host { return m.self }

// Present are the hosts whose daemons are running, by name. Call it only for a shared store.
func (m *membership) Present() map[string][]byte { return m.present() }

// TouchPlan makes the change count as one of the plan, whatever it writes.
func (m *membership) TouchPlan() { m.plans = true }

// SetSelf writes this host's own record, which the rest of the change uses.
func (c *Change) SetSelf(h *ipam.Host) error {
	c.self = h
	return c.SetHost(h)
}

// Slot is this host's slot, or 0 if the store is its own.
func (m *membership) Slot() int {
	if m.self == nil {
		return 0
	}
	return m.self.Slot
}

// NewID draws an id for a new object in the store.
func (m *membership) NewID() ipam.ID { return m.member.Marked(ipam.NewID()) }

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
			"the cluster already has another host %s (its id is %s, its daemon started at %s): give this host its "+
				"own name with --host",
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
				"the cluster knows this host as %s, with all its addresses: start the daemon with "+
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
		return 0, ipam.Refuse(ipam.ErrHost, "the cluster has %d hosts, the maximum for a shared store",
			ipam.MaxHosts).Advise(ipam.DoRemoveAHost)
	}
	return slot, nil
}

// SetHost writes a host's record.
func (c *Change) SetHost(h *ipam.Host) error {
	return writeCached(c, c.index.hosts, h.Name, hostKey(h.Name), h)
}
