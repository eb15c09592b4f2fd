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

// bench is a daemon's records with a Docker network on net1, and what its witness reports.
type bench struct {
	*service.Service
	t         testing.TB
	pool      ipam.ID
	published map[string][]string // by container
	there     map[string]bool     // containers of the engine
	deaf      bool                // the engine's events do not arrive
	driver    string              // of the Docker network
	engine    *engine             // what the engine reports about lease holders; nil: nothing
	path      string
	before    func(store.Store) store.Store // wraps its file; nil: nothing
	shared    *mem.Store                    // the shared store; nil: the bench has its own
	cut       *cutting                      // the handle of the shared store
	member    *ipam.Member
	host      string        // the daemon's name
	later     time.Duration // how far the clock is ahead
	moment    *atomic.Int64 // the host's moment in nanoseconds if the test advances it; nil: real time

	// For scripts.
	runs     map[string]netip.Addr // given addresses, by container name
	seen     map[string]string     // what was last shown
	key      string                // the key of edits
	changed  []ipam.Event          // events of the last edit
	releases *room.Releases
	keeps    bool // a keeper runs, and ends stops it
	ends     func()
}

const (
	lan     = "10.20.0.0/24"
	elastic = "203.0.113.10" // E0 of scripts
	next    = "203.0.113.11" // E1
)

func addr(text string) netip.Addr { return netip.MustParseAddr(text) }

// begin opens a bench with an elastic range of four addresses. The account default has the first two.
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

// freeze reopens the bench with a moment that only the test advances, so that nothing is checked by itself.
func (b *bench) freeze() {
	b.moment = new(atomic.Int64)
	b.again(false)
}

// passes advances the moment.
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

// openStore opens the bench's own file, or joins the shared store.
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

// again reopens the same records, as after a restart.
func (b *bench) again(off bool) {
	b.t.Helper()
	must(b, b.Ledger.Store().Close())
	b.open(off)
}

// consistent checks the index against the records.
func (b *bench) consistent() {
	b.t.Helper()
	wrong, err := b.Ledger.Verify(b.t.Context())
	for n := 0; n < 100 && err == nil && len(wrong) > 0; n++ { // an assigner may have written meanwhile
		wrong, err = b.Ledger.Verify(b.t.Context())
	}
	if err != nil || len(wrong) > 0 {
		b.t.Fatalf("the index and the records differ: %q %v", wrong, err)
	}
}

// wanted returns the first news that an edge gets when it begins to listen now.
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
