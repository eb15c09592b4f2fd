package docker

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"iter"
	"strings"
	"time"

	"berth/internal/ipam"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/events"
	"github.com/moby/moby/client"
)

// Actions on a container, in the engine's words.
const (
	eventCreate     = string(events.ActionCreate)
	eventStart      = string(events.ActionStart)
	eventDie        = string(events.ActionDie)
	eventStop       = string(events.ActionStop)
	eventDestroy    = string(events.ActionDestroy)
	eventRename     = string(events.ActionRename)
	eventConnect    = string(events.ActionConnect)
	eventDisconnect = string(events.ActionDisconnect)
)

// States of a container that will not start again.
const (
	stateDead     = string(container.StateDead)
	stateRemoving = string(container.StateRemoving)
)

// States of a running container. A restarting one runs again in a moment.
const (
	stateRunning    = string(container.StateRunning)
	statePaused     = string(container.StatePaused)
	stateRestarting = string(container.StateRestarting)
)

func isRunning(state string) bool { return state == stateRunning || state == statePaused }

// hasRun reports whether a state proves that a container was started. After a refused start it stays created, and a
// container that is being removed may have been either.
func hasRun(state string) bool {
	switch state {
	case "", string(container.StateCreated), stateDead, stateRemoving:
		return false
	}
	return true
}

// Watch follows the engine's events. It yields nil once when it is connected, then each event that may change a
// container's address or name. At the end it yields the error, which is never nil. An event without a container is
// about a network. A broken stream means that the engine stopped.
func (e *Engine) Watch(ctx context.Context) iter.Seq2[*ipam.EngineNews, error] {
	return func(yield func(*ipam.EngineNews, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		if err := e.greet(ctx); err != nil {
			cancel()
			yield(nil, err)
			return
		}
		stream := e.client().Events(ctx, client.EventsListOptions{Filters: watched()})
		defer func() {
			cancel()
			for range stream.Err { // closed by the client's goroutine when it ends
			}
		}()
		if !yield(nil, nil) {
			return
		}
		for {
			select {
			case msg := <-stream.Messages:
				if !yield(newsOf(&msg, time.Now()), nil) {
					return
				}
			case err := <-stream.Err:
				yield(nil, fmt.Errorf("cannot follow the engine's events: %w", cmp.Or(err, io.ErrUnexpectedEOF)))
				return
			}
		}
	}
}

// greet checks that the engine answers, and negotiates the API version.
func (e *Engine) greet(ctx context.Context) error {
	if err := e.renew(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	_, err := e.client().Ping(ctx, client.PingOptions{NegotiateAPIVersion: true})
	return err
}

func watched() client.Filters {
	f := client.Filters{}
	f.Add("type", string(events.NetworkEventType), string(events.ContainerEventType))
	for _, action := range []events.Action{events.ActionConnect, events.ActionDisconnect, events.ActionStart,
		events.ActionDie,
		events.ActionStop, events.ActionRename, events.ActionCreate, events.ActionDestroy, events.ActionRemove} {
		f.Add("event", string(action))
	}
	return f
}

// newsOf converts an event that was heard at a time.
func newsOf(msg *events.Message, heard time.Time) *ipam.EngineNews {
	e := &ipam.EngineEvent{Action: string(msg.Action)}
	switch msg.Type {
	case events.ContainerEventType:
		attributes := msg.Actor.Attributes
		e.Container = *showContainer(&container.Summary{ID: msg.Actor.ID, Names: []string{attributes["name"]},
			Labels: attributes})
	case events.NetworkEventType:
		e.Container.ID, e.Network = strings.TrimSpace(msg.Actor.Attributes["container"]), msg.Actor.ID
	}
	news := &ipam.EngineNews{At: heard, Event: e}
	if msg.TimeNano != 0 {
		news.Late = max(heard.Sub(time.Unix(0, msg.TimeNano)), 0)
	}
	return news
}
