package docker

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"berth/internal/ipam"

	"github.com/moby/moby/client"
)

// patienceWithList bounds how long an engine may take to list a few containers: later nobody needs it.
const patienceWithList = 2 * time.Second

// Listener is told what an engine says as it happens, from several goroutines.
type Listener struct {
	Drivers func() []string        // the names under which the engine may know this Berth; none: they are not known yet
	Begun   func()                 // the events come from now on
	Tell    func(*ipam.EngineNews) // at once, and before Stirred
	Stirred func(soon bool)        // something has changed, and is to be looked at soon: networks, or an address
}

// Follow follows the engine's events until ctx ends or they break off, and returns why, never nil. An event of a new
// container does not say on which networks it is: the engine is asked for its list, beside the events. One container
// itself, which waits for its lock, is asked for only beside both, for the ports that it publishes.
func (e *Engine) Follow(ctx context.Context, to Listener) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	tell := to.Tell
	to.Tell = func(news *ipam.EngineNews) {
		e.locks.hear(news)
		tell(news)
	}
	defer e.locks.end()
	l := &lister{engine: e, to: to, ids: map[string]bool{}, wake: make(chan struct{}, 1)}
	var listing sync.WaitGroup
	defer listing.Wait()
	defer cancel()
	begun := false
	for news, err := range e.Watch(ctx) {
		switch {
		case err != nil:
			if begun && ctx.Err() == nil && !e.answers(ctx) {
				to.Tell(&ipam.EngineNews{At: time.Now(), Ends: true})
			}
			return err
		case news == nil:
			begun = true
			e.locks.begin(&to)
			listing.Go(func() { l.run(ctx) })
			listing.Go(func() { e.ports.run(ctx, e.client, l.want) })
			to.Begun()
			continue
		case news.Event.Container.ID == "":
			l.want("")
			to.Stirred(true)
			continue
		}
		to.Tell(news)
		if news.Event.Action == eventCreate {
			l.want(news.Event.Container.ID)
		}
		to.Stirred(false)
	}
	return ctx.Err()
}

// patienceWithPing is how soon an engine answers that is there. One that starts answers nobody before it has started
// its containers.
const patienceWithPing = time.Second

// answers tells whether the engine is there, at this moment.
func (e *Engine) answers(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, patienceWithPing)
	defer cancel()
	_, err := e.client().Ping(ctx, client.PingOptions{})
	return err == nil
}

// lister asks for what events leave open.
type lister struct {
	engine *Engine
	to     Listener
	wake   chan struct{}
	known  []ipam.EngineNetwork // of this Berth, as they were listed last
	asked  []string             // the drivers by which these were told from others; none: they are to be listed anew

	mu       sync.Mutex
	ids      map[string]bool // of containers that are to be listed
	networks bool            // are to be listed
}

// want has a container listed or, without an id, the networks.
func (l *lister) want(id string) {
	l.mu.Lock()
	if id == "" {
		l.networks = true
	} else {
		l.ids[id] = true
	}
	l.mu.Unlock()
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

func (l *lister) run(ctx context.Context) {
	for networks := true; ; {
		l.list(ctx, networks)
		select {
		case <-ctx.Done():
			return
		case <-l.wake:
		}
		l.mu.Lock()
		networks, l.networks = l.networks, false
		l.mu.Unlock()
	}
}

// list lists what is wanted. What the engine does not tell now stands in the next view.
func (l *lister) list(ctx context.Context, networks bool) {
	ctx, cancel := context.WithTimeout(ctx, patienceWithList)
	defer cancel()
	api := l.engine.client()
	drivers := l.to.Drivers()
	if networks || !slices.Equal(drivers, l.asked) {
		l.asked = nil
	}
	if len(drivers) == 0 {
		return // nobody listens yet
	}
	if l.asked == nil {
		at := time.Now()
		list, err := l.engine.networks(ctx, api, drivers)
		if err != nil {
			return
		}
		l.known, l.asked = list.Networks, drivers
		l.to.Tell(&ipam.EngineNews{At: at,
			Networks: &ipam.EngineNetworkList{Networks: list.Networks, Bridges: list.Bridges}})
	}
	l.mu.Lock()
	ids := slices.Collect(maps.Keys(l.ids))
	clear(l.ids)
	l.mu.Unlock()
	if len(ids) == 0 {
		return
	}
	at := time.Now()
	answer, err := api.ContainerList(ctx,
		client.ContainerListOptions{All: true, Filters: client.Filters{}.Add("id", ids...)})
	if err != nil {
		return
	}
	p := newPlaces(l.known)
	for i := range answer.Items {
		p.addContainer(&answer.Items[i])
	}
	listed := p.sorted()
	l.engine.ports.fill(listed, false)
	l.to.Tell(&ipam.EngineNews{At: at, Listed: listed})
}
