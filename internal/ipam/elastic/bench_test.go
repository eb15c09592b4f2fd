package elastic_test

import (
	"context"
	"net/netip"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/service"
	"berth/store"
	"berth/store/bolt"
	"berth/store/mem"
)

// bench is a daemon's records with a Docker network on net1, and what its witness says.
type bench struct {
	*service.Service
	t         testing.TB
	pool      ipam.ID
	published map[string][]string // by container
	there     map[string]bool     // containers of the engine
	deaf      bool                // its events do not come
	driver    string              // of the Docker network
	engine    *engine             // what it says of who has a lease; nil: nothing
	path      string
	before    func(store.Store) store.Store // what stands before its file; nil: nothing
	shared    *mem.Store                    // the store that it shares; nil: it has one of its own
	cut       *cutting                      // the handle of that
	member    *ipam.Member
	host      string        // the daemon's name
	later     time.Duration // what the clock is ahead
	moment    *atomic.Int64 // of the host, in nanoseconds, where it goes on only by the test; nil: it goes on
}

const (
	lan     = "10.20.0.0/24"
	elastic = "203.0.113.10"
	next    = "203.0.113.11"
)

func addr(text string) netip.Addr { return netip.MustParseAddr(text) }

// begin opens a bench with an elastic range of four addresses, of which the account default has the first two.
func begin(t testing.TB) *bench {
	b := &bench{t: t, host: "h1", published: map[string][]string{}, path: filepath.Join(t.TempDir(), "berth.db")}
	b.begin()
	return b
}

func (b *bench) begin() {
	b.open(false)
	b.edit(&ipam.CreateNetwork{Name: "net1", Subnets: []ipam.SubnetSpec{{CIDR: netip.MustParsePrefix(lan),
		Pool: true}}})
	on := "on"
	b.edit(&ipam.ModifyNetwork{Network: "net1", Elastic: &on})
	grant, err := b.RequestPool(b.t.Context(), ipam.PoolRequest{Network: "net1", CIDR: netip.MustParsePrefix(lan)})
	if err != nil {
		b.t.Fatal(err)
	}
	b.pool = grant.ID
	b.edit(&ipam.AddElasticRange{Range: rangeAt(b.t, "203.0.113.10+4")})
	b.edit(&ipam.AllocateElastic{})
	b.edit(&ipam.AllocateElastic{})
}

// freeze opens the bench again with a moment that goes on only by the test, so that nothing is looked at by itself.
func (b *bench) freeze() {
	b.moment = new(atomic.Int64)
	b.again(false)
}

// passes has the moment go on.
func (b *bench) passes(d time.Duration) { b.moment.Add(int64(d)) }

func (b *bench) open(off bool) {
	b.t.Helper()
	var moment func() time.Duration
	if at := b.moment; at != nil {
		moment = func() time.Duration { return time.Duration(at.Load()) }
	}
	st, err := b.openStore()
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { st.Close() })
	b.Service, err = service.Open(context.Background(), service.Config{Store: st, Host: b.host, NoElastic: off,
		Member: b.member, Moment: moment, Now: func() time.Time { return time.Now().Add(b.later).Truncate(time.Microsecond) },
		Known: ipam.Known{
			Publishes: func(is func(string) bool) (string, []string) {
				for name, ports := range b.published {
					if is(name) {
						return name, ports
					}
				}
				return "", nil
			},
			Container: func(name string) (string, bool) {
				if b.there[name] && !b.deaf {
					return "id of " + name, true
				}
				return "", !b.deaf
			},
			NetworkDriver: func(string, netip.Prefix) string { return b.driver },
			Holder:        b.engine.holder(), Watch: b.engine.watch(),
		}})
	if err != nil {
		b.t.Fatal(err)
	}
}

// openStore opens the file of its own, or joins what it shares.
func (b *bench) openStore() (st store.Store, err error) {
	if b.shared != nil {
		b.cut = &cutting{Store: b.shared.Join()}
		return b.cut, nil
	}
	if st, err = bolt.Open(context.Background(), bolt.Config{Path: b.path, NoSync: true}); err != nil {
		return nil, err
	}
	if b.before != nil {
		st = b.before(st)
	}
	return st, nil
}

// again opens the same records once more, as after a restart.
func (b *bench) again(off bool) {
	b.t.Helper()
	if err := b.Ledger.Store().Close(); err != nil {
		b.t.Fatal(err)
	}
	b.open(off)
}

func (b *bench) edit(e ipam.Edit) ipam.Outcome {
	b.t.Helper()
	out, err := b.Edit(b.t.Context(), ipam.EditOptions{}, e)
	if err != nil {
		b.t.Fatalf("%s: %v", e.Op(), err)
	}
	b.consistent()
	return out
}

// consistent holds the index to the records.
func (b *bench) consistent() {
	b.t.Helper()
	wrong, err := b.Ledger.Verify(b.t.Context())
	for n := 0; n < 100 && err == nil && len(wrong) > 0; n++ { // a keeper may have written between the two
		wrong, err = b.Ledger.Verify(b.t.Context())
	}
	if err != nil || len(wrong) > 0 {
		b.t.Fatalf("the index and the records differ: %q %v", wrong, err)
	}
}

// refused makes an edit that is refused with a code, and with words that name what is in the way.
func (b *bench) refused(e ipam.Edit, code ipam.Code, words ...string) {
	b.t.Helper()
	_, err := b.Edit(b.t.Context(), ipam.EditOptions{}, e)
	if err == nil || ipam.CodeOf(err) != code {
		b.t.Fatalf("%s is answered with %v, not with %s", e.Op(), err, code)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			b.t.Errorf("%q does not say %q", err, word)
		}
	}
	b.consistent()
}

func (b *bench) reserve(owner, ip string) {
	b.t.Helper()
	b.edit(&ipam.AddReservation{Network: "net1", Owner: owner, Wishes: []ipam.Wish{{Address: addr(ip)}}})
}

// start has a container take an address, as the engine does when it starts.
func (b *bench) start(name string) netip.Addr {
	b.t.Helper()
	got, err := b.RequestAddress(b.t.Context(), ipam.AddressRequest{Pool: b.pool, Name: name})
	if err != nil {
		b.t.Fatal(err)
	}
	return got.Addr()
}

func (b *bench) stop(ip netip.Addr) {
	b.t.Helper()
	if err := b.ReleaseAddress(b.t.Context(), b.pool, ip); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) show(ip string) ipam.ElasticInfo {
	b.t.Helper()
	info, err := b.Elastic(b.t.Context(), addr(ip))
	if err != nil {
		b.t.Fatal(err)
	}
	return info
}

// wanted is what an edge that begins to listen now is told first.
func (b *bench) wanted() ipam.EdgeNews {
	b.t.Helper()
	for news, err := range b.EdgeNews(b.t.Context(), false) {
		if err != nil {
			b.t.Fatal(err)
		}
		return news
	}
	b.t.Fatal("an edge is told nothing")
	return ipam.EdgeNews{}
}

func (b *bench) report(r ipam.EdgeReport) {
	b.t.Helper()
	if err := b.ReportEdge(b.t.Context(), r); err != nil {
		b.t.Fatal(err)
	}
	b.consistent()
}
