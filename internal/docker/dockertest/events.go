package dockertest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// stream serves the events.
func (e *Engine) stream(w http.ResponseWriter, r *http.Request) {
	ch := make(chan string, 16)
	e.Lock()
	e.streams[ch] = r.Context().Done()
	e.Unlock()
	defer func() {
		e.Lock()
		defer e.Unlock()
		delete(e.streams, ch)
	}()
	_ = http.NewResponseController(w).Flush()
	for {
		select {
		case <-r.Context().Done():
			return
		case event := <-ch:
			if event == "" {
				return
			}
			_, _ = fmt.Fprintln(w, event)
			_ = http.NewResponseController(w).Flush()
		}
	}
}

// Follows reports whether a client follows the events.
func (e *Engine) Follows() bool {
	e.Lock()
	defer e.Unlock()
	return len(e.streams) > 0
}

// BreakOff ends the event streams, but not the engine.
func (e *Engine) BreakOff() { e.send("") }

// Happen sends an event without a container.
func (e *Engine) Happen(kind, action string) {
	e.send(fmt.Sprintf(`{"Type":%q,"Action":%q,"Actor":{"ID":"x"}}`, kind, action))
}

// Tell sends an event of a container. It happened the duration ago before now.
func (e *Engine) Tell(action, id string, ago time.Duration, attributes Object) {
	e.event("container", action, id, ago, attributes)
}

// TellNetwork sends the event that a container was connected or disconnected.
func (e *Engine) TellNetwork(action, network, id string) {
	e.event("network", action, network, 0, Object{"container": id})
}

func (e *Engine) event(kind, action, actor string, ago time.Duration, attributes Object) {
	text, err := json.Marshal(Object{"Type": kind, "Action": action, "timeNano": time.Now().Add(-ago).UnixNano(),
		"Actor": Object{"ID": actor, "Attributes": attributes}})
	if err != nil {
		e.Error(err)
	}
	e.send(string(text))
}

// send sends a line to all streams. An empty line ends them.
func (e *Engine) send(line string) {
	e.Lock()
	defer e.Unlock()
	for ch, gone := range e.streams {
		select {
		case ch <- line:
		case <-gone:
		}
	}
}
