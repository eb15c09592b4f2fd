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

// patienceWithList is the longest wait for a list of a few containers. A later answer is of no use.
const patienceWithList = 2 * time.Second

// Listener receives an engine's news as they happen. Its functions are called from several goroutines.
type Listener struct {
	Drivers func() []string        // the names under which the engine may know this Berth; empty: not known yet
	Begun   func()                 // the event stream has begun
	Tell    func(*ipam.EngineNews) // called at once, before Changed
	Changed func(soon bool)        // something changed: networks (look soon) or an address
}

// Follow follows the engine's events until ctx ends or the stream breaks off. It always returns an error. The event of
// a new container does not name its networks, so Follow lists the container meanwhile. It inspects a single container
// only for its published ports, on another goroutine, because that waits for the container's lock.
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
			to.Changed(true)
			continue
		}
		to.Tell(news)
		if news.Event.Action == eventCreate {
			l.want(news.Event.Container.ID)
		}
		to.Changed(false)
	}
	return ctx.Err()
}

// patienceWithPing is the longest wait for a ping. A starting engine answers only after it has started its containers.
const patienceWithPing = time.Second

// answers reports whether the engine answers now.
func (e *Engine) answers(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, patienceWithPing)
	defer cancel()
	_, err := e.client().Ping(ctx, client.PingOptions{})
	return err == nil
}

// lister lists what the events leave open.
type lister struct {
	engine *Engine
	to     Listener
	wake   chan struct{}
	known  []ipam.EngineNetwork // of this Berth, as last listed
	asked  []string             // drivers used for the last list; empty: list again

	mu       sync.Mutex
	ids      map[string]bool // containers to list
	networks bool            // list the networks
}

// want queues a container for the next list or, if id is empty, the networks.
func (l *lister) want(id string) {
	l.mu.Lock()
	if id == "" {
		l.networks = true
	} else {
		l.ids[id] = true
	}
	l.mu.Unlock()
	wake(l.wake)
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

// list lists what is wanted. If the engine fails, the next view has it.
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
