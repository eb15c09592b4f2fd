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

// How often is checked, and for how long the engine must not have known a thing before it is ended, unless a user says
// otherwise.
const (
	DefaultEvery = 5 * time.Minute
	defaultGrace = 5 * time.Minute
)

// fresh is how old a view may be that another one has read: after that it says nothing about what runs.
const fresh = 2 * time.Minute

// actor is who does what is done here, in events.
const actor = "check"

// Records are what is held against the engine, and put right. A service.Service has them or, where the
// host shares a store, a cluster.Service.
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

// Config is what a Witness needs. Service, Host and Log are mandatory.
type Config struct {
	Service Records
	Host    string           // whose leases and attachments are judged
	Cluster bool             // other hosts have leases and attachments, too, in all spaces but local
	Engine  *Engine          // nil: only views that others push
	Drivers []string         // the names under which the engine may know this Berth
	Roster  *Roster          // who is there, as requests ask it; nil: one of its own
	Every   time.Duration    // between checks; 0: none but those that are asked for
	Grace   time.Duration    // default: defaultGrace
	Repair  bool             // each check repairs what is certain
	Astray  func([]Astray)   // is told of them after each look, and waits for nothing; nil: nobody is
	Now     func() time.Time // default: time.Now
	Log     *logrus.Entry
}

// Witness holds what the engine says against the records. Its methods may be called from many goroutines at once.
type Witness struct {
	cfg  Config
	log  *logrus.Entry
	turn chan struct{} // holds a token while nobody looks or checks; it guards the next four

	emptyTold bool // it was logged that the state is empty, and is so still
	patience  patience
	// what a view of another's showed of endpoints, and when the records were read that it was held against
	doubts map[key]time.Time
	strays map[key]bool // containers with the wrong address that were told of
	homes  homes

	unsure chan struct{} // a second look would show more

	calm  time.Duration // how long events are gathered before a look
	pause time.Duration // how long to wait at first for an engine that is away

	mu     sync.RWMutex // guards what is below
	pushed *ipam.EngineView

	onlooker  ipam.Onlooker // the last one; nil: nobody tells of the engine
	listening int           // how many have begun to tell what they hear of an engine; the last one counts
	seen      map[place]seenLease
	state     ipam.WitnessState
	last      *ipam.CheckReport // of the last check; nil: there was none
	answered  time.Time         // when it was read last, by the clock of the machine
}

// seenLease is who has a lease.
type seenLease struct {
	lease uint64
	by    ipam.SeenBy
}

// New returns a witness that has seen nothing.
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
		homes: homes{}, patience: patience{grace: cfg.Grace}, calm: time.Second, pause: time.Second}
	w.turn <- struct{}{}
	w.state.Engine = ipam.NoEngine
	if cfg.Engine != nil {
		cfg.Roster.askWith(cfg.Engine.Locked)
		w.state = ipam.WitnessState{Engine: ipam.EngineUnreachable, Detail: "it was not asked yet"}
	}
	return w
}

// take waits for the turn to look or check, and returns what ends it.
func (w *Witness) take(ctx context.Context) (func(), error) {
	select {
	case <-w.turn:
		return func() { w.turn <- struct{}{} }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// SeenBy is the container that has a lease, nil where none is known. It tells what was seen last, also when the engine
// is away.
func (w *Witness) SeenBy(space string, addr netip.Addr, lease uint64) *ipam.SeenBy {
	w.mu.RLock()
	defer w.mu.RUnlock()
	if s, ok := w.seen[place{space, addr}]; ok && s.lease == lease {
		by := s.by
		return &by
	}
	return nil
}

// State tells how it stands.
func (w *Witness) State() ipam.WitnessState {
	w.mu.RLock()
	state := w.state
	w.mu.RUnlock()
	_, state.Live = w.cfg.Roster.Bridges()
	state.Guesses, state.Questions = w.cfg.Service.Guesses(), w.cfg.Roster.Questions()
	return state
}

// Report is what the last check came to, of whoever asked for it; nothing is asked for it. Before the first one it has
// not been taken.
func (w *Witness) Report() ipam.CheckReport {
	w.mu.RLock()
	defer w.mu.RUnlock()
	if w.last == nil {
		return ipam.CheckReport{Host: w.cfg.Host, Engine: w.state.Engine, Trouble: w.state.Detail,
			Findings: []ipam.Finding{}, Counts: map[ipam.FindingKind]int{}}
	}
	r := *w.last
	r.Engine = w.state.Engine
	r.Findings, r.Counts = slices.Clone(r.Findings), maps.Clone(r.Counts)
	return r
}

// publish lets others see who has which lease.
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
	if view.Version != "" {
		w.state.Version = shorten.To(view.Version, shorten.Most)
	}
	w.answered = time.Now()
}

// readSince tells whether the engine was read after a moment of the machine's own clock.
func (w *Witness) readSince(at time.Time) bool {
	w.mu.RLock()
	defer w.mu.RUnlock()
	return w.answered.After(at)
}

// lost notes that the engine has not answered, so that nothing is sure of what was seen before.
func (w *Witness) lost(why error) {
	w.patience.broken()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.state.Engine, w.state.Detail = ipam.EngineUnreachable, shorten.Text(why.Error())
}
