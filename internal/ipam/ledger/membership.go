package ledger

import (
	"encoding/binary"

	"berth/internal/ipam"
	"berth/store"
)

// membership is what a change does for a shared store, and nothing where the store is the host's own.
//
// Records are compared when a transaction of a shared store is committed, and the index is not. So each change reads
// two records. The one at planKey is written by each change of anything but leases and events: what the index says of
// networks, subnets, pools, attachments and owners is true when the change is committed, or the change is run again.
// The other one is the host's own: a host that was removed, or for which a later daemon speaks, has nothing committed
// any more.
type membership struct {
	member *ipam.Member
	self   *ipam.Host // as the host's record says
	plans  bool       // the change touches the plan
	mends  bool       // it is part of mending the store
	tx     plannedTx  // the store's, which notices that

	present func() map[string][]byte // the hosts whose daemons are there
}

// PlanKey has the number of the last change of the plan.
func PlanKey() []byte { return append([]byte{SettingKeys}, "plan"...) }

// hostKey is that of a host's record.
func hostKey(name string) []byte { return append([]byte{HostKeys}, name...) }

// plannedTx notices what touches the plan.
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

// enter begins a change: it has the host take part, and brings the index to where the store is.
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

// ReadSelf reads the host's record, where it has one.
func (c *Change) ReadSelf() error {
	c.self = nil
	raw, err := c.tx.Get(hostKey(c.host))
	if err != nil {
		return err
	}
	if raw == nil {
		return nil
	}
	if known := c.index.hosts[c.host]; known.Is(raw) {
		c.self = known.Value
		return nil
	}
	c.self = new(ipam.Host)
	return ipam.DecodeJSON("host "+c.host, raw, c.self)
}

// asHost refuses a host that takes no part in the cluster.
func (c *Change) asHost() error {
	if err := c.ReadSelf(); err != nil {
		return err
	}
	if err := c.beingMended(); err != nil {
		return err
	}
	return SpeaksFor(c.member, c.host, c.self)
}

// SpeaksFor refuses this daemon where it is not the one that speaks for the host, by the host's record; nil: there is
// none.
func SpeaksFor(m *ipam.Member, host string, h *ipam.Host) error {
	const form = "2006-01-02 15:04:05 MST"
	switch {
	case h == nil || h.ID != m.Host && h.State == ipam.HostRemoved:
		return ipam.Refuse(ipam.ErrHost, "host %s is not in the cluster; start its daemon again", host)
	case h.ID != m.Host:
		return ipam.Refuse(ipam.ErrHost,
			"the name %s belongs to another host of the cluster (id %s) since %s; give this one "+
				"another with --host", host, h.ID.Short(), h.Joined.Format(form))
	case h.State == ipam.HostRemoved:
		return removed(host)
	case h.Session != m.Session:
		return ipam.Refuse(ipam.ErrHost,
			"another daemon of host %s took over at %s: two of them run with copies of one state; "+
				"end one, and remove its copy", host, h.Started.Format(form))
	}
	return nil
}

// removed is the refusal of a host that was removed.
func removed(host string) error {
	return ipam.Help(ipam.Refuse(ipam.ErrHost,
		"host %s was removed from the cluster, and what it held may be in other hands: "+
			"stop its containers on shared networks, and let it in again on another host", host),
		ipam.Advise(ipam.DoLetHostIn, host))
}

// MayTake refuses a host new addresses and pools that is on its way out.
func (c *Change) MayTake() error {
	if c.member == nil || c.self.State == "" {
		return nil
	}
	return ipam.Help(ipam.Refuse(ipam.ErrHost, "host %s is %s, and takes nothing new in the spaces of the cluster",
		c.host,
		c.self.State), ipam.Advise(ipam.DoEndDrain, c.host))
}

// leave ends a change that succeeded.
func (c *Change) leave() error {
	if c.member == nil || !c.plans {
		return nil
	}
	return c.membership.tx.Tx.Put(PlanKey(), binary.BigEndian.AppendUint64(nil, c.nextID()))
}

// own is the first id from at on that only this host makes: those of a host have its slot as the rest when they are
// divided by maxHosts.
func (m *membership) own(at uint64) uint64 {
	if m.member == nil || m.self == nil {
		return at
	}
	return at + (uint64(m.self.Slot)+ipam.MaxHosts-at%ipam.MaxHosts)%ipam.MaxHosts
}

// Member is this host's part in a cluster; nil where the store is the host's own.
func (m *membership) Member() *ipam.Member { return m.member }

// Self is this host, as its record says; nil where it has none.
func (m *membership) Self() *ipam.Host { return m.self }

// Present are the hosts whose daemons are there, by name; for a shared store only.
func (m *membership) Present() map[string][]byte { return m.present() }

// TouchPlan has the change be decided as one of the plan, whatever it writes.
func (m *membership) TouchPlan() { m.plans = true }

// SetSelf writes this host's own record, by which the change goes on.
func (c *Change) SetSelf(h *ipam.Host) error {
	c.self = h
	return c.SetHost(h)
}

// Slot is the host's, 0 where the store is its own.
func (m *membership) Slot() int {
	if m.self == nil {
		return 0
	}
	return m.self.Slot
}

// NewID draws an id of what is made in the store.
func (m *membership) NewID() ipam.ID { return m.member.Marked(ipam.NewID()) }
