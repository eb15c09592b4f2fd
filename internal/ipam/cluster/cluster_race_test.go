package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
	"berth/internal/ipam/service"
	"berth/internal/ipam/stores"
	"berth/store"
)

// clusterRace is callers on three hosts at the same time.
type clusterRace struct {
	*testing.T
	*rig

	mu    sync.Mutex
	hands map[netip.Addr]ipam.MAC
	fates map[string]int // how requests ended
	macs  int
}

// took notes the holder of an address, and fails if there is another one.
func (r *clusterRace) took(addr netip.Addr, who ipam.MAC) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if other, taken := r.hands[addr]; taken {
		r.Errorf("%s is in the hands of %s and %s", addr, other, who)
	}
	r.hands[addr] = who
}

func (r *clusterRace) newMAC() ipam.MAC {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.macs++
	return ipam.MAC{2, 0, 0, 0, byte(r.macs >> 8), byte(r.macs)}
}

// fate sorts an error: done, not done at all, or unknown, which the records tell.
func (r *clusterRace) fate(err error) string {
	fate := "?"
	switch {
	case err == nil:
		fate = "done"
	case errors.Is(err, store.ErrUnknown):
		fate = "unknown"
	case errors.Is(err, store.ErrAway), errors.Is(err, store.ErrClosed):
		fate = "away"
		time.Sleep(100 * time.Microsecond) // otherwise the callers waste their requests on the outage
	case errors.Is(err, ipam.ErrHost): // another daemon of the host took over
		fate = "refused"
	case errors.Is(err, ipam.ErrInUse):
		fate = "busy"
	case errors.Is(err, ipam.ErrExhausted):
		fate = "full"
	case errors.Is(err, ipam.ErrNotFound), errors.Is(err, ipam.ErrOverlap):
		fate = "no"
	default:
		r.Errorf("%v", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fates[fate]++
	return fate
}

// holds looks up the address of a caller in the records.
func (r *clusterRace) holds(who ipam.MAC) (netip.Addr, bool) {
	for a, in := range r.audit.inHands() {
		if in.mac == who {
			return a, true
		}
	}
	return netip.Addr{}, false
}

// ask takes an address through a pool; the zero address if none was given.
func (r *clusterRace) ask(h *rigHost, pool ipam.ID, want netip.Addr) (netip.Addr, ipam.MAC) {
	who := r.newMAC()
	given, err := h.service().RequestAddress(context.Background(),
		ipam.AddressRequest{Pool: pool, MAC: who, Preferred: want})
	addr, ok := given.Addr(), err == nil
	if r.fate(err) == "unknown" {
		addr, ok = r.holds(who)
	}
	if ok {
		r.took(addr, who)
	}
	return addr, who
}

// back releases an address, and tells whether that was done.
func (r *clusterRace) back(h *rigHost, pool ipam.ID, addr netip.Addr, who ipam.MAC) bool {
	r.mu.Lock()
	delete(r.hands, addr) // before the release: another caller may get it at once
	r.mu.Unlock()
	err := h.service().ReleaseAddress(context.Background(), pool, addr)
	if fate := r.fate(err); fate != "done" {
		if _, still := r.holds(who); still {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.hands[addr] = who
			return false
		}
		if fate != "unknown" {
			r.Errorf("%s was not given back (%v), and is free", addr, err)
		}
	}
	return true
}

// drop releases a pool with all its addresses, and tries until that is done.
func (r *clusterRace) drop(h *rigHost, pool ipam.ID, held map[netip.Addr]ipam.MAC) {
	r.mu.Lock()
	for addr := range held {
		delete(r.hands, addr)
	}
	r.mu.Unlock()
	for r.fate(h.service().ReleasePool(context.Background(), pool)) != "done" {
	}
}

// client runs containers on a host, in one Docker network after the other.
func (r *clusterRace) client(h *rigHost, client int) {
	draw := rand.New(rand.NewSource(int64(client)))
	for range 5 {
		var pool ipam.ID
		for pool == (ipam.ID{}) {
			g, err := h.service().RequestPool(context.Background(), ipam.PoolRequest{Network: "lan"})
			r.fate(err)
			pool = g.ID // a pool with an unknown outcome holds nothing
		}
		held := map[netip.Addr]ipam.MAC{}
		for range 40 {
			if len(held) > 0 && draw.Intn(2) == 0 {
				for addr, who := range held {
					if r.back(h, pool, addr, who) {
						delete(held, addr)
					}
					break
				}
				continue
			}
			want := netip.Addr{}
			if draw.Intn(2) == 0 { // all callers want the same few addresses
				want = netip.AddrFrom4([4]byte{10, 77, 0, byte(2 + draw.Intn(6))})
			}
			if addr, who := r.ask(h, pool, want); r.mine(addr, who) {
				held[addr] = who
			}
		}
		r.drop(h, pool, held)
	}
}

func (r *clusterRace) mine(addr netip.Addr, who ipam.MAC) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return addr.IsValid() && r.hands[addr] == who
}

// faults cuts hosts off, loses their outcomes and restarts their daemons, until stop is closed.
func (r *clusterRace) faults(stop <-chan struct{}) (old []*service.Service) {
	draw := rand.New(rand.NewSource(1))
	for n := 0; ; n++ {
		select {
		case <-stop:
			return old
		default:
		}
		h, cable := r.hosts[draw.Intn(3)], errors.New("the cable was pulled")
		switch draw.Intn(7) {
		case 0:
			h.handle().Cut(cable)
		case 1:
			h.handle().LoseNext(draw.Intn(2) == 0)
		case 2:
			h.handle().CutNext(draw.Intn(2) == 0, cable)
		case 3:
			h.handle().Lag(draw.Intn(3) > 0)
		case 4:
			h.skew(time.Duration(draw.Intn(2000)-1000) * time.Microsecond)
		case 5:
			if n%8 > 0 {
				continue
			}
			was := h.service()
			if draw.Intn(2) == 0 {
				_ = was.Ledger.Store().Close()
			} else {
				old = append(old, was)
			}
			if err := h.start(); err != nil {
				r.Errorf("host %s starts again: %v", h.name, err)
				return old
			}
		}
		time.Sleep(time.Duration(draw.Intn(300)) * time.Microsecond) // lets requests run between two faults
		for _, h := range r.hosts {
			if draw.Intn(2) == 0 {
				h.handle().Heal()
			}
		}
	}
}

// replan changes the plan of the network while the callers run.
func (r *clusterRace) replan(stop <-chan struct{}) {
	draw := rand.New(rand.NewSource(2))
	for {
		select {
		case <-stop:
			return
		default:
		}
		h, from := r.hosts[draw.Intn(3)], 40+draw.Intn(20)
		edits := []string{"exclude lan", "include lan", "pool.rm lan", "pool lan", "network.set lan tag.n=1"}
		line := fmt.Sprintf("%s 10.77.0.%d-10.77.0.%d", edits[draw.Intn(len(edits))], from, from+draw.Intn(3))
		r.fate(changes(r.T, h.service(), line, false))
		r.fate(rigRun(context.Background(), h.service().Ledger))
	}
}

// LN-12, BO-1, GA-22: whatever three hosts do at the same time, and whatever faults hit them, no address has two
// holders, every answer is true, and in the end each host knows all records. The histories of test/cluster check
// that a serial order explains everything.
func TestClusterRaces(t *testing.T) {
	r := &clusterRace{T: t, rig: newRig(t), hands: map[netip.Addr]ipam.MAC{}, fates: map[string]int{}}
	defer r.rig.close()
	ipamtest.Must(t, changes(t, r.hosts[0].service(), "network lan space=global subnet=10.77.0.0/26,gw=10.77.0.1,pool",
		false))
	stop := make(chan struct{})
	var clients, others sync.WaitGroup
	var old []*service.Service
	for i := range 9 {
		clients.Go(func() { r.client(r.hosts[i%3], i) })
	}
	others.Go(func() { old = r.faults(stop) })
	others.Go(func() { r.replan(stop) })
	clients.Wait()
	close(stop)
	others.Wait()
	for _, s := range old {
		_ = s.Ledger.Store().Close()
	}
	r.settle()
	for _, fate := range []string{"done", "unknown", "away", "busy"} {
		if r.fates[fate] < 10 {
			t.Errorf("only %d requests ended as %s: the test shows nothing of it", r.fates[fate], fate)
		}
	}
}

// settle heals all hosts, and compares their records with the answers that the callers got.
func (r *clusterRace) settle() {
	for round := range 4 {
		for _, h := range r.hosts {
			h.handle().Lag(false)
			h.handle().Heal()
			if err := rigRun(context.Background(), h.service().Ledger); err != nil && round > 1 {
				r.Errorf("host %s: %v", h.name, err)
			}
		}
	}
	if problems, err := stores.CheckStore(context.Background(), r.truth); err != nil || len(problems) > 0 {
		r.Errorf("%q, %v", problems, err)
	}
	for _, h := range r.hosts {
		if p := indexProblem(context.Background(), h.service()); p != "" {
			r.Errorf("host %s: %s", h.name, p)
		}
	}
	now := r.audit.inHands()
	for _, p := range r.audit.found() {
		r.Errorf("%s", p)
	}
	var wrong []string
	for a, who := range r.hands {
		if now[a].mac != who {
			wrong = append(wrong, fmt.Sprintf("%s is in the hands of %s; the records say %+v", a, who, now[a]))
		}
		delete(now, a)
	}
	for a, in := range now {
		wrong = append(wrong, fmt.Sprintf("%s is in nobody's hands; the records say %+v", a, in))
	}
	slices.Sort(wrong)
	for _, w := range wrong {
		r.Errorf("%s", w)
	}
}
