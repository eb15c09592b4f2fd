package elastic_test

import (
	"context"
	"net/netip"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"berth/internal/ipam"
	room "berth/internal/ipam/elastic"
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

	// Of scripts.
	runs     map[string]netip.Addr // addresses that were given, by the names of containers
	seen     map[string]string     // what was shown last
	key      string                // of edits
	changed  []ipam.Event          // by the last edit
	releases *room.Releases
	keeps    bool // a keeper runs, which ends ends
	ends     func()
}

const (
	lan     = "10.20.0.0/24"
	elastic = "203.0.113.10" // E0 of scripts
	next    = "203.0.113.11" // E1
)

func addr(text string) netip.Addr { return netip.MustParseAddr(text) }

// begin opens a bench with an elastic range of four addresses, of which the account default has the first two.
func begin(t testing.TB) *bench {
	b := newBench(t, "h1")
	b.path = filepath.Join(t.TempDir(), "berth.db")
	b.begin()
	return b
}

func newBench(t testing.TB, host string) *bench {
	return &bench{t: t, host: host, published: map[string][]string{}, there: map[string]bool{},
		runs: map[string]netip.Addr{}, seen: map[string]string{}}
}

func (b *bench) begin() {
	b.open(false)
	b.plays(`
		network net1 subnet=10.20.0.0/24,pool
		elastic net1 on
	`)
	b.attach()
	b.plays(`
		range E0+4
		allocate
		allocate
	`)
}

// attach attaches a Docker network to net1.
func (b *bench) attach() {
	b.t.Helper()
	grant, err := b.RequestPool(b.t.Context(), ipam.PoolRequest{Network: "net1", CIDR: netip.MustParsePrefix(lan)})
	must(b, err)
	b.pool = grant.ID
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
	must(b, err)
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
	must(b, err)
	b.releases = room.NewReleases(b.Ledger)
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
	must(b, b.Ledger.Store().Close())
	b.open(off)
}

// consistent holds the index to the records.
func (b *bench) consistent() {
	b.t.Helper()
	wrong, err := b.Ledger.Verify(b.t.Context())
	for n := 0; n < 100 && err == nil && len(wrong) > 0; n++ { // an assigner may have written between the two
		wrong, err = b.Ledger.Verify(b.t.Context())
	}
	if err != nil || len(wrong) > 0 {
		b.t.Fatalf("the index and the records differ: %q %v", wrong, err)
	}
}

// wanted is what an edge that begins to listen now is told first.
func (b *bench) wanted() ipam.EdgeNews {
	b.t.Helper()
	for news, err := range b.EdgeNews(b.t.Context(), false) {
		must(b, err)
		return news
	}
	b.t.Fatal("an edge is told nothing")
	return ipam.EdgeNews{}
}

func must(b *bench, err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}
