package lan

import (
	"context"
	"sync"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

const (
	// keeperActor is the actor in events of renewals and losses.
	keeperActor = "lan"
	// every is the interval of rounds.
	every = time.Second
	// patience is how long a question waits for a server. No request waits for it.
	patience = 2 * time.Second
	// atOnce is the number of questions that an interface has in progress.
	atOnce = 8
	// again is the shortest pause after a failure that is not a server's silence.
	again = 2 * time.Second
	// lostAgain is the pause between two questions about a lost lease, which the server may only have forgotten.
	lostAgain = 30 * time.Second
	// seldom is the longest pause between two questions to a silent server.
	seldom = time.Minute
)

// Renewer keeps the leases of DHCP servers.
type Renewer struct{ ledger *ledger.Ledger }

// Of returns the Renewer of a ledger.
func Of(l *ledger.Ledger) Renewer { return Renewer{l} }

// KeepLeases renews the leases that are held on this host or kept there for an owner, and ends those whose time is
// over, until ctx ends. It delays no request. It passes errors of writing to failed, and tries again in the next round.
func (s Renewer) KeepLeases(ctx context.Context, failed func(error)) {
	k := s.Schedule()
	tick := time.NewTicker(every)
	defer tick.Stop()
	var rounds sync.WaitGroup
	defer rounds.Wait()
	for {
		if err := k.begin(ctx, &rounds, failed); err != nil && ctx.Err() == nil {
			failed(err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Schedule remembers, between two rounds, when to ask again. Everything else is in the records.
type Schedule struct {
	ledger *ledger.Ledger

	mu      sync.Mutex
	parents map[link]*parent
	tries   map[leaseKey]*try
	asked   uint64 // changes that had begun when the records were read
	next    time.Time
	gone    gone
}

// link is an interface and the family used there.
type link struct {
	parent string
	ipv6   bool
}

// parent is the state of an interface.
type parent struct {
	busy   bool // a round is in progress there
	silent bool // nothing was answered in its last round
	next   time.Time
}

// leaseKey identifies a lease, and no later one of the same address.
type leaseKey struct {
	subnet ipam.ID
	id     uint64
}

// try is what was asked about a lease since the daemon's start.
type try struct {
	last, next time.Time
	asked      time.Time // when the question began that is not answered yet; zero: none
	failed     bool
	told       *ipam.DHCPLease // what the server gave, until it is written; nil: nothing
}

// Schedule returns a Schedule that remembers nothing, as after a start.
func (s Renewer) Schedule() *Schedule {
	return &Schedule{ledger: s.ledger, parents: map[link]*parent{}, tries: map[leaseKey]*try{}}
}

// Round does what is due and waits until it is done.
func (k *Schedule) Round(ctx context.Context) error {
	var wg sync.WaitGroup
	var mu sync.Mutex
	var first error
	err := k.begin(ctx, &wg, func(err error) {
		mu.Lock()
		defer mu.Unlock()
		if first == nil {
			first = err
		}
	})
	wg.Wait()
	if err == nil {
		err = first
	}
	return err
}

// begin starts what is due. What needs no server is written at once. Questions are asked in parallel, so that an
// interface with a silent server delays no other.
func (k *Schedule) begin(ctx context.Context, wg *sync.WaitGroup, failed func(error)) error {
	ctx = ipam.WithActor(ctx, keeperActor)
	if err := k.beginGone(ctx, wg, failed); err != nil {
		return err
	}
	if !k.looks() {
		return nil
	}
	due, err := k.due(ctx)
	if err != nil {
		return err
	}
	for i := range due.writes {
		if err := k.write(ctx, &due.writes[i]); err != nil {
			if ctx.Err() == nil {
				failed(err)
			}
			break // servers are asked all the same: they know nothing of an outage of the store
		}
	}
	for at, jobs := range due.asks {
		p := k.claim(at)
		if p == nil {
			continue
		}
		wg.Go(func() {
			defer k.free(p)
			k.askAll(ctx, p, jobs, failed)
		})
	}
	return nil
}

// looks reports whether the records must be read, because something has changed or is due.
func (k *Schedule) looks() bool {
	if !ledger.Ask(k.ledger, servesDHCP) {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	asked := k.ledger.Asked()
	now := k.ledger.Now()
	if asked == k.asked && k.next.After(now) {
		return false
	}
	k.asked = asked
	return true
}

// servesDHCP reports whether a subnet has its addresses from a LAN's server.
func servesDHCP(ix *ledger.Index) bool { return ix.FromDHCP() > 0 }

// claim reserves an interface for a round. It returns nil if its time has not come or a round is in progress.
func (k *Schedule) claim(at link) *parent {
	k.mu.Lock()
	defer k.mu.Unlock()
	p := k.parents[at]
	if p == nil {
		p = &parent{}
		k.parents[at] = p
	}
	if p.busy || p.next.After(k.ledger.Now()) {
		return nil
	}
	p.busy = true
	return p
}

func (k *Schedule) free(p *parent) {
	k.mu.Lock()
	defer k.mu.Unlock()
	p.busy, k.next = false, time.Time{}
}

// askAll asks about everything that is due on one interface. If nobody answered there before, one question at a time
// finds out whether somebody does now; then the others follow.
func (k *Schedule) askAll(ctx context.Context, p *parent, jobs []job, failed func(error)) {
	k.mu.Lock()
	silent := p.silent
	k.mu.Unlock()
	for len(jobs) > 0 && ctx.Err() == nil {
		n := min(atOnce, len(jobs))
		if silent {
			n = 1
		}
		if silent = !k.askSome(ctx, jobs[:n], failed); silent {
			break
		}
		jobs = jobs[n:]
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	p.silent, p.next = silent, time.Time{}
	if !silent {
		return
	}
	now := k.ledger.Now()
	p.next = now.Add(pause(jobs, now))
	for i := range jobs { // one stood for all
		if key := jobs[i].key(); jobs[i].over(now) && k.tries[key] == nil {
			k.tries[key] = &try{last: now, next: now.Add(again), failed: true}
		}
	}
}

// pause is how long a silent server is left alone: shortly if somebody has an unconfirmed address, else an eighth of
// the remaining time of the lease that ends first.
func pause(jobs []job, now time.Time) time.Duration {
	wait := seldom
	for i := range jobs {
		d := jobs[i].dhcp()
		if d == nil || d.State == ipam.LANUnconfirmed {
			return every
		}
		if d.State == ipam.LANBound {
			wait = min(wait, max(d.Expires.Sub(now)/8, again))
		}
	}
	return wait
}

// askSome asks several questions at once, and reports whether anybody answered.
func (k *Schedule) askSome(ctx context.Context, jobs []job, failed func(error)) bool {
	answered := make([]bool, len(jobs))
	var wg sync.WaitGroup
	for i := range jobs {
		wg.Go(func() {
			var err error
			if answered[i], err = k.do(ctx, &jobs[i]); err != nil && ctx.Err() == nil {
				failed(err)
			}
		})
	}
	wg.Wait()
	for _, one := range answered {
		if one {
			return true
		}
	}
	return false
}

// tried notes the result of a question about a lease.
func (k *Schedule) tried(j *job, failed bool, wait time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now, t := k.ledger.Now(), k.tryOf(j)
	t.last, t.next, t.failed, t.asked = now, now.Add(wait), failed, time.Time{}
}

// asks notes that a question about a lease begins.
func (k *Schedule) asks(j *job) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.tryOf(j).asked = k.ledger.Now()
}

// heard notes what the server gave, or with nil that it gives nothing. It replaces an answer that was not written yet.
func (k *Schedule) heard(j *job, told *ipam.DHCPLease) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.tryOf(j).told = told
}

// wrote notes that an answer is written, if no other one has come since.
func (k *Schedule) wrote(j *job, told *ipam.DHCPLease) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if t := k.tryOf(j); t.told == told {
		t.told = nil
	}
}

// tryOf returns what is remembered of a lease. The caller holds the lock.
func (k *Schedule) tryOf(j *job) *try {
	t := k.tries[j.key()]
	if t == nil {
		t = &try{}
		k.tries[j.key()] = t
	}
	return t
}

// triesOf returns what was asked about a lease, or the zero try.
func (k *Schedule) triesOf(key leaseKey) try {
	k.mu.Lock()
	defer k.mu.Unlock()
	if t := k.tries[key]; t != nil {
		return *t
	}
	return try{}
}
