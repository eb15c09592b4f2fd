package witness

import (
	"context"
	"errors"
	"sync"
	"time"

	"berth/internal/admin/api"
	"berth/internal/admin/client"
	"berth/internal/ipam"
)

// heartbeat is how often a daemon that listens is told that somebody is still there.
const heartbeat = time.Second

// relay passes on what an engine says to a daemon that listens, for as long as both are there. What is said while
// nobody listens is in the next view. It is connected before the engine's events come, so that the daemon can ask who
// is locked, and hear that the engine boots.
type relay struct {
	mu       sync.Mutex
	names    []string                     // of the daemon, in the engine; nil: not known yet
	engine   bool                         // its events come
	begun    bool                         // the daemon was told so
	listener func(*ipam.EngineNews) error // nil: nobody listens
	stop     context.CancelFunc           // ends that
	stir     func()                       // has a view be taken soon
	by       ipam.Onlooker                // who answers the daemon
}

func (r *relay) drivers() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.names
}

// begin notes that the engine's events come.
func (r *relay) begin() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.engine = true
}

// end notes that they have broken off: what comes later begins anew.
func (r *relay) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.engine = false
	if r.listener != nil {
		_ = r.listener(nil) // what was told last has left when this one is taken
	}
	r.hangUp()
}

// connect has the daemon listen, if it does not yet.
func (r *relay) connect(ctx context.Context, c *client.Client, host string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.listener != nil {
		return
	}
	ctx, r.stop = context.WithCancel(ctx)
	r.listener = c.TellEngine(ctx, host, r.by)
	if r.say(nil) {
		go r.beat(ctx)
	}
}

// open tells the daemon that the engine's events come from now on, if they do, and returns whether that was new.
func (r *relay) open(names []string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.names = names
	if !r.engine || r.listener == nil || r.begun {
		return false
	}
	r.begun = r.say(&ipam.EngineNews{At: time.Now(), Begins: true})
	return r.begun
}

// close ends the connection to the daemon.
func (r *relay) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.hangUp()
}

// hangUp is close for one who holds the lock.
func (r *relay) hangUp() {
	if r.stop != nil {
		r.stop()
	}
	r.listener, r.stop, r.begun = nil, nil, false
}

// tell passes news on; nil: that there are none.
func (r *relay) tell(news *ipam.EngineNews) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.listener != nil && (r.begun || news == nil) {
		r.say(news)
	}
}

// say tells whoever listens, and hangs up where nobody does any more, for one who holds the lock. The next view opens
// it again: one is taken soon, unless the daemon has refused to listen.
func (r *relay) say(news *ipam.EngineNews) (heard bool) {
	err := r.listener(news)
	if err == nil {
		return true
	}
	r.hangUp()
	if refused := new(api.Problem); !errors.As(err, &refused) {
		r.stir()
	}
	return false
}

// beat tells the daemon that somebody is there, until ctx ends.
func (r *relay) beat(ctx context.Context) {
	every := time.NewTicker(heartbeat)
	defer every.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-every.C:
			r.tell(nil)
		}
	}
}
