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

// Limits of a question to the engine. Meanwhile the network's other containers wait.
const (
	// silenceTime is the longest wait for an engine whose events are not followed. If it stays silent, it is starting.
	silenceTime = 30 * time.Millisecond
	// lockTime limits one question; longLockTime limits one with more candidates than one wave. A busy engine may be
	// silent for a good part of it.
	lockTime     = 130 * time.Millisecond
	longLockTime = 250 * time.Millisecond
	// addressTime limits one about a leased address: without an answer, a container is refused its own address.
	addressTime = 3 * time.Second
	// leastSilence is the shortest time that counts as silence, if it is also silenceFactor times the slowest answer.
	leastSilence  = 3 * time.Millisecond
	silenceFactor = 3
	// longestSilence is the time after which silence proves nothing: the container is being copied from, or hangs.
	longestSilence = 10 * time.Second
	// startsFor is the longest time from a container's connection to a network to the end of its start.
	startsFor = 10 * time.Second
	// longestLate is the largest delay of events at which the attachments in them are trusted. A container that has its
	// address needs longer to end and ask again.
	longestLate = 100 * time.Millisecond
	// waveSize is the most containers that are inspected at once. More would drown the answers.
	waveSize = 128
)

// locks finds the containers that an engine has locked. The engine (20.10 to 29 at least) holds a container's lock
// while it starts or connects the container. Meanwhile it asks for the addresses, and answers no inspection of that
// container. So the container whose inspection gets no answer is the one that asks. Inspections are never cancelled,
// because a pending one also answers later questions.
type locks struct {
	engine *Engine
	http   *http.Client
	alive  context.Context // ends with stop
	stop   func()          // also ends pending inspections

	mu         sync.Mutex
	changed    chan struct{}             // closed at each change of the fields below
	drivers    func() []string           // by which this Berth's networks are recognized
	networks   []ipam.EngineNetwork      // of this Berth
	follows    bool                      // the event stream is up
	started    func()                    // called when a locked container is free again
	lastChange map[string]time.Time      // last creation or end of a container, by id
	connected  map[endpointKey]time.Time // containers that have their address but do not run yet
	late       time.Duration             // delay of the last event
	open       map[string]time.Time      // pending inspections: when they were sent
	answered   map[string]span           // the last answered inspection, by id
}

// endpointKey is a container on a network, by their ids.
type endpointKey struct{ container, network string }

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

// begin resets the state when the event stream begins.
func (l *locks) begin(to *Listener) {
	l.reset(true, to.Drivers, func() { to.Changed(true) })
}

// end notes that the event stream broke off.
func (l *locks) end() { l.reset(false, nil, func() {}) }

func (l *locks) reset(follows bool, drivers func() []string, started func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.follows, l.drivers, l.started = follows, drivers, started
	l.lastChange, l.connected, l.late = map[string]time.Time{}, map[endpointKey]time.Time{}, 0
	l.answered = map[string]span{}
	l.wakeAll()
}

// wakeAll wakes those who wait for a change. The caller holds the lock.
func (l *locks) wakeAll() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// hear records the engine's news.
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
			l.lastChange[id] = news.At
			l.forget(id)
		case eventStart, eventStop:
			l.forget(id)
		case eventDestroy:
			delete(l.lastChange, id)
			l.forget(id)
		case eventConnect:
			l.connected[endpointKey{id, e.Network}] = news.At
		case eventDisconnect:
			delete(l.connected, endpointKey{id, e.Network})
		}
	}
	l.wakeAll()
}

// forget forgets where a container got addresses, because it has started or will ask again.
func (l *locks) forget(id string) {
	for s := range l.connected {
		if s.container == id {
			delete(l.connected, s)
		}
	}
}

// ask returns the locked containers among those that may send the request.
func (l *locks) ask(ctx context.Context, q ipam.Question) ipam.Locked {
	r := &round{locks: l, begun: time.Now(), limit: lockTime, longLimit: longLockTime}
	if q.Address.IsValid() {
		r.limit, r.longLimit = addressTime, addressTime
	}
	ctx, cancel := context.WithTimeout(ctx, r.longLimit)
	defer cancel()
	if !l.isFollowed() {
		return ipam.Locked{Boots: l.boots(ctx)}
	}
	go r.ping(ctx)
	listed := make(chan []candidate, 1)
	go func() { listed <- l.candidates(ctx, q) }()
	late := time.NewTimer(r.limit)
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

// isFollowed reports whether the event stream is up.
func (l *locks) isFollowed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.follows
}

// boots reports whether the engine accepts connections but does not answer. Then it is starting its containers first.
func (l *locks) boots(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, silenceTime)
	defer cancel()
	return errors.Is(l.get(ctx, "/_ping"), context.DeadlineExceeded)
}

// candidate is a container that may send the request.
type candidate struct {
	*ipam.EngineContainer
	network    string // id of the network that the request would be for
	here       bool   // it already had an entry there
	lastChange time.Time
}

// candidates lists the containers that may send the request, the likeliest first, from the engine's current list. It
// returns nil if that is unknown.
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
		if isRunning(c.State) { // its endpoints are listed, and its start event may be late
			l.forget(c.ID)
		}
		if network, here, may := mayAsk(c, networks, q); may {
			all = append(all, candidate{c, network, here, l.lastChange[c.ID]})
		}
	}
	slices.SortFunc(all, func(a, b candidate) int {
		switch {
		case a.here && !b.here:
			return -1
		case b.here && !a.here:
			return 1
		}
		return cmp.Or(b.lastChange.Compare(a.lastChange), cmp.Compare(a.ID, b.ID))
	})
	return all
}

// serving returns the Docker networks that may be asking. If none is known, it lists them: the network is new, or the
// drivers were not known when the events began.
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

// mayAsk reports whether a container may send this request. Either it does not run and is on such a network, or it runs
// without an endpoint there, because it is being connected.
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
			!runs && (&attachment{wanted: c.Endpoints[at].Wanted}).asksFor(q):
			return networks[i].ID, true, true
		}
	}
	return network, false, may
}

// round is one question to the engine.
type round struct {
	*locks
	begun            time.Time
	limit, longLimit time.Duration // of the question; with more candidates than one wave
	slowest          time.Duration // slowest answer so far; guarded by mu
}

// ping measures how long the engine takes to answer, to tell what is slow.
func (r *round) ping(ctx context.Context) {
	if r.get(ctx, "/_ping") != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.slowest = max(r.slowest, time.Since(r.begun))
	r.wakeAll()
}

// heard reports whether the engine has answered anything since the question began.
func (r *round) heard() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.slowest > 0
}

// waves inspects the candidates wave by wave, until a wave has silent ones.
func (r *round) waves(ctx context.Context, all []candidate) ipam.Locked {
	until := r.begun.Add(r.limit)
	if len(all) > waveSize {
		until = r.begun.Add(r.longLimit)
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

// silent returns the locked containers of a wave that may be asking. If there are several, it looks again until one is
// left or the time is over. The others get their addresses meanwhile, or are unlocked.
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

// look returns the containers of a wave without an answer, and the time from which that counts as silence.
func (r *round) look(wave []candidate) (silent []candidate, settled time.Time, changed <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	var answers []time.Duration
	for _, c := range wave {
		at, got := r.connected[endpointKey{c.ID, c.network}]
		if got && now.Sub(at) < startsFor && r.late < longestLate {
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
			break // it was locked, and is free now
		}
		r.slowest = max(r.slowest, took)
	}
	return silent, settled.Add(max(leastSilence, silenceFactor*r.slowest)), r.changed
}

// inspect inspects a container and records when the answer came.
func (l *locks) inspect(id string, sent time.Time) {
	_ = l.get(l.alive, "/containers/"+id+"/json")
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := time.Now(); now.Sub(sent) > silenceTime {
		go l.started() // it has its address now
	}
	delete(l.open, id)
	for id, s := range l.answered { // no round needs it
		if sent.Sub(s.ended) > longLockTime {
			delete(l.answered, id)
		}
	}
	l.answered[id] = span{sent, time.Now()}
	l.wakeAll()
}

// get reads an answer to its end, whatever its status.
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

// inOrderOfEnd sorts the names of containers, the one that ended first in front. Of several containers of one owner, as
// Compose replaces them, it keeps the last.
func inOrderOfEnd(all []candidate) (names []string) {
	slices.SortStableFunc(all, func(a, b candidate) int { return a.lastChange.Compare(b.lastChange) })
	for i, c := range all {
		later := slices.ContainsFunc(all[i+1:], func(other candidate) bool { return other.Owner() == c.Owner() })
		if !later {
			names = append(names, c.Name)
		}
	}
	return names
}
