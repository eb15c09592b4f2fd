package deploy

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"berth/internal/admin/client"
	"berth/internal/cli"
	"berth/internal/cli/compose"
	"berth/internal/ipam"
)

// The lifetime of a lock that is not renewed, and the interval between renewals.
const (
	lockTTL   = 30 * time.Second
	lockEvery = 10 * time.Second
)

// lock is a project's lock held by this process, until it is unlocked or lost.
type lock struct {
	ask    func(context.Context, ipam.Edit) error // the daemon
	edit   ipam.LockDeploy
	cancel context.CancelFunc // cancels what runs under the lock
	ended  chan struct{}

	mu   sync.Mutex
	lost error
	good time.Time // the lock is held for sure until then
}

// take locks a project. It waits at most wait for another deploy. The returned context ends when the lock is lost. The
// caller must unlock.
func take(r *cli.Run, project, task string, owners []string, wait time.Duration) (context.Context, *lock, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, nil, err
	}
	l := &lock{ended: make(chan struct{}), edit: ipam.LockDeploy{Project: project, ID: ipam.NewID(), Host: host,
		PID: os.Getpid(), Task: task, Owners: owners, TTL: ipam.Duration(lockTTL)}}
	l.ask = func(ctx context.Context, e ipam.Edit) error {
		_, err := r.Edit(ctx, client.EditOptions{Deploy: l.edit.ID}, e)
		return err
	}
	return l.begin(r, wait)
}

// begin takes the lock and keeps renewing it.
func (l *lock) begin(ctx context.Context, wait time.Duration) (context.Context, *lock, error) {
	if err := compose.Await(ctx, wait, func() error { return l.renew(ctx) }); err != nil {
		return nil, nil, err
	}
	under, cancel := context.WithCancel(ctx)
	l.cancel = cancel
	go l.keep(under)
	return under, l, nil
}

// renew takes or renews the lock.
func (l *lock) renew(ctx context.Context) error {
	asked := time.Now()
	err := l.ask(ctx, &l.edit)
	if err == nil {
		l.edit.Renews = true
		l.mu.Lock()
		l.good = asked.Add(lockTTL)
		l.mu.Unlock()
	}
	return err
}

// keep renews the lock until ctx ends. If the lock was taken away or could not be renewed in time, it cancels what runs
// under it.
func (l *lock) keep(ctx context.Context) {
	defer close(l.ended)
	again := time.NewTicker(lockEvery)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-again.C:
		}
		err := l.renew(ctx)
		if ctx.Err() != nil {
			return
		}
		if compose.Locked(err) || err != nil && l.held() != nil {
			l.mu.Lock()
			l.lost = fmt.Errorf("the lock of %s is lost, so the deploy stops: %w", l.edit.Project, err)
			l.mu.Unlock()
			l.cancel()
			return
		}
	}
}

// held returns an error if the lock is no longer held for sure.
func (l *lock) held() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.lost != nil:
		return l.lost
	case !time.Now().Before(l.good):
		return fmt.Errorf("the lock of %s was not renewed in time, so the deploy stops; run the command again",
			l.edit.Project)
	}
	return nil
}

// unlock releases the lock, even if ctx has ended, and records the outcome of the deploy.
func (l *lock) unlock(ctx context.Context, outcome ipam.DeployOutcome, did string) error {
	l.cancel()
	<-l.ended
	l.mu.Lock()
	if l.lost != nil {
		outcome = ipam.DeployLost
	}
	l.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lockEvery)
	defer cancel()
	return l.ask(ctx, &ipam.UnlockDeploy{Project: l.edit.Project, ID: l.edit.ID, Outcome: outcome, Did: cut(did)})
}
