package scene

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
)

// Span is how long a container is watched. Without a healthcheck it must run for Least. With one it must become
// healthy. Most is the limit for both.
type Span struct{ Least, Most time.Duration }

// lookEvery is how often a watched container is inspected.
const lookEvery = 200 * time.Millisecond

// Watch waits until a container works: it is healthy or, without a healthcheck, has run for the minimum time without a
// restart. Its error says what happened instead.
func (e *Engine) Watch(ctx context.Context, id string, span Span) error {
	return e.look(ctx, id, func(c *container.InspectResponse, restarts int, watched time.Duration) (bool, error) {
		return judge(c, restarts, watched, span)
	})
}

// Ends waits until a container has ended, without a time limit. Its error describes an end with another exit code than
// 0.
func (e *Engine) Ends(ctx context.Context, id string) error {
	return e.look(ctx, id, func(c *container.InspectResponse, _ int, _ time.Duration) (bool, error) {
		return ended(c)
	})
}

// look inspects a container until is returns true. restarts is the number of its earlier restarts.
func (e *Engine) look(ctx context.Context, id string,
	is func(c *container.InspectResponse, restarts int, watched time.Duration) (bool, error)) error {
	begin := time.Now()
	again := time.NewTicker(lookEvery)
	defer again.Stop()
	restarts := -1
	for {
		shown, err := e.api.ContainerInspect(ctx, id, client.ContainerInspectOptions{})
		if err != nil {
			return fmt.Errorf("it cannot be watched: %w", err)
		}
		c := &shown.Container
		if restarts < 0 {
			restarts = c.RestartCount
		}
		if done, err := is(c, restarts, time.Since(begin)); done || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-again.C:
		}
	}
}

// ended reports whether a container has ended successfully; an error means that it failed.
func ended(c *container.InspectResponse) (bool, error) {
	switch {
	case c.State == nil:
		return false, errors.New("the engine does not report its state")
	case c.State.Status == container.StateDead, c.State.Status == container.StateRemoving:
		return false, fmt.Errorf("the engine calls it %s", c.State.Status)
	case c.State.Status != container.StateExited:
		return false, nil
	case c.State.ExitCode != 0 || c.State.Error != "":
		return false, fmt.Errorf("it ended with exit code %d %s", c.State.ExitCode, c.State.Error)
	}
	return true, nil
}

// judge reports whether a watched container works. An error means that it does not, and that the watch ends.
func judge(c *container.InspectResponse, restarts int, watched time.Duration, span Span) (works bool, err error) {
	switch {
	case c.State == nil:
		return false, errors.New("the engine does not report its state")
	case c.State.Status == container.StateExited, c.State.Status == container.StateDead:
		return false, fmt.Errorf("it ended with exit code %d after %s", c.State.ExitCode, watched.Round(time.Second))
	case c.RestartCount != restarts || c.State.Status == container.StateRestarting:
		return false, fmt.Errorf("it ended with exit code %d and was started again", c.State.ExitCode)
	case c.State.Health == nil || c.State.Health.Status == container.NoHealthcheck:
		return ran(c.State, watched, span)
	case c.State.Health.Status == container.Healthy:
		return true, nil
	case c.State.Health.Status == container.Unhealthy:
		return false, fmt.Errorf("its healthcheck reports it as unhealthy%s", lastCheck(c.State.Health))
	case watched >= span.Most:
		return false, fmt.Errorf("its healthcheck has not reported it as healthy within %s%s", span.Most,
			lastCheck(c.State.Health))
	}
	return false, nil
}

// ran judges a container without a healthcheck. It may be paused, or not have started.
func ran(state *container.State, watched time.Duration, span Span) (works bool, err error) {
	switch runs := state.Status == container.StateRunning; {
	case runs && watched >= span.Least:
		return true, nil
	case !runs && watched >= max(span.Least, span.Most):
		return false, fmt.Errorf("it is still not running after %s; its state is %s", max(span.Least, span.Most),
			state.Status)
	}
	return false, nil
}

// lastCheck returns the output of the last healthcheck.
func lastCheck(h *container.Health) string {
	if len(h.Log) == 0 || h.Log[len(h.Log)-1].Output == "" {
		return ""
	}
	return fmt.Sprintf("; it said %q", h.Log[len(h.Log)-1].Output)
}
