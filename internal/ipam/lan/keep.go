package lan

import (
	"context"
	"sync"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

const (
	// keeperActor is who renews leases and says that they are lost, for events.
	keeperActor = "lan"
	// every is how often it is looked whether something is due.
	every = time.Second
	// patience is how long a server is waited for by one question: nobody waits for the answer.
	patience = 2 * time.Second
	// atOnce is how many questions an interface has under way.
	atOnce = 8
	// again is after which time what failed for another reason than a silent server is asked again at the least.
	again = 2 * time.Second
	// lostAgain is after which time it is asked again for what was lost: the server may have forgotten it only.
	lostAgain = 30 * time.Second
	// seldom is the longest time between two questions to a server that is silent.
	seldom = time.Minute
)

// Lessee keeps the leases of DHCP servers.
type Lessee struct{ ledger *ledger.Ledger }

// Of is the room over a ledger.
func Of(l *ledger.Ledger) Lessee { return Lessee{l} }

// KeepLeases renews what is held on this host, or kept there for an owner, and ends what is over, until ctx ends. It
// is on the way of no request. What could not be written failed hears of; it is tried again with the next round.
func (s Lessee) KeepLeases(ctx context.Context, failed func(error)) {
	k := s.Keeper()
	tick := time.NewTicker(every)
	defer tick.Stop()
	var rounds sync.WaitGroup
	defer rounds.Wait()
	for {
		if err := k.Begin(ctx, &rounds, failed); err != nil && ctx.Err() == nil {
			failed(err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Keeper is what is remembered between two rounds: only when it is to be asked again. All else stands in the records.
type Keeper struct {
	ledger *ledger.Ledger

	mu      sync.Mutex
	parents map[link]*parent
	tries   map[leaseKey]*try
	asked   uint64 // changes that had been begun when the records were read
	next    time.Time
	gone    gone
}

// link is an interface, and the family that is spoken there.
type link struct {
	parent string
	ipv6   bool
}

// parent is what is known of an interface.
type parent struct {
	busy   bool // a round is under way there
	silent bool // nothing was answered by it in the last round
	next   time.Time
}

// leaseKey is a lease, and no later one of the same address.
type leaseKey struct {
	subnet ipam.ID
	id     uint64
}

// try is what was asked for a lease in this life of the daemon.
type try struct {
	last, next time.Time
	failed     bool
	told       *ipam.DHCPLease // what the server gave, until it is written; nil: nothing
}

// Keeper begins with nothing remembered, as after a start.
func (s Lessee) Keeper() *Keeper {
	return &Keeper{ledger: s.ledger, parents: map[link]*parent{}, tries: map[leaseKey]*try{}}
}

// Round does what is due, and waits until it is done.
func (k *Keeper) Round(ctx context.Context) error {
	var wg sync.WaitGroup
	var mu sync.Mutex
	var first error
	err := k.Begin(ctx, &wg, func(err error) {
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

// Begin begins what is due: what needs no server is written at once, and questions are asked beside one another, so
// that one interface whose server is silent keeps no other waiting.
func (k *Keeper) Begin(ctx context.Context, wg *sync.WaitGroup, failed func(error)) error {
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
			break // servers are asked all the same: they know nothing of a store that is away
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

// looks tells whether the records have to be read: something was changed since, or is due.
func (k *Keeper) looks() bool {
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

// servesDHCP tells whether a subnet has its addresses from a LAN's server.
func servesDHCP(ix *ledger.Index) bool { return ix.FromDHCP() > 0 }

// claim takes an interface for a round; nil where it is not its time, or a round is under way.
func (k *Keeper) claim(at link) *parent {
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

func (k *Keeper) free(p *parent) {
	k.mu.Lock()
	defer k.mu.Unlock()
	p.busy, k.next = false, time.Time{}
}

// askAll asks for all that is due by one interface. Where nobody has answered there, one question at a time finds out
// whether somebody does again, and then the others follow.
func (k *Keeper) askAll(ctx context.Context, p *parent, jobs []job, failed func(error)) {
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
	for i := range jobs { // one was asked for all
		if key := jobs[i].key(); jobs[i].over(now) && k.tries[key] == nil {
			k.tries[key] = &try{last: now, next: now.Add(again), failed: true}
		}
	}
}

// pause is how long a silent server is left alone: shortly, where somebody has an address that is not confirmed, else
// an eighth of what is left of the lease that ends first.
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

// askSome asks for some at once, and tells whether anybody answered.
func (k *Keeper) askSome(ctx context.Context, jobs []job, failed func(error)) bool {
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

// tried notes what came of a question for a lease.
func (k *Keeper) tried(j *job, failed bool, wait time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now, t := k.ledger.Now(), k.tryOf(j)
	t.last, t.next, t.failed = now, now.Add(wait), failed
}

// heard notes what the server gave, or with nil that it gives nothing; what was to be written of it before is so no
// more.
func (k *Keeper) heard(j *job, told *ipam.DHCPLease) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.tryOf(j).told = told
}

// wrote notes that it is written what the server gave, if that was not something else since.
func (k *Keeper) wrote(j *job, told *ipam.DHCPLease) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if t := k.tryOf(j); t.told == told {
		t.told = nil
	}
}

// tryOf is what is remembered of a lease, for a caller who holds the lock.
func (k *Keeper) tryOf(j *job) *try {
	t := k.tries[j.key()]
	if t == nil {
		t = &try{}
		k.tries[j.key()] = t
	}
	return t
}

// triesOf is what was asked for a lease; the zero try for nothing.
func (k *Keeper) triesOf(key leaseKey) try {
	k.mu.Lock()
	defer k.mu.Unlock()
	if t := k.tries[key]; t != nil {
		return *t
	}
	return try{}
}
