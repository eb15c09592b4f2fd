package cli

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// UntilSignal returns a context that ends with SIGTERM, SIGINT, or SIGHUP (the end of the terminal). A SIGHUP that the
// parent process ignores, as nohup(1) does, stays ignored. After the cancel function, signals have their default
// effect.
func UntilSignal(ctx context.Context) (context.Context, context.CancelFunc) {
	ends := []os.Signal{syscall.SIGTERM, syscall.SIGINT}
	if !signal.Ignored(syscall.SIGHUP) {
		ends = append(ends, syscall.SIGHUP)
	}
	return signal.NotifyContext(ctx, ends...)
}

// UntilSignal returns the run with a context that ends with such a signal.
func (r *Run) UntilSignal() (*Run, context.CancelFunc) {
	ctx, stop := UntilSignal(r)
	return r.With(ctx), stop
}

func PauseFor(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
