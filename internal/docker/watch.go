package docker

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"iter"

	"github.com/moby/moby/api/types/events"
	"github.com/moby/moby/client"
)

// Watch follows the engine's events: it yields once when it is connected, then for each event after which a container may have
// another address or name, and in the end the error that ended it, which is never nil. A stream that breaks means that the engine
// stopped.
func (e *Engine) Watch(ctx context.Context) iter.Seq2[struct{}, error] {
	return func(yield func(struct{}, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		if err := e.greet(ctx); err != nil {
			cancel()
			yield(struct{}{}, err)
			return
		}
		stream := e.client().Events(ctx, client.EventsListOptions{Filters: watched()})
		defer func() {
			cancel()
			for range stream.Err { // closed by the client's goroutine when it ends
			}
		}()
		if !yield(struct{}{}, nil) {
			return
		}
		for {
			select {
			case <-stream.Messages:
				if !yield(struct{}{}, nil) {
					return
				}
			case err := <-stream.Err:
				yield(struct{}{}, fmt.Errorf("the engine's events: %w", cmp.Or(err, io.ErrUnexpectedEOF)))
				return
			}
		}
	}
}

// greet makes sure that an engine is there, and agrees with it upon the version of its API.
func (e *Engine) greet(ctx context.Context) error {
	if err := e.renew(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patienceWithEngine)
	defer cancel()
	_, err := e.client().Ping(ctx, client.PingOptions{NegotiateAPIVersion: true})
	return err
}

func watched() client.Filters {
	f := client.Filters{}
	f.Add("type", string(events.NetworkEventType), string(events.ContainerEventType))
	for _, action := range []events.Action{events.ActionConnect, events.ActionDisconnect, events.ActionStart, events.ActionDie,
		events.ActionRename, events.ActionCreate, events.ActionDestroy, events.ActionRemove} {
		f.Add("event", string(action))
	}
	return f
}
