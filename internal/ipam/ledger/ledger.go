package ledger

import (
	"context"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"berth/internal/ipam"
	"berth/store"
)

// Config configures a Ledger. Store and Host are mandatory.
type Config struct {
	Store     store.Store
	Host      string               // this host's name, written in leases and events
	Now       func() time.Time     // default: time.Now
	Bases     []ipam.Base          // from which subnets are carved if a pool request names none
	Memories  int                  // released addresses remembered per subnet; default: defaultMemories
	Retention ipam.Retention       // of events; a zero field means its default
	Forgets   bool                 // the state is rebuilt from the running containers
	Member    *ipam.Member         // of a host that shares the store; nil: the store is the host's own
	Known     ipam.Known           // observations of the witness of this host's engine
	NoElastic bool                 // elastic addresses are turned off
	Moment    func() time.Duration // since the host's start, on the clock that its edge reads; default: since New
	Mends     bool                 // the store is opened for a repair; the host does not take part

	// Upgrading opens a state of an older format.
	Upgrading Upgrading

	// AskLAN sends and receives on the LANs of this host; nil: that is impossible (ipam.LANNoEdge).
	AskLAN ipam.AskLAN
}

// defaultMemories is the number of released addresses whose holders a subnet remembers.
const defaultMemories = 4096

// Ledger keeps the records of one store and their index. Its methods are safe for concurrent use.
type Ledger struct {
	store    store.Store
	host     string
	now      func() time.Time
	bases    []ipam.Base
	memories int
	retain   ipam.Retention
	forgets  bool
	member   *ipam.Member
	known    ipam.Known
	mends    bool

	upgrading Upgrading
	noElastic bool
	moment    func() time.Duration
	edges     edges
	askLAN    ipam.AskLAN
	page      int // records that one transaction ends at most: an attachment may have millions of leases

	mu      sync.Mutex // guards index, settled
	index   *Index
	settled settledEvents

	joined  bool           // the host takes part in the cluster
	begun   ipam.StoreMark // behind the events from before the store was opened
	opened  uint64         // the last of these events
	clients clientLocks
	changes sync.Pool     // of *Change
	trim    chan struct{} // wakes service.Run when there are too many events

	asked     atomic.Uint64      // number of changes begun
	reverts   atomic.Uint64      // number of changes that were reverted in the index
	importing atomic.Bool        // an import runs, or is reverted
	guesses   atomic.Uint64      // number of leases under a guessed name
	told      [256]atomic.Uint64 // number of written events, by verb
}

// New makes a Ledger over a store. Load reads the records and Join makes the host take part, in this order.
func New(cfg Config) *Ledger {
	l := &Ledger{
		store: cfg.Store, host: cfg.Host, bases: cfg.Bases, memories: cfg.Memories,
		retain: cfg.Retention.WithDefaults(), forgets: cfg.Forgets, member: cfg.Member,
		known: cfg.Known, mends: cfg.Mends, page: PageSize, trim: make(chan struct{}, 1),
		upgrading: cfg.Upgrading, noElastic: cfg.NoElastic, moment: cfg.Moment, askLAN: cfg.AskLAN,
	}
	if l.member != nil {
		l.page = SharedPageSize
	}
	clock := cfg.Now
	if clock == nil {
		clock = time.Now
	}
	// Only wall-clock times are kept, because records have no others. A monotonic reading in the index would not follow
	// a jump of the clock, but the records would.
	l.now = func() time.Time { return clock().Round(0) }
	if l.moment == nil {
		begun := time.Now()
		l.moment = func() time.Duration { return time.Since(begun) }
	}
	if l.upgrading.Steps == nil {
		l.upgrading.Steps = upgrades()
	}
	if l.memories == 0 {
		l.memories = defaultMemories
	}
	l.changes.New = l.newChange
	return l
}

// Begin sets the mark behind the events that existed when the store was opened.
func (s *Ledger) Begin(behind ipam.StoreMark) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begun, s.opened = behind, s.index.lastEvent
}

// Store is the store of the records, for code that copies, closes or watches all of it.
func (s *Ledger) Store() store.Store { return s.store }

// View runs fn over the records alone, without the index. An error is fn's or the store's.
func (s *Ledger) View(ctx context.Context, fn func(store.Tx) error) error {
	return s.store.View(ctx, fn)
}

// Host is this host's name.
func (s *Ledger) Host() string { return s.host }

// Member is this host's part in a cluster, or nil if the store is the host's own.
func (s *Ledger) Member() *ipam.Member { return s.member }

// Now is the time of the ledger's clock.
func (s *Ledger) Now() time.Time { return s.now() }

// Known has the observations of the witness of this host's engine.
func (s *Ledger) Known() *ipam.Known { return &s.known }

// NoRelay is the error of questions to LANs if no edge can connect to the daemon.
const NoRelay = "no edge is connected to this daemon, and only an edge can use LANs"

// AskLAN sends a question to the edge of this host. It waits for the network, so no change may call it.
func (s *Ledger) AskLAN(ctx context.Context, ask ipam.LANAsk) (ipam.LANAnswer, error) {
	if s.askLAN == nil {
		return ipam.LANAnswer{Failure: ipam.LANNoEdge, Error: NoRelay}, nil
	}
	return s.askLAN(ctx, ask)
}

// Bases are the blocks from which subnets are carved if a pool request names none, in order.
func (s *Ledger) Bases() []ipam.Base { return s.bases }

// SetBases replaces the bases. Call it only while the store is being opened.
func (s *Ledger) SetBases(all []ipam.Base) { s.bases = all }

// Page is the most records that one transaction removes.
func (s *Ledger) Page() int { return s.page }

// Mends reports whether the store was opened for a repair.
func (s *Ledger) Mends() bool { return s.mends }

// Begun is the mark behind the events that existed when the store was opened.
func (s *Ledger) Begun() ipam.StoreMark { return s.begun }

// Retention is how long events are kept, how many, and how many bytes.
func (s *Ledger) Retention() ipam.Retention { return s.retain }

// TrimWanted receives a token when there are too many events.
func (s *Ledger) TrimWanted() <-chan struct{} { return s.trim }

// Asked is the number of changes begun, including those of imports.
func (s *Ledger) Asked() uint64 { return s.asked.Load() }

// Reverts is the number of changes that did not commit and were reverted in the index. Watch does not report these.
func (s *Ledger) Reverts() uint64 { return s.reverts.Load() }

// StartImport makes the caller the only import on this ledger until EndImport. It returns false if another import runs.
func (s *Ledger) StartImport() bool { return s.importing.CompareAndSwap(false, true) }

// EndImport lets the next import begin.
func (s *Ledger) EndImport() { s.importing.Store(false) }

// Importing reports whether an import runs.
func (s *Ledger) Importing() bool { return s.importing.Load() }

// Guesses returns the numbers of guessed names and of wrong guesses since the start.
func (s *Ledger) Guesses() ipam.GuessCounts {
	return ipam.GuessCounts{Made: s.guesses.Load(), Wrong: s.told[ipam.GuessedWrong].Load()}
}

// EventCounts is the number of events written since the start, by verb.
func (s *Ledger) EventCounts() map[ipam.Verb]uint64 {
	all := map[ipam.Verb]uint64{}
	for verb := range s.told {
		if n := s.told[verb].Load(); n > 0 {
			all[ipam.Verb(verb)] = n
		}
	}
	return all
}

// slack is the excess of events that is tolerated before a trim, so that a trim removes whole pages.
const (
	slack      = 4 * PageSize
	slackBytes = slack * 128
)

// wakeTrim wakes the trimming if there are too many events. It never waits.
func (s *Ledger) wakeTrim(events EventSum) {
	if events.Count <= s.retain.Count+slack && events.Bytes <= s.retain.Bytes+slackBytes {
		return
	}
	select {
	case s.trim <- struct{}{}:
	default:
	}
}

// Look runs fn over the records and the index, for reading only.
func (s *Ledger) Look(ctx context.Context, fn func(*Change) error) error {
	return s.store.View(ctx, func(tx store.Tx) error { return s.lookIn(ctx, tx, fn) })
}

// LookEach runs fn for each of all in one view of the records. It locks the index for a page of them at a time, so that
// requests can run in between: the index may then be ahead of the records that fn reads.
func LookEach[T any](ctx context.Context, s *Ledger, all []T, fn func(*Change, T) error) error {
	if len(all) == 0 {
		return nil
	}
	return s.store.View(ctx, func(tx store.Tx) error {
		for page := range slices.Chunk(all, lookPage) {
			err := s.lookIn(ctx, tx, func(c *Change) error {
				for _, one := range page {
					if err := fn(c, one); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				return err
			}
		}
		return ctx.Err()
	})
}

// lookPage is for how many things LookEach locks the index at a time.
const lookPage = 64

// lookIn runs fn over a view of the records and the index.
func (s *Ledger) lookIn(ctx context.Context, tx store.Tx, fn func(*Change) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return fn(&Change{tx: tx, index: s.index, now: s.now(), host: s.host, begun: s.opened, known: s.known,
		account: ipam.AccountOf(ctx), noElastic: s.noElastic, membership: membership{member: s.member}})
}

// PageSize is Ledger.Page of a host's own store, SharedPageSize that of a shared one. A shared page fits one
// transaction of etcd (at most 128 writes), because larger ones hold up all other hosts.
const (
	PageSize       = 512
	SharedPageSize = 48
)

// catchAll stands in for the removed subnet of an address. It contains every address of the family, so leftover leases
// end by the same path as others.
func catchAll(gone ipam.ID, addr netip.Addr) *ipam.Subnet {
	return &ipam.Subnet{ID: gone, CIDR: netip.PrefixFrom(addr, 0).Masked()}
}
