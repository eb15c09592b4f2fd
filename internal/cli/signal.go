package cli

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// UntilSignal returns a context that ends with SIGTERM, SIGINT, or the end of the terminal (SIGHUP), unless whoever has
// started the process had that one ignored, as nohup(1) has. Afterwards a signal does what it does by itself.
func UntilSignal(ctx context.Context) (context.Context, context.CancelFunc) {
	ends := []os.Signal{syscall.SIGTERM, syscall.SIGINT}
	if !signal.Ignored(syscall.SIGHUP) {
		ends = append(ends, syscall.SIGHUP)
	}
	return signal.NotifyContext(ctx, ends...)
}

func PauseFor(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
