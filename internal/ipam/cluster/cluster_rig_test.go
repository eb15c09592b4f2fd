package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"berth/internal/allocator"
	"berth/internal/ipam"
	"berth/internal/ipam/edit"
	"berth/internal/ipam/ipamtest"
	"berth/internal/ipam/ledger"
	"berth/internal/ipam/service"
	"berth/store"
	"berth/store/mem"
)

// rig is three hosts on one store, each with its own clock, and an audit of all commits.
type rig struct {
	truth *mem.Store
	audit *audit
	hosts []*rigHost

	mu    sync.Mutex
	clock time.Time
}

// rigHost is one of them.
type rigHost struct {
	rig    *rig
	name   string
	id     ipam.ID
	offset time.Duration // of its clock; rig.mu guards it

	mu    sync.Mutex
	store *mem.Store
	s     *service.Service
}

func newRig(t rapid.TB) *rig {
	r := &rig{truth: mem.New(), audit: newAudit(), clock: time.Date(2030, 5, 1, 12, 0, 0, 0, time.UTC)}
	ipamtest.Must(t, r.truth.Follow(context.Background(), func(store.Tx) error { return nil }, r.audit.apply))
	for _, name := range []string{"a", "b", "c"} {
		h := &rigHost{rig: r, name: name, id: ipam.NewID()}
		r.hosts = append(r.hosts, h)
		ipamtest.Must(t, h.start())
	}
	return r
}

func (r *rig) close() {
	for _, h := range r.hosts {
		_ = h.service().Ledger.Store().Close()
	}
	_ = r.truth.Close()
}

// now advances the clock, so that no two moments are the same.
func (h *rigHost) now() time.Time {
	h.rig.mu.Lock()
	defer h.rig.mu.Unlock()
	h.rig.clock = h.rig.clock.Add(37 * time.Microsecond)
	return h.rig.clock.Add(h.offset)
}

func (r *rig) wait(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.clock = r.clock.Add(d)
}

func (h *rigHost) skew(d time.Duration) {
	h.rig.mu.Lock()
	defer h.rig.mu.Unlock()
	h.offset = d
}

// start starts a new daemon for the host. The daemon before it is not told.
func (h *rigHost) start() error {
	st := h.rig.truth.Join()
	s, err := service.Open(context.Background(),
		service.Config{Store: st, Host: h.name, Now: h.now, Memories: 6, Retention: ipam.Retention{Count: 80},
			Member: &ipam.Member{Host: h.id, Session: ipam.NewID(), Mark: clusterMark}})
	if err != nil {
		_ = st.Close()
		return err
	}
	st.Announce(h.name, nil)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.store, h.s = st, s
	return nil
}

func (h *rigHost) service() *service.Service {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.s
}

func (h *rigHost) handle() *mem.Store {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.store
}

func (h *rigHost) away() bool { return h.handle().Reach().Err != nil }

// rigRun does what Run does from time to time.
func rigRun(ctx context.Context, s *ledger.Ledger) error {
	return errors.Join(allocator.KeepTime(ctx, s), s.CatchUp(ctx), (&service.Service{Ledger: s}).Trim(ctx), edit.Finish(ctx, s))
}

// inHand is an address in use and its holder.
type inHand struct {
	pool  ipam.ID // zero: taken by an owner
	lease uint64
	mac   ipam.MAC
	name  string // the owner's, or the endpoint's
}

// inHands returns the addresses in use by the records, through attachments that have not ended. Gateways and
// headroom have no holder.
func (a *audit) inHands() map[netip.Addr]inHand {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := map[netip.Addr]inHand{}
	for key, l := range a.leases {
		if !l.Held() || l.Kind == ipam.Gateway || l.Kind == ipam.Headroom || !a.subnets[key.subnet] {
			continue
		}
		if at := a.attachments[l.Attachment]; l.Attachment != (ipam.ID{}) && (at == nil || at.Ended) {
			continue
		}
		if other, taken := all[l.Address]; taken {
			a.problem("%s is held by %+v and %+v", l.Address, other, l)
		}
		all[l.Address] = inHand{l.Attachment, l.ID, l.MAC, l.Name}
	}
	return all
}

// reservedFor returns what an owner has reserved without an end in a pool's subnet and still wants. A name such
// as shop-web-1 gives the owner.
func (a *audit) reservedFor(pool ipam.ID, name string) (all []netip.Addr) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for key, l := range a.leases {
		at, r := a.attachments[pool], l.Reserved()
		if at != nil && key.subnet == at.Subnet && r != nil && r.Owner == strings.ReplaceAll(name, "-", "/") &&
			!r.Replaced && r.Until.IsZero() {
			all = append(all, key.addr)
		}
	}
	return all
}

// audit sees each commit, and notes forbidden ones.
type audit struct {
	mu          sync.Mutex
	leases      map[auditKey]*ipam.Lease
	subnets     map[ipam.ID]bool
	attachments map[ipam.ID]*ipam.Attachment
	hosts       map[string]ipam.Host
	events      map[uint64]*ipam.Event // all events ever written
	last        map[string]uint64      // by host
	problems    []string
}

type auditKey struct {
	subnet ipam.ID
	addr   netip.Addr
}

func newAudit() *audit {
	return &audit{leases: map[auditKey]*ipam.Lease{}, subnets: map[ipam.ID]bool{},
		attachments: map[ipam.ID]*ipam.Attachment{}, hosts: map[string]ipam.Host{}, events: map[uint64]*ipam.Event{},
		last: map[string]uint64{}}
}

func (a *audit) problem(format string, args ...any) {
	a.problems = append(a.problems, fmt.Sprintf(format, args...))
}

// found returns the problems noted since the last call.
func (a *audit) found() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	found := a.problems
	a.problems = nil
	return found
}

// planned notes a commit that changes the plan but not the plan's number. A change on another host at the same
// time would then commit what it read in an outdated index. The index has everything but leases, events and
// settings.
func (a *audit) planned(all []store.Foreign) {
	if slices.ContainsFunc(all, func(w store.Foreign) bool { return string(w.Key) == string(ledger.PlanKey()) }) {
		return
	}
	for _, w := range all {
		switch w.Key[0] {
		case ledger.LeaseKeys, ledger.EventKeys, ledger.SettingKeys:
		default:
			a.problem("%q is written without the plan's number", w.Key)
		}
	}
}

func (a *audit) apply(all []store.Foreign) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.planned(all)
	before := maps.Clone(a.hosts)
	written := map[uint64]*ipam.Event{}
	for _, w := range all {
		a.gone(w)
	}
	for _, w := range all {
		a.record(w)
		if w.Key[0] == ledger.EventKeys && w.After != nil {
			a.event(w, written)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(written)) {
		a.writer(before, id, written[id])
	}
	for _, w := range all {
		if w.Key[0] == ledger.LeaseKeys {
			a.lease(w, written)
		}
	}
}

func (a *audit) record(w store.Foreign) {
	switch w.Key[0] {
	case ledger.HostKeys:
		h, ok := ledger.Decoded[ipam.Host](w.After)
		if !ok {
			a.problem("the record of host %s is gone", w.Key[1:])
			return
		}
		a.hosts[string(w.Key[1:])] = *h.Value
		for name, other := range a.hosts {
			if other.Slot == h.Value.Slot && other.State != ipam.HostRemoved && h.Value.State != ipam.HostRemoved &&
				name != h.Value.Name {
				a.problem("the hosts %s and %s both have the slot %d", name, h.Value.Name, other.Slot)
			}
		}
	case ledger.AttachmentKeys:
		delete(a.attachments, ipam.ID(w.Key[1:]))
		if at, ok := ledger.Decoded[ipam.Attachment](w.After); ok {
			a.attachments[ipam.ID(w.Key[1:])] = at.Value
		}
	case ledger.SubnetKeys:
		if sub, ok := ledger.Decoded[ipam.Subnet](w.After); ok {
			a.subnets[sub.Value.ID] = true
		}
	}
}

// gone forgets a subnet under its old key. A resized subnet may come under a smaller key in the same commit.
func (a *audit) gone(w store.Foreign) {
	if w.Key[0] != ledger.SubnetKeys {
		return
	}
	if sub, ok := ledger.Decoded[ipam.Subnet](w.Before); ok {
		delete(a.subnets, sub.Value.ID)
	}
}

// event checks that no event id occurs twice, even if the first event was trimmed.
func (a *audit) event(w store.Foreign, written map[uint64]*ipam.Event) {
	id := ledger.EventID(w.Key)
	e, err := ipam.DecodeEvent(id, w.After)
	if err != nil {
		a.problem("event %d: %v", id, err)
		return
	}
	if other := a.events[id]; other != nil {
		a.problem("the event id %d is there twice: %+v, %+v", id, other, e)
	}
	a.events[id], written[id] = e, e
}

// writer checks that an event comes from a host that takes part, that its id is one of that host's ids, and that
// the ids of a host grow.
func (a *audit) writer(before map[string]ipam.Host, id uint64, e *ipam.Event) {
	now, was := a.hosts[e.Host], before[e.Host]
	if was.State == ipam.HostRemoved && now.State == ipam.HostRemoved {
		a.problem("host %s, which was removed, wrote %+v", e.Host, e)
	}
	if slot := uint64(now.Slot); id%ipam.MaxHosts != slot {
		a.problem("host %s, of slot %d, wrote the event %d", e.Host, slot, id)
	}
	if id <= a.last[e.Host] {
		a.problem("host %s wrote the event %d after %d", e.Host, id, a.last[e.Host])
	}
	a.last[e.Host] = id
}

// lease checks that an address is free before it gets another holder, with an event for each step.
func (a *audit) lease(w store.Foreign, written map[uint64]*ipam.Event) {
	subnet, addr, _ := ledger.LeaseKeyParts(w.Key)
	read := func(raw []byte) *ipam.Lease {
		if raw == nil {
			return nil
		}
		l, err := ipam.DecodeLease(addr, raw)
		if err != nil {
			a.problem("%v", err)
			return nil
		}
		return l
	}
	before, after := read(w.Before), read(w.After)
	if known := a.leases[auditKey{subnet, addr}]; (known == nil) != (before == nil) {
		a.problem("%s: what was there before is %+v, it was %+v", addr, before, known)
	}
	delete(a.leases, auditKey{subnet, addr})
	if after != nil {
		a.leases[auditKey{subnet, addr}] = after
	}
	same := before.Held() && after.Held() && before.ID == after.ID
	switch {
	case same && (before.Attachment != after.Attachment || before.MAC != after.MAC || before.Kind != after.Kind):
		a.problem("%s changed hands: %+v, %+v", addr, before, after)
	case before.Held() && after.Held() && !same &&
		(before.MAC == (ipam.MAC{}) || before.MAC != after.MAC || before.Attachment != after.Attachment):
		a.problem("%s was taken out of somebody's hands: %+v, %+v", addr, before, after)
	case after.Held() && !same:
		if e := a.events[after.ID]; e == nil || e.Address != addr || written[after.ID] == nil {
			a.problem("%s is held by %+v, and its event is %+v", addr, after, e)
		}
	case before.Held() && before.Kind != ipam.Gateway && !after.Held():
		for _, e := range written {
			if e.Lease == before.ID && (e.Verb == ipam.LeaseReleased || e.Verb == ipam.HeadroomReleased) {
				return
			}
		}
		a.problem("%s was released without an event: %+v, %+v", addr, before, after)
	}
}

// indexProblem compares the index of a Service with an index loaded from the store as the Service sees it. It
// returns "" if they are the same.
func indexProblem(ctx context.Context, s *service.Service) string {
	wrong, err := s.Ledger.Verify(ctx)
	if err != nil {
		return err.Error()
	}
	if len(wrong) == 0 {
		return ""
	}
	return "the index (-) and the records (+) differ:\n  " + strings.Join(wrong, "\n  ")
}

// changes makes the edits of a line, which plus signs separate.
func changes(t testing.TB, s *service.Service, line string, dry bool) error {
	_, err := s.Edit(context.Background(), ipam.EditOptions{DryRun: dry},
		ipamtest.Edits(t, strings.ReplaceAll(line, " + ", "\n"))...)
	return err
}
