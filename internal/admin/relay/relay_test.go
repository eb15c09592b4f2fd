package relay

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"berth/internal/ipam"
)

func ask(within time.Duration) ipam.LANAsk {
	return ipam.LANAsk{Verb: ipam.LANTake, Parent: "eth0", Within: ipam.Duration(within)}
}

// connected is an edge that answers questions with does, several at a time. If does is nil, it never answers.
func connected(ctx context.Context, r *Relay, does func(ipam.LANAsk) ipam.LANAnswer) {
	go func() {
		for q := range r.Asks(ctx) {
			if does == nil {
				continue
			}
			go func() {
				a := does(q)
				a.ID = q.ID
				r.Answer(a)
			}()
		}
	}()
}

// address answers with the parent's last byte as an address, which shows whose answer it is.
func address(q ipam.LANAsk) ipam.LANAnswer {
	return ipam.LANAnswer{Lease: ipam.LANLease{Address: q.Address}}
}

// Without an edge, the answer also says that the interface is missing, and each thing once.
func TestNoEdge(t *testing.T) {
	for _, c := range []struct{ parent, says string }{
		{"lo", "cannot send a request to the LAN on lo: no edge is connected on this host, and only an edge can use " +
			"its LANs: start berth edge (systemctl enable --now berth-edge.service)"},
		{"nosuchif0", "cannot send a request to the LAN on nosuchif0: no edge is connected on this host, and only an " +
			"edge can use its LANs: start berth edge (systemctl enable --now berth-edge.service); and this host has no interface " +
			"nosuchif0 (`ip link` lists its interfaces)"},
	} {
		synctest.Test(t, func(t *testing.T) {
			q := ask(time.Second)
			q.Parent = c.parent
			if a, err := New().Ask(t.Context(), q); err != nil || a.Error != c.says {
				t.Errorf("%s: %+v (%v)", c.parent, a, err)
			}
		})
	}
}

func TestAsk(t *testing.T) {
	for _, c := range []struct {
		name    string
		edge    func(ctx context.Context, r *Relay)
		failure ipam.LANFailure
		after   time.Duration
	}{
		{"nobody is there", func(context.Context, *Relay) {}, ipam.LANNoEdge, comes},
		{"one answers", func(ctx context.Context, r *Relay) { connected(ctx, r, address) }, "", 0},
		{"one comes", func(ctx context.Context, r *Relay) {
			time.AfterFunc(comes/2, func() { connected(ctx, r, address) })
		}, "", comes / 2},
		{"one does not answer", func(ctx context.Context, r *Relay) { connected(ctx, r, nil) }, ipam.LANNoEdge,
			10*time.Second + longer},
		{"one goes in the middle", func(ctx context.Context, r *Relay) {
			ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
			context.AfterFunc(ctx, cancel)
			connected(ctx, r, nil)
		}, ipam.LANNoEdge, 3 * time.Second},
		{"one is stopped, and another one comes", func(ctx context.Context, r *Relay) {
			connected(ctx, r, nil)
			synctest.Wait()
			connected(ctx, r, address)
		}, "", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := New()
				c.edge(t.Context(), r)
				synctest.Wait()
				begun := time.Now()
				q := ask(10 * time.Second)
				q.Address = netip.MustParseAddr("192.0.2.7")
				a, err := r.Ask(t.Context(), q)
				if err != nil || a.Failure != c.failure || (a.Failure == "") != (a.Lease.Address == q.Address) ||
					(a.Failure == "") != (a.Error == "") {
					t.Errorf("answered %+v (%v)", a, err)
				}
				if took := time.Since(begun); took != c.after {
					t.Errorf("answered after %s, and not after %s", took, c.after)
				}
				if len(r.asked) > 0 {
					t.Errorf("%d questions are kept", len(r.asked))
				}
			})
		})
	}
}

// TestAsks: each of many questions gets its own answer, in whatever order the answers come.
func TestAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := New()
		connected(t.Context(), r, func(q ipam.LANAsk) ipam.LANAnswer {
			time.Sleep(time.Duration(255-int(q.Address.As4()[3])) * time.Millisecond)
			return address(q)
		})
		var wg sync.WaitGroup
		for i := range 256 {
			wg.Go(func() {
				q := ask(10 * time.Second)
				q.Address = netip.AddrFrom4([4]byte{192, 0, 2, byte(i)})
				a, err := r.Ask(t.Context(), q)
				if err != nil || a.Lease.Address != q.Address {
					t.Errorf("asked for %s, answered %+v (%v)", q.Address, a, err)
				}
			})
		}
		wg.Wait()
	})
}

// TestAskEnds: a question whose caller has stopped waiting is dropped. Its answer goes to nobody.
func TestAskEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := New()
		var asked ipam.LANAsk
		connected(t.Context(), r, func(q ipam.LANAsk) ipam.LANAnswer {
			asked = q
			<-t.Context().Done()
			return address(q)
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := r.Ask(ctx, ask(time.Minute)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("an error is %v", err)
		}
		synctest.Wait()
		if r.Answer(ipam.LANAnswer{ID: asked.ID}) || asked.ID == 0 {
			t.Errorf("the answer to %d is taken", asked.ID)
		}
	})
}

// TestBound: questions above the limit are refused at once, and the others are not affected.
func TestBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := New()
		connected(t.Context(), r, func(q ipam.LANAsk) ipam.LANAnswer {
			time.Sleep(5 * time.Second)
			return address(q)
		})
		synctest.Wait()
		for range atOnce {
			go func() {
				if a, err := r.Ask(t.Context(), ask(10*time.Second)); err != nil || a.Failure != "" {
					t.Errorf("answered %+v (%v)", a, err)
				}
			}()
		}
		synctest.Wait()
		begun := time.Now()
		if a, err := r.Ask(t.Context(), ask(10*time.Second)); err != nil || a.Failure != ipam.LANNoEdge ||
			time.Since(begun) > 0 {
			t.Errorf("answered %+v (%v) after %s", a, err, time.Since(begun))
		}
		time.Sleep(6 * time.Second)
	})
}
