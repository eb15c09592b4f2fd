package ipam

import (
	"encoding/binary"
	"fmt"

	"berth/store"
)

// membership is what a change does for a shared store, and nothing where the store is the host's own.
//
// Records are compared when a transaction of a shared store is committed, and the index is not. So each change reads two
// records. The one at planKey is written by each change of anything but leases and events: what the index says of networks,
// subnets, pools, attachments and owners is true when the change is committed, or the change is run again. The other one is
// the host's own: a host that was removed, or for which a later daemon speaks, has nothing committed any more.
type membership struct {
	member *Member
	self   *Host     // as the host's record says
	plans  bool      // the change touches the plan
	tx     plannedTx // the store's, which notices that

	present func() map[string][]byte // the hosts whose daemons are there
}

// planKey has the number of the last change of the plan.
func planKey() []byte { return append([]byte{settingKeys}, "plan"...) }

// hostKey is that of a host's record.
func hostKey(name string) []byte { return append([]byte{hostKeys}, name...) }

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
	if len(key) > 0 && key[0] != leaseKeys && key[0] != eventKeys {
		*t.plans = true
	}
}

// enter begins a change: it has the host take part, and brings the index to where the store is.
func (c *change) enter(joined bool) error {
	if c.member == nil {
		return nil
	}
	c.plans = false
	c.membership.tx = plannedTx{c.tx, &c.plans}
	c.tx = &c.membership.tx
	if _, err := c.tx.Get(planKey()); err != nil {
		return err
	}
	if err := c.readAgain(); err != nil {
		return err
	}
	if !joined {
		return c.readSelf()
	}
	return c.asHost()
}

// readSelf reads the host's record, where it has one.
func (c *change) readSelf() error {
	c.self = nil
	raw, err := c.tx.Get(hostKey(c.host))
	if err != nil || raw == nil {
		return err
	}
	if known := c.ix.hosts[c.host]; known.is(raw) {
		c.self = known.value
		return nil
	}
	c.self = new(Host)
	return decodeJSON("host "+c.host, raw, c.self)
}

// asHost refuses a host that takes no part in the cluster.
func (c *change) asHost() error {
	if err := c.readSelf(); err != nil {
		return err
	}
	return c.member.speaksFor(c.host, c.self)
}

// speaksFor refuses this daemon where it is not the one that speaks for the host, by the host's record; nil: there is none.
func (m *Member) speaksFor(host string, h *Host) error {
	const form = "2006-01-02 15:04:05 MST"
	switch {
	case h == nil || h.ID != m.Host && h.State == HostRemoved:
		return &refusal{ErrHost, fmt.Sprintf("host %s is not in the cluster; start its daemon again", host)}
	case h.ID != m.Host:
		return &refusal{ErrHost, fmt.Sprintf("the name %s belongs to another host of the cluster (id %s) since %s; give this one another with --host", host, h.ID.Short(), h.Joined.Format(form))}
	case h.State == HostRemoved:
		return &refusal{ErrHost, removedText(host)}
	case h.Session != m.Session:
		return &refusal{ErrHost, fmt.Sprintf("another daemon of host %s took over at %s: two of them run with copies of one state; end one, and remove its copy", host, h.Started.Format(form))}
	}
	return nil
}

func removedText(host string) string {
	return fmt.Sprintf("host %s was removed from the cluster, and what it held may be in other hands: stop its containers on shared networks, then let it in again with `berth host admit %s` on another host", host, host)
}

// mayTake refuses a host new addresses and pools that is on its way out.
func (c *change) mayTake() error {
	if c.member == nil || c.self.State == "" {
		return nil
	}
	return &refusal{ErrHost, fmt.Sprintf("host %s is %s, and takes nothing new in the spaces of the cluster; `berth host drain --undo %s` ends that", c.host, c.self.State, c.host)}
}

// leave ends a change that succeeded.
func (c *change) leave() error {
	if c.member == nil || !c.plans {
		return nil
	}
	return c.membership.tx.Tx.Put(planKey(), binary.BigEndian.AppendUint64(nil, c.nextID()))
}

// own is the first id from at on that only this host makes: those of a host have its slot as the rest when they are divided by
// maxHosts.
func (m *membership) own(at uint64) uint64 {
	if m.member == nil || m.self == nil {
		return at
	}
	return at + (uint64(m.self.Slot)+maxHosts-at%maxHosts)%maxHosts
}

// slot is the host's, 0 where the store is its own.
func (m *membership) slot() int {
	if m.self == nil {
		return 0
	}
	return m.self.Slot
}

// newID draws an id of what is made in the store.
func (m *membership) newID() ID { return m.member.marked(NewID()) }
