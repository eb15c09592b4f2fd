package cluster

import (
	"context"
	"net/netip"
	"slices"
	"time"

	"berth/internal/allocator"
	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
	"berth/internal/ipam/service"
)

// add adds the report of one transaction.
func add(r *ipam.MendReport, one *ipam.MendReport) {
	r.Networks += one.Networks
	r.Reserved += one.Reserved
	r.Removed += one.Removed
	r.Pools += one.Pools
	r.Leases += one.Leases
	r.Headroom += one.Headroom
	r.Ended += one.Ended
	r.Running += one.Running
	r.Collisions = append(r.Collisions, one.Collisions...)
	r.Problems = append(r.Problems, one.Problems...)
}

// mender mends one host's part of a shared store. Other hosts may write between its transactions.
type mender struct {
	s       *service.Service // for mending, so it refuses nothing
	mem     *recalled
	ahead   bool // the store lacks, or may lack, remembered records
	view    *ipam.EngineView
	used    map[netip.Addr]bool // headroom that this host leased and has not reported to the store
	opt     ipam.MendOptions
	running map[netip.Addr][]sighting
	done    time.Time // when the host's part was done
	report  ipam.MendReport
}

// mendActor is the actor of a mending's events.
const mendActor = "berth state mend"

// run runs all steps.
func (m *mender) run(ctx context.Context) (ipam.MendReport, error) {
	ctx = ipam.WithActor(ctx, mendActor)
	m.report = ipam.MendReport{Host: m.s.Ledger.Host(), DryRun: m.opt.DryRun, Accepted: m.opt.Accept,
		Remembers: m.mem != nil, Sees: m.view != nil}
	m.running = sightings(m.view)
	steps := []func(context.Context) error{m.begin}
	if m.ahead && m.mem != nil && !m.opt.Accept {
		steps = append(steps, m.putPlan, m.putGrants, m.putOwn, m.endOwn)
	}
	if m.ahead && m.mem != nil && m.opt.Accept {
		steps = append(steps, m.putGrants, m.putHolds)
	}
	for _, step := range append(steps, m.holdRunning, m.finish) {
		if err := step(ctx); err != nil {
			return m.report, err
		}
	}
	slices.SortFunc(m.report.Collisions, func(a, b ipam.MendCollision) int { return a.Address.Compare(b.Address) })
	return m.report, nil
}

// do makes one transaction and adds its report.
func (m *mender) do(ctx context.Context, fn func(*ledger.Change, *ipam.MendReport) error) error {
	var one ipam.MendReport
	err := m.s.Ledger.Update(ctx, func(c *ledger.Change) error {
		one = ipam.MendReport{}
		return fn(c, &one)
	})
	if err != nil {
		return err
	}
	add(&m.report, &one)
	return nil
}

// begin restores the host's own record, and writes the mark or continues with the existing one. It takes over the plan
// unless another host remembers more of it.
func (m *mender) begin(ctx context.Context) error {
	return m.do(ctx, func(c *ledger.Change, _ *ipam.MendReport) error {
		if err := m.putSelf(c); err != nil {
			return err
		}
		mark := markOf(c.Index())
		wasGone := mark != nil && mark.Hosts[m.s.Ledger.Host()] != nil &&
			mark.Hosts[m.s.Ledger.Host()].State == mendGone
		if !mark.open() && !wasGone {
			mark = &mendMark{Began: c.Now().UTC(), By: m.s.Ledger.Host(), Hosts: map[string]*mendHost{}}
		}
		if mark.open() {
			known := map[string]*ipam.Host{}
			for name, h := range c.Index().Hosts() {
				known[name] = h
			}
			waitFor(mark, known)
			if m.mem != nil {
				waitFor(mark, m.mem.hosts)
			}
		}
		if me := mark.Hosts[m.s.Ledger.Host()]; me != nil {
			me.Runs = allocator.SortedAddrs(m.running)
			me.Runs = me.Runs[:min(len(me.Runs), maxRuns)]
		}
		if err := nameGone(mark, m.s.Ledger.Host(), m.opt.Gone, c.Now()); err != nil {
			return err
		}
		if mark.open() && m.ahead && m.mem != nil && !m.opt.Accept && m.mem.head.Trace.Revision >= mark.Plan.Revision {
			mark.Plan = mendPlan{Host: m.s.Ledger.Host(), Revision: m.mem.head.Trace.Revision}
		}
		return setMark(c, mark)
	})
}

// nameGone ends the wait for hosts.
func nameGone(m *mendMark, self string, names []string, now time.Time) error {
	for _, name := range names {
		h := m.Hosts[name]
		switch {
		case name == self:
			return ipam.Refuse(ipam.ErrInvalid, "host %s is this host, so it is not gone; name another host with "+
				"--gone", name)
		case h == nil:
			return ipam.Refuse(ipam.ErrNotFound, "there is no host %q; the known hosts are %s", name, namesOf(m.Hosts))
		case h.State == mendWaited:
			h.State, h.At = mendGone, now.UTC()
		}
	}
	return nil
}

// putSelf restores this host's own record. Without one it makes no ids of its own.
func (m *mender) putSelf(c *ledger.Change) error {
	if err := c.ReadSelf(); err != nil {
		return err
	} else if c.Self() != nil && c.Self().ID == c.Member().Host {
		return nil
	}
	if c.Self() != nil && c.Self().State != ipam.HostRemoved {
		return ledger.SpeaksFor(c.Member(), c.Host(), c.Self())
	}
	h := &ipam.Host{Name: m.s.Ledger.Host(), ID: c.Member().Host, Session: c.Member().Session, Joined: c.Now().UTC(),
		Started: c.Now().UTC(), Version: c.Member().Version}
	if m.mem != nil && m.mem.hosts[h.Name] != nil {
		known := *m.mem.hosts[h.Name]
		h = &known
	}
	return m.putHost(c, h)
}

// putHost restores a host's record, with a slot that no other host has.
func (m *mender) putHost(c *ledger.Change, h *ipam.Host) error {
	again := *h
	for _, other := range c.Index().Hosts() {
		if other.Name != h.Name && other.State != ipam.HostRemoved && other.Slot == again.Slot {
			slot, err := c.FreeSlot()
			if err != nil {
				return err
			}
			again.Slot = slot
		}
	}
	if again.Name == c.Host() {
		return c.SetSelf(&again)
	}
	return c.SetHost(&again)
}

// finish records that this host's part is done. The last host ends the mending.
func (m *mender) finish(ctx context.Context) error {
	for _, name := range service.Spaces(m.s.Ledger) {
		if err := m.do(ctx, func(c *ledger.Change, _ *ipam.MendReport) error {
			return c.EnsureSpace(name)
		}); err != nil {
			return err
		}
	}
	return m.do(ctx, func(c *ledger.Change, _ *ipam.MendReport) error {
		mark := markOf(c.Index())
		me := mark.Hosts[m.s.Ledger.Host()]
		if me == nil {
			me = &mendHost{ID: c.Member().Host}
			mark.Hosts[m.s.Ledger.Host()] = me
		}
		me.State, me.At = mendDone, c.Now().UTC()
		m.done = me.At
		if m.opt.Accept {
			me.State = mendAccepted
		}
		m.report.Missing, m.report.Planner = mark.missing(), mark.Plan.Host
		if len(m.report.Missing) == 0 && mark.open() {
			mark.Ended = c.Now().UTC()
		}
		return setMark(c, mark)
	})
}
