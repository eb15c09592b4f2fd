package deploy

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"berth/internal/admin/client"
	"berth/internal/cli/compose"
	"berth/internal/ipam"
)

// How long a lock lasts without a sign of life of its deploy, and how often it gives one.
const (
	lockTTL   = 30 * time.Second
	lockEvery = 10 * time.Second
)

// lock is a project that is locked for this process, until it is unlocked or the lock is lost.
type lock struct {
	ask    func(context.Context, ipam.Edit) error // the daemon
	edit   ipam.LockDeploy
	cancel context.CancelFunc // of what is done under the lock
	ended  chan struct{}

	mu   sync.Mutex
	lost error
	good time.Time // until when it is held for sure
}

// take locks a project, and waits for another deploy as long as wait. What is done under the lock is given the context,
// which ends when the lock is lost. The caller unlocks it.
func take(ctx context.Context, c *client.Client, project, task string, owners []string,
	wait time.Duration) (context.Context, *lock, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, nil, err
	}
	l := &lock{ended: make(chan struct{}), edit: ipam.LockDeploy{Project: project, ID: ipam.NewID(), Host: host,
		PID: os.Getpid(), Task: task, Owners: owners, TTL: ipam.Duration(lockTTL)}}
	l.ask = func(ctx context.Context, e ipam.Edit) error {
		_, err := c.Edit(ctx, client.EditOptions{Deploy: l.edit.ID}, e)
		return err
	}
	return l.begin(ctx, wait)
}

// begin has the lock, and keeps it from then on.
func (l *lock) begin(ctx context.Context, wait time.Duration) (context.Context, *lock, error) {
	if err := compose.Await(ctx, wait, func() error { return l.renew(ctx) }); err != nil {
		return nil, nil, err
	}
	under, cancel := context.WithCancel(ctx)
	l.cancel = cancel
	go l.keep(under)
	return under, l, nil
}

// renew asks for the lock, or for more of it.
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

// keep renews the lock until ctx ends. Where it was taken away, or could not be renewed in time, what is done under it
// ends.
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
			l.lost = fmt.Errorf("the lock of %s is lost, and nothing further is done: %w", l.edit.Project, err)
			l.mu.Unlock()
			l.cancel()
			return
		}
	}
}

// held refuses the next step where the lock is not held for sure any more.
func (l *lock) held() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.lost != nil:
		return l.lost
	case !time.Now().Before(l.good):
		return fmt.Errorf("the lock of %s could not be renewed in time, and nothing further is done; run it again",
			l.edit.Project)
	}
	return nil
}

// unlock ends the lock, also where ctx has ended, and tells what came of the deploy.
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
