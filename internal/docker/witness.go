package docker

import (
	"context"
	"iter"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"berth/internal/ipam"
	"berth/internal/shorten"

	"github.com/sirupsen/logrus"
)

// defaultGrace is how long a difference lasts before it is repaired.
const defaultGrace = 5 * time.Minute

// fresh is the largest age of a pushed view. An older one says nothing about the containers now.
const fresh = 2 * time.Minute

// actor is the witness's name in events.
const actor = "check"

// Records are the records to compare with the engine, and to repair. A service.Service has them or, if the host shares
// a store, a cluster.Service.
type Records interface {
	Networks(context.Context, ipam.NetworkFilter) ([]ipam.NetworkInfo, error)
	Leases(context.Context, ipam.LeaseFilter) iter.Seq2[ipam.LeaseInfo, error]
	Reservations(context.Context, ipam.AddressFilter) iter.Seq2[ipam.ReservationInfo, error]
	Attachments(context.Context) ([]ipam.AttachmentInfo, error)
	Partial() error

	SystemGaps(context.Context) ([]ipam.SystemGap, error)
	ElasticGuests(context.Context, []netip.Addr) ([]ipam.ElasticGuest, error)

	NameLeases(context.Context, []ipam.LeaseName) error
	TellStrays(context.Context, []ipam.Stray) error
	StandIns(context.Context) ([]ipam.StandIn, error)
	EndStandIns(context.Context, []ipam.StandIn) error
	Guesses() ipam.GuessCounts
	ReleaseLease(context.Context, ipam.LeaseRef) (done bool, err error)
	ReplaceLease(context.Context, ipam.LeaseRef, ipam.AddressRequest) (done bool, err error)
	ForgetMemory(context.Context, ipam.LeaseRef) (done bool, err error)
	RequestAddress(context.Context, ipam.AddressRequest) (netip.Prefix, error)
	ReleasePool(ctx context.Context, pool ipam.ID) error
	Edit(context.Context, ipam.EditOptions, ...ipam.Edit) (ipam.Outcome, error)
}

// Config configures a Witness. Service, Host and Log are mandatory.
type Config struct {
	Service Records
	Host    string                 // whose leases and attachments are judged
	Cluster bool                   // other hosts have leases and attachments, too, in all spaces but local
	Engine  *Engine                // nil: only pushed views
	Drivers []string               // names under which the engine may know this Berth
	Roster  *Roster                // answers requests; nil: the witness makes one
	Every   time.Duration          // between checks; 0: only on request
	Grace   time.Duration          // default: defaultGrace
	Repair  bool                   // each check repairs all that is certain, and not only what runs and what has ended
	Seen    string                 // file that keeps what runs (lastSeen); empty: none
	Boot    string                 // id of the boot of this host
	Astray  func([]Astray)         // gets the containers to put back after each look and must not wait; nil: nobody
	Viewed  func(*ipam.EngineView) // gets each view of Engine and must not wait; nil: nobody
	Now     func() time.Time       // default: time.Now
	Log     *logrus.Entry
}

// Witness compares the engine with the records. Its methods are safe for concurrent use.
type Witness struct {
	cfg  Config
	log  *logrus.Entry
	turn chan struct{} // holds a token while nobody looks or checks; it guards the next four fields

	emptyTold bool // the empty state was logged
	patience  patience
	// findings about endpoints that one view showed, with the time when the records first had them
	doubts   map[key]time.Time
	strays   map[key]bool // containers on a wrong address that have an event
	homes    homes
	lastSeen lastSeen
	keepTold bool // that its file cannot be written was logged

	unsure chan struct{} // a second look would tell more

	burst time.Duration // how long events are gathered before a look
	pause time.Duration // first pause before the engine is tried again

	mu     sync.RWMutex // guards the fields below
	pushed *ipam.EngineView

	onlooker  ipam.Onlooker // the current one; nil: none
	listening int           // number of onlookers so far; only the last one counts
	seen      map[place]seenLease
	state     ipam.WitnessState
	last      *ipam.CheckReport // of the last check; nil: none
}

// seenLease is the holder of a lease.
type seenLease struct {
	lease uint64
	by    ipam.SeenBy
}

// New returns a Witness that has seen nothing yet.
func New(cfg Config) *Witness {
	if cfg.Grace == 0 {
		cfg.Grace = defaultGrace
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Roster == nil {
		cfg.Roster = NewRoster(cfg.Now)
	}
	w := &Witness{cfg: cfg, log: cfg.Log, turn: make(chan struct{}, 1), unsure: make(chan struct{}, 1),
		homes: homes{}, patience: patience{grace: cfg.Grace}, burst: time.Second, pause: time.Second}
	w.turn <- struct{}{}
	var err error
	if w.lastSeen, err = openLastSeen(cfg.Seen, cfg.Boot); err != nil {
		w.log.Warn(err)
	}
	cfg.Roster.before = w.lastSeen
	w.state.Engine = ipam.NoEngine
	if cfg.Engine != nil {
		cfg.Roster.askWith(cfg.Engine.Locked)
		cfg.Roster.first.await()
		w.state = ipam.WitnessState{Engine: ipam.EngineUnreachable, Detail: "Berth has not asked the engine yet"}
	}
	return w
}

// take waits for the turn to look or check. It returns the function that ends the turn.
func (w *Witness) take(ctx context.Context) (func(), error) {
	select {
	case <-w.turn:
		return func() { w.turn <- struct{}{} }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// SeenBy returns the container that has a lease, or nil. While the engine is away it returns the last one seen.
func (w *Witness) SeenBy(space string, addr netip.Addr, lease uint64) *ipam.SeenBy {
	w.mu.RLock()
	defer w.mu.RUnlock()
	if s, ok := w.seen[place{space, addr}]; ok && s.lease == lease {
		by := s.by
		return &by
	}
	return nil
}

// State returns the state of the engine and of the last check.
func (w *Witness) State() ipam.WitnessState {
	w.mu.RLock()
	state := w.now()
	w.mu.RUnlock()
	_, state.Live = w.cfg.Roster.Bridges()
	state.Named = w.cfg.Roster.sendsNames()
	state.Guesses, state.Questions = w.cfg.Service.Guesses(), w.cfg.Roster.Questions()
	return state
}

// now is the state, with mu held. A view of another's says nothing of the engine when it is not fresh any more: neither
// one that berth witness has sent, nor one that came with a request.
func (w *Witness) now() ipam.WitnessState {
	state := w.state
	if w.cfg.Engine != nil || state.Engine != ipam.EngineReachable || w.cfg.Now().Sub(state.Seen) <= fresh {
		return state
	}
	state.Engine = ipam.NoEngine
	if w.pushed != nil {
		if err := w.old(w.pushed); err != nil {
			state.Engine, state.Detail = ipam.EngineUnreachable, err.Error()
		}
	}
	return state
}

// Report returns the report of the last check, and checks nothing. Before the first check its time is zero.
func (w *Witness) Report() ipam.CheckReport {
	w.mu.RLock()
	defer w.mu.RUnlock()
	state := w.now()
	if w.last == nil {
		return ipam.CheckReport{Host: w.cfg.Host, Engine: state.Engine, Trouble: state.Detail,
			Findings: []ipam.Finding{}, Counts: map[ipam.FindingKind]int{}}
	}
	r := *w.last
	r.Engine = state.Engine
	r.Findings, r.Counts = slices.Clone(r.Findings), maps.Clone(r.Counts)
	return r
}

// publish records the holders of leases for SeenBy.
func (w *Witness) publish(matches []match) {
	seen := make(map[place]seenLease, len(matches))
	for _, m := range matches {
		c := m.sight.container
		seen[place{m.lease.Space, m.lease.Address}] = seenLease{m.lease.ID, ipam.SeenBy{Container: c.Name, ID: c.ID,
			Project: c.Project, Service: c.Service, State: c.State, MAC: m.sight.endpoint.MAC, Network: m.sight.network.Name}}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen = seen
}

// reached notes that the engine has answered.
func (w *Witness) reached(view *ipam.EngineView) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.state.Engine, w.state.Detail, w.state.Seen = ipam.EngineReachable, "", view.Taken
	if view.Engine != "" {
		w.state.EngineID = shorten.To(view.Engine, shorten.Most)
	}
	if view.Version != "" {
		w.state.Version = shorten.To(view.Version, shorten.Most)
	}
}

// readSince reports whether a reading that succeeded began after a time.
func (w *Witness) readSince(at time.Time) bool {
	w.mu.RLock()
	defer w.mu.RUnlock()
	return w.state.Seen.After(at)
}

// lost notes that the engine did not answer, so that earlier findings must be confirmed again.
func (w *Witness) lost(why error) {
	w.patience.broken()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.state.Engine, w.state.Detail = ipam.EngineUnreachable, shorten.Text(why.Error())
}
