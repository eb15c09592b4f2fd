package ledger

import (
	"context"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"berth/internal/ipam"
	"berth/store"
)

// Config is what a Ledger needs. Store and Host are mandatory.
type Config struct {
	Store     store.Store
	Host      string               // this host's name, put in leases and events
	Now       func() time.Time     // default: time.Now
	Bases     []ipam.Base          // where pools come from that name no subnet
	Memories  int                  // released addresses remembered per subnet; default: defaultMemories
	Retention ipam.Retention       // of events; what is zero has its default
	Forgets   bool                 // the state is rebuilt from what runs (BO-4)
	Member    *ipam.Member         // makes the host one of several that share the store; nil: the store is the host's own
	Known     ipam.Known           // what a witness of this host's engine can tell
	NoElastic bool                 // elastic addresses are turned off (CS-11)
	Moment    func() time.Duration // since the host's start, on the clock that its edge reads; default: since New
	Mends     bool                 // the store is opened to be mended: the host does not take part

	// AskLAN speaks on the LANs of this host; nil: nothing can (ipam.LANNoEdge).
	AskLAN ipam.AskLAN
}

// defaultMemories is how many released addresses a subnet remembers the holders of.
const defaultMemories = 4096

// Ledger keeps the records of one store, and the index of them. Its methods may be called from many goroutines at once.
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

	noElastic bool
	moment    func() time.Duration
	edges     edges
	askLAN    ipam.AskLAN
	page      int // how many leases, or other records, one transaction ends at most: an attachment may have millions

	mu      sync.Mutex // guards index, settled
	index   *Index
	settled settledEvents

	joined  bool           // the host takes part in the cluster
	begun   ipam.StoreMark // behind the events that there were when it was opened
	opened  uint64         // the last of them
	clients clientLocks
	changes sync.Pool     // of *Change
	trim    chan struct{} // wakes Run when there are too many events

	asked     atomic.Uint64 // how many changes were begun
	importing atomic.Bool   // one works on an import, or on taking it back
	guesses   struct{ made, wrong atomic.Uint64 }
	told      [256]atomic.Uint64 // events that were written, by verb
}

// New makes a Ledger over a store, of which it has read nothing yet: Upgrade, Load and Join do, in this order.
func New(cfg Config) *Ledger {
	l := &Ledger{
		store: cfg.Store, host: cfg.Host, bases: cfg.Bases, memories: cfg.Memories,
		retain: cfg.Retention.WithDefaults(), forgets: cfg.Forgets, member: cfg.Member,
		known: cfg.Known, mends: cfg.Mends, page: PageSize, trim: make(chan struct{}, 1),
		noElastic: cfg.NoElastic, moment: cfg.Moment, askLAN: cfg.AskLAN,
	}
	if l.member != nil {
		l.page = SharedPageSize
	}
	clock := cfg.Now
	if clock == nil {
		clock = time.Now
	}
	// Times of records are compared with the clock's, which may jump. A reading of Go's monotonic clock, which does
	// not, would be in the index until the daemon ends, and in no record.
	l.now = func() time.Time { return clock().Round(0) }
	if l.moment == nil {
		begun := time.Now()
		l.moment = func() time.Duration { return time.Since(begun) }
	}
	if l.memories == 0 {
		l.memories = defaultMemories
	}
	l.changes.New = l.newChange
	return l
}

// Begin notes up to where the events were there when the store was opened.
func (s *Ledger) Begin(behind ipam.StoreMark) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begun, s.opened = behind, s.index.lastEvent
}

// Store is that of the records: for those who copy or close it as a whole, or follow what is committed.
func (s *Ledger) Store() store.Store { return s.store }

// View runs fn over the records alone, without the index. An error is fn's or the store's.
func (s *Ledger) View(ctx context.Context, fn func(store.Tx) error) error {
	return s.store.View(ctx, fn)
}

// Host is this host's name.
func (s *Ledger) Host() string { return s.host }

// Member is this host's part in a cluster; nil where the store is the host's own.
func (s *Ledger) Member() *ipam.Member { return s.member }

// Now is the time of the ledger's clock.
func (s *Ledger) Now() time.Time { return s.now() }

// Known is what a witness of this host's engine can tell.
func (s *Ledger) Known() *ipam.Known { return &s.known }

// AskLAN has something done on a LAN of this host. It is never called inside of a change.
func (s *Ledger) AskLAN(ctx context.Context, ask ipam.LANAsk) (ipam.LANAnswer, error) {
	if s.askLAN == nil {
		return ipam.LANAnswer{Failure: ipam.LANNoEdge, Error: "no edge is connected to this daemon"}, nil
	}
	return s.askLAN(ctx, ask)
}

// Bases are where pools come from that name no subnet, in order.
func (s *Ledger) Bases() []ipam.Base { return s.bases }

// SetBases replaces them; only while the store is being opened.
func (s *Ledger) SetBases(all []ipam.Base) { s.bases = all }

// Page is how many records one transaction removes at most.
func (s *Ledger) Page() int { return s.page }

// Mends tells whether the store was opened to be mended.
func (s *Ledger) Mends() bool { return s.mends }

// Begun is the mark behind the events that there were when the store was opened.
func (s *Ledger) Begun() ipam.StoreMark { return s.begun }

// Retention is how long events are kept, how many of them, and how many bytes.
func (s *Ledger) Retention() ipam.Retention { return s.retain }

// TrimWanted wakes who trims the events when there are too many.
func (s *Ledger) TrimWanted() <-chan struct{} { return s.trim }

// Asked is how many changes were begun, an import's own among them.
func (s *Ledger) Asked() uint64 { return s.asked.Load() }

// StartImport makes the caller the only one here who works on an import, until EndImport; false where another one does.
func (s *Ledger) StartImport() bool { return s.importing.CompareAndSwap(false, true) }

// EndImport lets the next one begin.
func (s *Ledger) EndImport() { s.importing.Store(false) }

// Importing tells whether somebody here works on an import.
func (s *Ledger) Importing() bool { return s.importing.Load() }

// CountGuesses adds to how many names were guessed, and how many of them were wrong.
func (s *Ledger) CountGuesses(made, wrong int) {
	s.guesses.made.Add(uint64(made))
	s.guesses.wrong.Add(uint64(wrong))
}

// Guesses is how many names were guessed since the start.
func (s *Ledger) Guesses() ipam.GuessCounts {
	return ipam.GuessCounts{Made: s.guesses.made.Load(), Wrong: s.guesses.wrong.Load()}
}

// Told is how many events were written since the start, by verb.
func (s *Ledger) Told() map[ipam.Verb]uint64 {
	all := map[ipam.Verb]uint64{}
	for verb := range s.told {
		if n := s.told[verb].Load(); n > 0 {
			all[ipam.Verb(verb)] = n
		}
	}
	return all
}

// slack is how far the events may run over before the trimming is woken, so that it works in whole pages.
const (
	slack      = 4 * PageSize
	slackBytes = slack * 128
)

// wakeTrim has Run trim soon where there are too many events. It never waits.
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
	return s.store.View(ctx, func(tx store.Tx) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		return fn(&Change{tx: tx, index: s.index, now: s.now(), host: s.host, begun: s.opened, known: s.known,
			account: ipam.AccountOf(ctx), noElastic: s.noElastic, membership: membership{member: s.member}})
	})
}

// PageSize is Ledger.Page of a host's own store. That of a shared one fits a transaction of etcd, which makes 128
// writes at most: a larger one would keep all other hosts waiting.
const (
	PageSize       = 512
	SharedPageSize = 48
)

// catchAll is the subnet of an address of which is not known in which it was: one that fits every address of its
// family, so that what is left of a subnet that is gone ends by the same path as everything else (BO-12).
func catchAll(gone ipam.ID, addr netip.Addr) *ipam.Subnet {
	return &ipam.Subnet{ID: gone, CIDR: netip.PrefixFrom(addr, 0).Masked()}
}
