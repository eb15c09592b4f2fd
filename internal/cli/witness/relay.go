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

// heartbeat is the interval of messages that show a listening daemon that this process lives.
const heartbeat = time.Second

// relay forwards an engine's events to a listening daemon while both are connected. Events that happen while nobody
// listens are in the next view. It connects before the engine's event stream begins, so that the daemon can ask for
// locked containers and learns that the engine boots.
type relay struct {
	mu       sync.Mutex
	names    []string                     // the engine's names for the daemon; nil: not known yet
	engine   bool                         // the engine's event stream is connected
	begun    bool                         // the daemon knows that
	listener func(*ipam.EngineNews) error // nil: the daemon does not listen
	stop     context.CancelFunc           // ends the connection to the listener
	wake     func()                       // requests a view soon
	by       ipam.Onlooker                // answers the daemon's questions
}

func (r *relay) drivers() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.names
}

// begin records that the engine's event stream has begun.
func (r *relay) begin() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.engine = true
}

// end records that the event stream has ended. The next one begins anew.
func (r *relay) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.engine = false
	if r.listener != nil {
		_ = r.listener(nil) // the listener accepts this one only after it has sent the last one
	}
	r.hangUp()
}

// connect makes the daemon listen, if it does not yet.
func (r *relay) connect(ctx context.Context, c *client.Client, host string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.listener != nil {
		return
	}
	ctx, r.stop = context.WithCancel(ctx)
	r.listener = c.TellEngine(ctx, host, r.by)
	if r.say(nil) {
		go r.sendHeartbeats(ctx)
	}
}

// open tells the daemon that the engine's event stream has begun. It returns false if the stream has not, or if the
// daemon knows already.
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

// hangUp ends the connection to the daemon. The caller holds mu.
func (r *relay) hangUp() {
	if r.stop != nil {
		r.stop()
	}
	r.listener, r.stop, r.begun = nil, nil, false
}

// tell forwards an event, or a heartbeat if news is nil.
func (r *relay) tell(news *ipam.EngineNews) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.listener != nil && (r.begun || news == nil) {
		r.say(news)
	}
}

// say sends news to the listener, and hangs up if that fails. The next view connects again. It comes soon, unless the
// daemon has refused to listen. The caller holds mu.
func (r *relay) say(news *ipam.EngineNews) (heard bool) {
	err := r.listener(news)
	if err == nil {
		return true
	}
	r.hangUp()
	if refused := new(api.Problem); !errors.As(err, &refused) {
		r.wake()
	}
	return false
}

// sendHeartbeats sends heartbeats until ctx ends.
func (r *relay) sendHeartbeats(ctx context.Context) {
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
