package docker

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"berth/internal/ipam"

	"github.com/moby/moby/client"
)

// How long is asked who is locked. The engine keeps the network's other containers waiting meanwhile.
const (
	// silenceTime is how long an engine that is not followed may say nothing: then it starts.
	silenceTime = 30 * time.Millisecond
	// lockTime bounds one question, and longLockTime one with more candidates than one wave. One that is busy may say
	// nothing for a good part of it.
	lockTime     = 130 * time.Millisecond
	longLockTime = 250 * time.Millisecond
	// leastSilence is from when on a container is silent, if it also takes three times as long as all others.
	leastSilence  = 3 * time.Millisecond
	silenceFactor = 3
	// longestSilence is from when on a container's silence says nothing: it is being copied from, or hangs.
	longestSilence = 10 * time.Second
	// startsFor is how long a start takes at most from its connection to a network on.
	startsFor = 10 * time.Second
	// longestLate is how late events may come for what they say of seats to be believed: a container that has its
	// address ends and asks anew no sooner than that.
	longestLate = 100 * time.Millisecond
	// waveSize is how many containers are asked for at once: more of them drown the answers.
	waveSize = 128
)

// locks tells which containers an engine has locked. The engine, from 20.10 to 29 at the least, holds the lock of a
// container for as long as it starts or connects it, asks for its addresses meanwhile, and inspects no container that
// is locked: the one whose inspection is not answered is the one that asks. No inspection is ever ended: the silence
// of one that is under way tells later questions something, too.
type locks struct {
	engine *Engine
	http   *http.Client
	alive  context.Context // until stop
	stop   func()          // ends the inspections that are under way, too

	mu        sync.Mutex
	changed   chan struct{}        // closed with each change of what is below
	drivers   func() []string      // by which the networks of this Berth are told
	networks  []ipam.EngineNetwork // of this Berth
	follows   bool                 // the engine's events come
	started   func()               // who was locked is so no more
	stirred   map[string]time.Time // when containers were created or ended last, by id
	connected map[seat]time.Time   // which of those that do not run yet have their address
	late      time.Duration        // the event that was heard last
	open      map[string]time.Time // inspections under way: when they were sent
	answered  map[string]span      // the last one that was answered
}

// seat is a container on a network, both by their ids.
type seat struct{ container, network string }

type span struct{ sent, ended time.Time }

func newLocks(e *Engine, dial DialFunc) *locks {
	l := &locks{engine: e, changed: make(chan struct{}), open: map[string]time.Time{}}
	base := &http.Transport{DialContext: dial, DisableCompression: true, MaxIdleConns: waveSize / 4,
		MaxIdleConnsPerHost: waveSize / 4, IdleConnTimeout: 30 * time.Second}
	l.http = &http.Client{Transport: &Reading{base}}
	alive, cancel := context.WithCancel(context.Background())
	l.alive, l.stop = alive, func() {
		cancel()
		base.CloseIdleConnections()
	}
	l.end()
	return l
}

// begin forgets what was heard before: the engine's events come from now on, for a listener.
func (l *locks) begin(to *Listener) {
	l.reset(true, to.Drivers, func() { to.Stirred(true) })
}

// end notes that the events have broken off.
func (l *locks) end() { l.reset(false, nil, func() {}) }

func (l *locks) reset(follows bool, drivers func() []string, started func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.follows, l.drivers, l.started = follows, drivers, started
	l.stirred, l.connected, l.late = map[string]time.Time{}, map[seat]time.Time{}, 0
	l.answered = map[string]span{}
	l.stir()
}

// stir lets those go on who wait for a change, for one who holds the lock.
func (l *locks) stir() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// hear takes in what the engine says.
func (l *locks) hear(news *ipam.EngineNews) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if news.Networks != nil {
		l.networks = news.Networks.Networks
	}
	if e := news.Event; e != nil {
		l.late = news.Late
		id := e.Container.ID
		switch e.Action {
		case eventCreate, eventDie:
			l.stirred[id] = news.At
			l.unseat(id)
		case eventStart, eventStop:
			l.unseat(id)
		case eventDestroy:
			delete(l.stirred, id)
			l.unseat(id)
		case eventConnect:
			l.connected[seat{id, e.Network}] = news.At
		case eventDisconnect:
			delete(l.connected, seat{id, e.Network})
		}
	}
	l.stir()
}

// unseat forgets where a container got addresses: it has started, or will ask again.
func (l *locks) unseat(id string) {
	for s := range l.connected {
		if s.container == id {
			delete(l.connected, s)
		}
	}
}

// ask tells who is locked of those from whom a request can be.
func (l *locks) ask(ctx context.Context, q ipam.Question) ipam.Locked {
	ctx, cancel := context.WithTimeout(ctx, longLockTime)
	defer cancel()
	if !l.isFollowed() {
		return ipam.Locked{Boots: l.boots(ctx)}
	}
	r := &round{locks: l, begun: time.Now()}
	go r.ping(ctx)
	listed := make(chan []candidate, 1)
	go func() { listed <- l.candidates(ctx, q) }()
	late := time.NewTimer(lockTime)
	defer late.Stop()
	for {
		select {
		case all := <-listed:
			if all == nil {
				return ipam.Locked{}
			}
			return r.waves(ctx, all)
		case <-late.C:
			if !r.heard() {
				return ipam.Locked{}
			}
		case <-ctx.Done():
			return ipam.Locked{}
		}
	}
}

// isFollowed tells whether the engine's events come.
func (l *locks) isFollowed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.follows
}

// boots tells whether the engine is there and answers nobody: it starts its containers first.
func (l *locks) boots(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, silenceTime)
	defer cancel()
	return errors.Is(l.get(ctx, "/_ping"), context.DeadlineExceeded)
}

// candidate is a container from which a request can be.
type candidate struct {
	*ipam.EngineContainer
	network string // on which it would ask
	here    bool   // it had a place there before
	stirred time.Time
}

// candidates are those from which a request can be by what the engine lists at this moment, the likeliest first; nil
// where that cannot be told.
func (l *locks) candidates(ctx context.Context, q ipam.Question) (all []candidate) {
	networks := l.serving(ctx, q)
	if len(networks) == 0 {
		return nil
	}
	list, err := l.engine.client().ContainerList(ctx, client.ContainerListOptions{All: true})
	if err != nil {
		return nil
	}
	p := newPlaces(networks)
	for i := range list.Items {
		p.addContainer(&list.Items[i])
	}
	all = []candidate{}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range p.containers {
		if isRunning(c.State) { // what it has is listed, and the event of its start may be on its way
			l.unseat(c.ID)
		}
		if network, here, may := mayAsk(c, networks, q); may {
			all = append(all, candidate{c, network, here, l.stirred[c.ID]})
		}
	}
	slices.SortFunc(all, func(a, b candidate) int {
		switch {
		case a.here && !b.here:
			return -1
		case b.here && !a.here:
			return 1
		}
		return cmp.Or(b.stirred.Compare(a.stirred), cmp.Compare(a.ID, b.ID))
	})
	return all
}

// serving are the Docker networks on which it can be asked. Where none is known they are listed: it is a new one, or
// who follows the events did not know by which drivers to tell them.
func (l *locks) serving(ctx context.Context, q ipam.Question) []ipam.EngineNetwork {
	l.mu.Lock()
	known, drivers := l.networks, l.drivers
	l.mu.Unlock()
	no := func(n ipam.EngineNetwork) bool { return !serves(&n, q.Space, q.CIDR) }
	if all := slices.DeleteFunc(slices.Clone(known), no); len(all) > 0 || drivers == nil {
		return all
	}
	list, err := l.engine.networks(ctx, l.engine.client(), drivers())
	if err != nil {
		return nil
	}
	l.hear(&ipam.EngineNews{Networks: &ipam.EngineNetworkList{Networks: list.Networks}})
	return slices.DeleteFunc(slices.Clone(list.Networks), no)
}

// mayAsk tells whether a container can ask what is asked: one that does not run and is on such a network, or one that
// runs and has no endpoint there, because it is being connected.
func mayAsk(c *ipam.EngineContainer, networks []ipam.EngineNetwork, q ipam.Question) (network string, here, may bool) {
	if c.Name == "" || c.State == stateDead || c.State == stateRemoving {
		return "", false, false
	}
	runs := isRunning(c.State)
	for i := range networks {
		at := slices.IndexFunc(c.Endpoints,
			func(ep ipam.EngineEndpoint) bool { return ep.Network == networks[i].ID })
		switch {
		case at < 0 && runs:
			network, may = networks[i].ID, true
		case at < 0:
		case runs && c.Endpoints[at].ID == "",
			!runs && (&spot{wanted: c.Endpoints[at].Wanted}).asksFor(q):
			return networks[i].ID, true, true
		}
	}
	return network, false, may
}

// round is one question to an engine.
type round struct {
	*locks
	begun   time.Time
	slowest time.Duration // answer so far; guarded by mu
}

// ping asks the engine for nothing: how long that takes tells what is slow.
func (r *round) ping(ctx context.Context) {
	if r.get(ctx, "/_ping") != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.slowest = max(r.slowest, time.Since(r.begun))
	r.stir()
}

// heard tells whether the engine has said anything since the question.
func (r *round) heard() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.slowest > 0
}

// waves asks for the candidates, and goes on to the next of them where nobody is silent.
func (r *round) waves(ctx context.Context, all []candidate) ipam.Locked {
	until := r.begun.Add(lockTime)
	if len(all) > waveSize {
		until = r.begun.Add(longLockTime)
	}
	for wave := range slices.Chunk(all, waveSize) {
		silent, told := r.silent(ctx, wave, until)
		if !told || len(silent) > 0 {
			here := func(c candidate) bool { return c.here }
			elsewhere := slices.DeleteFunc(slices.Clone(silent), here)
			silent = slices.DeleteFunc(silent, func(c candidate) bool { return !c.here })
			return ipam.Locked{Told: told, Silent: inOrderOfEnd(silent), Elsewhere: inOrderOfEnd(elsewhere)}
		}
	}
	return ipam.Locked{Told: true}
}

// silent are those of a wave who are locked, and can be the one who asks. Where several are it looks again until there
// is one, or the time is over: the others get their addresses meanwhile, or are let go.
func (r *round) silent(ctx context.Context, wave []candidate, until time.Time) (silent []candidate, told bool) {
	for {
		silent, settled, changed := r.look(wave)
		now := time.Now()
		switch {
		case len(silent) == 0:
			return nil, true
		case len(silent) == 1 && !now.Before(settled):
			return silent, true
		case ctx.Err() != nil, !now.Before(until):
			return silent, r.heard()
		case len(silent) > 1 || settled.After(until):
			settled = until
		}
		wait := time.NewTimer(settled.Sub(now))
		select {
		case <-changed:
		case <-wait.C:
		case <-ctx.Done():
		}
		wait.Stop()
	}
}

// look tells who of a wave has not answered yet, and from when on that is silence, as far as is known now.
func (r *round) look(wave []candidate) (silent []candidate, settled time.Time, changed <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	var answers []time.Duration
	for _, c := range wave {
		if at, got := r.connected[seat{c.ID, c.network}]; got && now.Sub(at) < startsFor && r.late < longestLate {
			continue
		}
		sent, open := r.open[c.ID]
		if last := r.answered[c.ID]; !open && !last.sent.Before(r.begun) {
			answers = append(answers, last.ended.Sub(last.sent))
			continue
		}
		if !open {
			sent = now
			r.open[c.ID] = now
			go r.inspect(c.ID, now)
		}
		if now.Sub(sent) > longestSilence {
			continue
		}
		silent = append(silent, c)
		if sent.Before(r.begun) {
			sent = r.begun
		}
		if sent.After(settled) {
			settled = sent
		}
	}
	slices.Sort(answers)
	for _, took := range answers {
		if took > silenceTime && took > silenceFactor*r.slowest && r.slowest > 0 {
			break // it was locked, and let go
		}
		r.slowest = max(r.slowest, took)
	}
	return silent, settled.Add(max(leastSilence, silenceFactor*r.slowest)), r.changed
}

// inspect asks for a container, and notes that it was answered.
func (l *locks) inspect(id string, sent time.Time) {
	_ = l.get(l.alive, "/containers/"+id+"/json")
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := time.Now(); now.Sub(sent) > silenceTime {
		go l.started() // it has its address now
	}
	delete(l.open, id)
	for id, s := range l.answered { // of no use to any round
		if sent.Sub(s.ended) > longLockTime {
			delete(l.answered, id)
		}
	}
	l.answered[id] = span{sent, time.Now()}
	l.stir()
}

// get reads an answer to its end, whatever it says.
func (l *locks) get(ctx context.Context, path string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://docker"+path, nil)
	if err != nil {
		return err
	}
	resp, err := l.http.Do(req)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return errors.Join(err, resp.Body.Close())
}

// inOrderOfEnd are the names of containers, the one first that ended first. Of several of one owner, as Compose
// exchanges them for one another, it is the last.
func inOrderOfEnd(all []candidate) (names []string) {
	slices.SortStableFunc(all, func(a, b candidate) int { return a.stirred.Compare(b.stirred) })
	for i, c := range all {
		later := slices.ContainsFunc(all[i+1:], func(other candidate) bool { return other.Owner() == c.Owner() })
		if !later {
			names = append(names, c.Name)
		}
	}
	return names
}
