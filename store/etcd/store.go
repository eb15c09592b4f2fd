// Package etcd keeps a store.Shared in an etcd cluster, which the daemons of several hosts share. It promises what
// package store promises, even if connections break, answers get lost, members die or a handle ends during an update.
// It refuses a prefix that holds anything but the expected store. Etcd's default limits suffice.
//
// A handle holds the whole store in memory, exact as of one revision (mirror.go). It reads everything at open, and
// again if its watch missed something (load.go). Otherwise it follows that watch (feed.go). What it reads, what the
// watch reports and what it commits itself reach the mirror by the same function. Followers of the store get the writes
// of others at the moment the mirror advances to a newer revision. A View runs on a copy of the mirror (view.go).
//
// Functions passed to Update wait in a queue (committer.go). One goroutine runs all of them in one turn, during which
// the mirror does not advance (commit.go). Each sees the mirror and the writes of those before it (tx.go, batch.go).
// One etcd transaction checks that everything they read is unchanged, and writes (request.go, limits.go). On a conflict
// their hooks run, the mirror advances, and the functions run again.
//
// If etcd does not answer, a key of the handle reveals the outcome (marker.go, outcome.go). Updates that are too large
// for one transaction, or conflict too often, are committed through the gate: a key in etcd that stops all other
// updates while it is closed (gate.go). Many small new records share keys of etcd (bundle.go).
//
// Each second a pulse asks etcd how fresh the mirror is, renews leases, and cleans up (pulse.go). reach.go records why
// etcd cannot be used, and since when. The handle's marker, what it announces and its sessions are keys under leases
// (leases.go). trace.go detects an etcd that was replaced or lost commits; journal.go reports what the host must
// remember itself. All requests use one member at a time (members.go, errors.go). layout.go names all keys.
package etcd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"

	"berth/store"
	"berth/store/internal/watch"
)

// errForeign means that the prefix has another cluster of Berth than expected, something else, or a newer Berth.
var errForeign = errors.New("this is not the shared store that was expected")

var errClosed = fmt.Errorf("%w: Berth has closed its connection to etcd", store.ErrClosed)

// Config says where the store is and how to reach it. Endpoints is mandatory.
type Config struct {
	Endpoints         []string // http://HOST:PORT or https://HOST:PORT
	CACert, Cert, Key string   // files in PEM; empty: none
	User, Password    string
	Prefix            string // of all keys; default "berth/"
	Cluster           string // the expected id; empty: any, or a new one
	// create the store Cluster under an empty prefix, to restore a backup
	Create  bool
	Dry     bool          // create no store: Open returns ErrNothing instead
	Timeout time.Duration // how long a request may take; default 1.5 s

	Host string // the id of the host whose transactions are counted; empty: they are not
	// how far the store was known when it was last open: an older store is refused; nil: unknown
	Trace    *store.Trace
	Remember func(key []byte) bool // which records Written reports; nil: none
	// new records whose keys begin with it share keys of etcd (bundle.go). Of these, no two handles may write the same
	// record. nil: none. All handles of a store must agree
	Bundle []byte
	Mends  bool          // open the store in any state, to mend it
	Log    *logrus.Entry // default: nothing is logged

	// Committed gets the duration of each transaction that committed something. It must return at once; nil: nobody
	// needs it.
	Committed func(took time.Duration)
}

func (c Config) withDefaults() Config {
	if c.Prefix == "" {
		c.Prefix = "berth"
	}
	if !strings.HasSuffix(c.Prefix, "/") {
		c.Prefix += "/"
	}
	if c.Committed == nil {
		c.Committed = func(time.Duration) {}
	}
	if c.Timeout <= 0 {
		c.Timeout = 1500 * time.Millisecond
	}
	if c.Log == nil {
		quiet := logrus.New()
		quiet.SetOutput(io.Discard)
		c.Log = logrus.NewEntry(quiet)
	}
	return c
}

// Store is a handle on the shared store. Open makes it.
type Store struct {
	cfg     Config
	layout  layout
	log     *logrus.Entry
	ctx     context.Context // ends with the handle
	cancel  context.CancelFunc
	members *members
	sizes   limits
	workers sync.WaitGroup
	dies    func(step string) error // for tests: an error is the handle's end during a large update

	// turn is held while functions run, until the outcome of their writes is known, and while the watch moves the
	// mirror. So the mirror moves only between functions.
	turn  turn
	apply func([]store.Foreign) // of the follower
	own   *ownCommit            // nil: the mirror has reached everything that this handle has committed

	mirror   mirror
	feed     feed
	commit   committer
	pulse    pulse
	presence presence
	reach    reach
	trace    trace
	journal  journal
	watches  watch.Set
	answered atomic.Int64 // the revision of the last answered update

	count struct{ commits, updates, conflicts, unknown atomic.Uint64 }

	mu      sync.Mutex
	closed  bool
	running sync.WaitGroup // Views
}

var _ store.Shared = (*Store)(nil)

// turn is a lock whose wait can be cancelled.
type turn chan struct{}

func (t turn) take(ctx context.Context) error {
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (t turn) give() { <-t }

// Open connects, reads everything under the prefix, and creates a store if there is none. If etcd does not answer in
// time, it returns store.ErrAway. If something unexpected is there, it returns errForeign.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	cfg = cfg.withDefaults()
	if len(cfg.Endpoints) == 0 {
		return nil, errors.New("no endpoint of etcd is given: use --etcd-endpoints http://HOST:2379")
	}
	s := &Store{cfg: cfg, layout: newLayout(cfg.Prefix), log: cfg.Log, turn: make(turn, 1)}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	var err error
	if s.members, err = newMembers(cfg); err != nil {
		s.cancel()
		return nil, err
	}
	s.mirror.moved = make(chan struct{})
	s.sizes.ops.Store(maxOps)
	s.sizes.bytes.Store(maxBytes)
	s.feed.s, s.feed.begun = s, make(chan struct{})
	s.pulse = pulse{s: s, wake: make(chan struct{}, 1)}
	s.commit.s = s
	s.presence.want = map[string]*announced{}
	s.trace.init(cfg)
	if err := s.open(ctx); err != nil {
		s.cancel()
		s.members.close()
		return nil, err
	}
	s.members.opened.Store(true)
	s.commit.init(s)
	s.workers.Go(s.feed.run)
	s.workers.Go(s.pulse.run)
	begun, cancel := context.WithTimeout(ctx, cfg.Timeout)
	defer cancel()
	select {
	case <-s.feed.begun:
	case <-begun.Done(): // the feed keeps trying
	}
	return s, nil
}

func (s *Store) open(ctx context.Context) error {
	first, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	if err := s.verify(first); err != nil { // before reading everything
		for _, e := range s.cfg.Endpoints {
			if errors.Is(err, store.ErrAway) && !isBack(err) && speaksTLS(ctx, e) {
				return fmt.Errorf("etcd at %s wants TLS: write https in --etcd-endpoints, and give --etcd-cacert", e)
			}
		}
		return err
	}
	asked := time.Now()
	n, err := s.load(ctx)
	if errors.Is(err, ErrNothing) && !s.cfg.Dry {
		if err := s.create(first); err != nil {
			return err
		}
		n, err = s.load(ctx)
	}
	if err != nil {
		return err
	}
	s.cfg.Cluster, s.cfg.Create = n.about.Cluster, false
	s.trace.loadedFrom(n)
	s.mirror.set(n.image)
	s.feed.rev = n.rev
	s.reach.good()
	s.reach.caughtUp(asked)
	mark, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	if err := s.mark(mark); err != nil {
		return err
	}
	return s.sweep(mark, n)
}

// Cluster is the store's id, 32 hexadecimal digits, chosen at its creation.
func (s *Store) Cluster() string { return s.cfg.Cluster }

// Counts is what the handle has done since it was opened.
type Counts struct {
	Commits   uint64 // committed transactions of etcd
	Updates   uint64 // functions whose writes were in them
	Conflicts uint64 // functions that ran again because others had written what they read
	Unknown   uint64 // transactions whose outcome had to be found out
}

// Counts returns what the handle has done.
func (s *Store) Counts() Counts {
	c := &s.count
	return Counts{Commits: c.commits.Load(), Updates: c.updates.Load(), Conflicts: c.conflicts.Load(),
		Unknown: c.unknown.Load()}
}

// Update implements store.Store.
func (s *Store) Update(ctx context.Context, fn func(store.Tx) error) error {
	return s.commit.update(ctx, fn)
}

// Watch implements store.Store. The changes of one Update come in the order of their keys. If another handle made
// several updates in one commit, only the last value of each key comes. A reader that is too slow, or whose changes
// etcd has forgotten during an outage, ends with store.ErrLagged.
func (s *Store) Watch(ctx context.Context, prefix []byte) iter.Seq2[store.Change, error] {
	return s.watches.Watch(ctx, prefix)
}

// Follow implements store.Shared. Several updates of another handle may be one commit.
func (s *Store) Follow(ctx context.Context, load func(store.Tx) error, apply func([]store.Foreign)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := s.enter(); err != nil {
		return err
	}
	defer s.running.Done()
	if err := s.freshen(ctx); err != nil {
		return err
	}
	if err := s.turn.take(ctx); err != nil {
		return err
	}
	defer s.turn.give()
	if s.apply != nil {
		return errors.New("the store is already followed")
	}
	if err := s.read(load); err != nil {
		return err
	}
	s.apply = apply
	return nil
}

// step is called after each step of a large update.
func (s *Store) step(name string) error {
	if s.dies == nil {
		return nil
	}
	return s.dies(name)
}

// Close implements store.Store. Waiting updates still run. A second Close returns ErrClosed.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return errClosed
	}
	s.closed = true
	s.mu.Unlock()
	s.commit.close()
	s.running.Wait()
	s.cancel()
	s.workers.Wait()
	s.leave()
	s.watches.Close(errClosed)
	s.members.close()
	return nil
}
