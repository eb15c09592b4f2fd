package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"berth/internal/allocator"
	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
	"berth/internal/ipam/service"
	"berth/internal/ipam/stores"
	"berth/store"
	"berth/store/mem"
	"berth/store/storetest"
)

var (
	errCut  = errors.New("no route to etcd")
	errDead = errors.New("the machine is off")
)

var sharedMark = [4]byte{0xc1, 0x05, 0x7e, 0x12}

// wire is between a host and one of its stores. It fails everything after a number of updates, like a machine
// that dies.
type wire struct {
	store.Shared
	left  *int  // updates of all the machine's stores; negative: any number
	after *bool // the last update is made, but its outcome is lost
}

func (w *wire) Update(ctx context.Context, fn func(store.Tx) error) error {
	switch {
	case *w.left == 0:
		return errDead
	case *w.left > 0:
		*w.left--
	}
	err := w.Shared.Update(ctx, fn)
	if *w.left == 0 && *w.after && err == nil {
		return errDead
	}
	return err
}

func (w *wire) View(ctx context.Context, fn func(store.Tx) error) error {
	if *w.left == 0 {
		return errDead
	}
	return w.Shared.View(ctx, fn)
}

// sharingHost is one host of a cluster in a test. Nothing runs by itself: look does what Run does, once.
type sharingHost struct {
	t      rapid.TB
	name   string
	id     ipam.ID
	common *mem.Store
	own    *mem.Store
	now    time.Time
	left   int
	after  bool

	handle *mem.Store
	ours   *storetest.Faulty // on own, for Shared
	*Shared
	warned []string
}

func newSharingHost(t rapid.TB, common *mem.Store, name string) *sharingHost {
	h := &sharingHost{t: t, name: name, id: ipam.NewID(), common: common, own: mem.New(),
		now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), left: -1}
	h.boot()
	return h
}

// boot starts a new daemon with what the host has kept. The store is in reach, or not, as before.
func (h *sharingHost) boot() {
	h.t.Helper()
	var away error
	if h.handle != nil {
		away = h.handle.Reach().Err
		_ = h.handle.Close()
	}
	h.left, h.handle = -1, h.common.Join()
	if away != nil {
		h.handle.Cut(errCut)
	}
	member := &ipam.Member{Host: h.id, Session: ipam.NewID(), Mark: sharedMark}
	opened := false
	h.ours = storetest.NewFaulty(&wire{h.own, &h.left, &h.after})
	s, err := OpenShared(context.Background(),
		SharedConfig{Own: h.ours, Mark: sharedMark, Host: h.name,
			Now: func() time.Time { return h.now }, Reach: func() store.Reach { return h.handle.Reach() },
			Warn: func(err error) { h.warned = append(h.warned, err.Error()) },
			Open: func(ctx context.Context) (*service.Service, error) {
				if r := h.handle.Reach(); r.Err != nil {
					return nil, r.Err
				}
				if opened {
					_ = h.handle.Close()
					h.handle = h.common.Join()
				}
				opened = true
				return service.Open(ctx,
					service.Config{Store: &wire{h.handle, &h.left, &h.after}, Host: h.name,
						Now: func() time.Time { return h.now }, Member: member, Memories: 6})
			}})
	fine(h.t, err)
	h.Shared = s
	if away != nil {
		h.endFirst() // Run would have tried to open it
	}
}

// bootLater is boot one second later.
func (h *sharingHost) bootLater() {
	h.t.Helper()
	h.now = h.now.Add(time.Second)
	h.boot()
}

// attempt makes one attempt of Run to open the shared store.
func (h *sharingHost) attempt() (*service.Service, error) {
	if svc, _ := h.service(); svc != nil {
		return svc, nil
	}
	svc, err := h.Shared.open(context.Background())
	if err == nil {
		h.setService(svc)
	}
	h.endFirst()
	return svc, err
}

// open opens the shared store.
func (h *sharingHost) open() *service.Service {
	h.t.Helper()
	svc, err := h.attempt()
	fine(h.t, err)
	return svc
}

// look does all that Run does while the store is in reach.
func (h *sharingHost) look() error {
	svc, err := h.attempt()
	if err != nil {
		return err
	}
	return h.doAll(context.Background(), svc, &looking{})
}

func (h *sharingHost) mustLook() {
	h.t.Helper()
	fine(h.t, h.look())
}

func (h *sharingHost) edit(edits ...ipam.Edit) {
	h.t.Helper()
	if _, err := h.Edit(context.Background(), ipam.EditOptions{}, edits...); err != nil {
		h.t.Fatal(err)
	}
}

// fine ends a test on an error.
func fine(t rapid.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// pool attaches a Docker network to the network lan.
func (h *sharingHost) pool() ipam.ID {
	h.t.Helper()
	grant, err := h.RequestPool(context.Background(), ipam.PoolRequest{Network: "lan", CIDR: lanCIDR})
	fine(h.t, err)
	return grant.ID
}

var lanCIDR = netip.MustParsePrefix("10.77.0.0/24")

// lanWith returns the edit that plans the network lan with headroom.
func lanWith(headroom int, cidr netip.Prefix) *ipam.CreateNetwork {
	return &ipam.CreateNetwork{Name: "lan", Space: ipam.GlobalSpace, Headroom: headroom,
		Subnets: []ipam.SubnetSpec{{CIDR: cidr, Gateway: cidr.Addr().Next(), Pool: true}}}
}

func testMAC(n int) ipam.MAC { return ipam.MAC{2, 0, 0, 0, byte(n >> 8), byte(n)} }

func (h *sharingHost) ask(req ipam.AddressRequest) (netip.Addr, error) {
	p, err := h.RequestAddress(context.Background(), req)
	if err == nil && lanCIDR.Contains(p.Addr()) && p.Bits() != lanCIDR.Bits() {
		h.t.Fatalf("%+v was answered with %s", req, p)
	}
	return p.Addr(), err
}

func (h *sharingHost) take(req ipam.AddressRequest) netip.Addr {
	h.t.Helper()
	addr, err := h.ask(req)
	fine(h.t, err)
	return addr
}

func (h *sharingHost) give(pool ipam.ID, addr netip.Addr) {
	h.t.Helper()
	fine(h.t, h.ReleaseAddress(context.Background(), pool, addr))
}

// refusedAway checks that a request is refused because the store is out of reach.
func (h *sharingHost) refusedAway(req ipam.AddressRequest) {
	h.t.Helper()
	addr, err := h.ask(req)
	if !errors.Is(err, ipam.ErrAway) {
		h.t.Fatalf("%+v out of reach: %s, %v", req, addr, err)
	}
	if text := told(err); !strings.Contains(text, "out of reach since 20") || !strings.Contains(text, "[status") {
		h.t.Fatalf("the refusal says not what is wrong: %s", text)
	}
}

// inStore lists the leases held in the shared store, except the subnet's gateway: "10.77.0.2 automatic a 02:..".
func inStore(t rapid.TB, common *mem.Store) (all []string) {
	t.Helper()
	for _, l := range leasesIn(t, common) {
		all = append(all, fmt.Sprintf("%s %s %s %s", l.Address, l.Kind, l.Host, cmpOr(l.MAC.String(), "-")))
	}
	return all
}

func cmpOr(text, none string) string {
	if text == "" {
		return none
	}
	return text
}

// leasesIn returns the held leases, by address, without the subnet's gateway.
func leasesIn(t rapid.TB, common *mem.Store) (all []*ipam.Lease) {
	t.Helper()
	handle := common.Join()
	defer handle.Close()
	err := handle.View(context.Background(), func(tx store.Tx) error {
		all = nil
		for rec, err := range tx.Scan(ledger.KindRange(ledger.LeaseKeys)) {
			if err != nil {
				return err
			}
			_, addr, _ := ledger.LeaseKeyParts(rec.Key)
			l, err := ipam.DecodeLease(addr, rec.Value)
			if err != nil {
				return err
			}
			if l.Held() && (l.Kind != ipam.Gateway || l.Attachment != (ipam.ID{})) {
				all = append(all, l)
			}
		}
		return nil
	})
	fine(t, err)
	return all
}

func heldAt(t rapid.TB, common *mem.Store, addr netip.Addr) *ipam.Lease {
	t.Helper()
	for _, l := range leasesIn(t, common) {
		if l.Address == addr {
			return l
		}
	}
	return nil
}

func isLease(t rapid.TB, common *mem.Store, addr netip.Addr, kind ipam.Kind, mac ipam.MAC) *ipam.Lease {
	t.Helper()
	l := heldAt(t, common, addr)
	if l == nil || l.Kind != kind || l.MAC != mac {
		t.Fatalf("%s in the store: %+v; want %s of MAC %s", addr, l, kind, mac)
	}
	return l
}

func isFree(t rapid.TB, common *mem.Store, addr netip.Addr) {
	t.Helper()
	if l := heldAt(t, common, addr); l != nil {
		t.Fatalf("%s is held in the store: %+v", addr, l)
	}
}

// sound checks the records of both stores.
func (h *sharingHost) sound() {
	h.t.Helper()
	for _, st := range []*mem.Store{h.own, h.common.Join()} {
		for _, check := range []func(context.Context, store.Store) ([]string, error){stores.CheckStore, CheckOwn} {
			problems, err := check(context.Background(), st)
			if err != nil || len(problems) > 0 {
				h.t.Fatalf("%v, %q", err, problems)
			}
		}
	}
}

// free lists the headroom that the host could give out, and checks that each address is claimed for it.
func (h *sharingHost) free(pool ipam.ID) (all []netip.Addr) {
	h.t.Helper()
	st := h.headroomOf(pool)
	if st == nil {
		return nil
	}
	for _, addr := range allocator.SortedAddrs(st.addrs) {
		sp := st.addrs[addr]
		if !sp.free() {
			continue
		}
		if l := heldAt(h.t, h.common, addr); l == nil || l.Kind != ipam.Headroom || l.ID != sp.Lease ||
			l.Attachment != pool || l.Host != h.name {
			h.t.Fatalf("host %s takes %s (lease %d) for its headroom, and in the store it is %+v", h.name, addr,
				sp.Lease, l)
		}
		all = append(all, addr)
	}
	return all
}

func newLan(t testing.TB, headroom int) (common *mem.Store, a *sharingHost, pool ipam.ID) {
	t.Helper()
	common = mem.New()
	a = newSharingHost(t, common, "a")
	a.open()
	a.edit(lanWith(headroom, lanCIDR))
	pool = a.pool()
	a.mustLook()
	return common, a, pool
}

func addrs(texts ...string) (all []netip.Addr) {
	for _, text := range texts {
		all = append(all, netip.MustParseAddr("10.77.0."+text))
	}
	return all
}

func mustAddr(text string) netip.Addr { return netip.MustParseAddr(text) }
