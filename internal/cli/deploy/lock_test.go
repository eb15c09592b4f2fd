package deploy

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"berth/internal/admin/api"
	"berth/internal/ipam"
)

// daemon is a fake that answers only lock requests.
type daemon struct {
	began    time.Time
	answers  []func(context.Context) error // the answers, in order; when none is left, it agrees
	asked    []time.Duration               // when the lock was requested, since the beginning
	renewed  []bool
	unlocked *ipam.UnlockDeploy
}

func (d *daemon) ask(ctx context.Context, e ipam.Edit) error {
	switch e := e.(type) {
	case *ipam.UnlockDeploy:
		d.unlocked = e
		return ctx.Err()
	case *ipam.LockDeploy:
		d.asked, d.renewed = append(d.asked, time.Since(d.began)), append(d.renewed, e.Renews)
	}
	if len(d.answers) == 0 {
		return nil
	}
	answer := d.answers[0]
	d.answers = d.answers[1:]
	return answer(ctx)
}

func says(err error) func(context.Context) error { return func(context.Context) error { return err } }

var errAway = errors.New("nobody answers")

// locked runs a test under a lock. The clock advances when all goroutines wait.
func locked(t *testing.T, d *daemon, test func(t *testing.T, under context.Context, l *lock)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		d.began = time.Now()
		l := &lock{ask: d.ask, ended: make(chan struct{}), edit: ipam.LockDeploy{Project: "shop", ID: ipam.NewID()}}
		under, l, err := l.begin(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		test(t, under, l)
		<-l.ended
	})
}

// TestLockKept: a deploy renews its lock well before it expires, and gives it back at the end, even if it was
// interrupted (BD-1).
func TestLockKept(t *testing.T) {
	d := &daemon{}
	locked(t, d, func(t *testing.T, under context.Context, l *lock) {
		for range 200 {
			time.Sleep(time.Second)
			if err := l.held(); err != nil || under.Err() != nil {
				t.Fatalf("after %s: %v, %v", time.Since(d.began), err, under.Err())
			}
		}
		synctest.Wait()
		if len(d.asked) != 21 || d.renewed[0] || slices.Contains(d.renewed[1:], false) {
			t.Errorf("it was asked for at %v, to be renewed: %v", d.asked, d.renewed)
		}
		for i := 1; i < len(d.asked); i++ {
			if d.asked[i]-d.asked[i-1] > lockTTL/2 {
				t.Errorf("between %s and %s one lost answer is the end of it", d.asked[i-1], d.asked[i])
			}
		}
		ended, end := context.WithCancel(t.Context())
		end()
		if err := l.unlock(ended, ipam.DeployFailed, "half of it"); err != nil {
			t.Error(err)
		}
		if u := d.unlocked; u == nil || u.ID != l.edit.ID || u.Outcome != ipam.DeployFailed || u.Did != "half of it" {
			t.Errorf("it was given back by %+v", u)
		}
		time.Sleep(time.Minute)
		if len(d.asked) != 21 || under.Err() == nil {
			t.Errorf("it is asked for still, at %v; %v", d.asked, under.Err())
		}
	})
}

// TestLockLost: a deploy does nothing further if its lock was taken away or could not be renewed in time. It says
// so, and reports the loss to the daemon. One missing answer is no loss (BD-1).
func TestLockLost(t *testing.T) {
	taken := &api.Problem{Reason: string(ipam.DeployLocked), Detail: "another deploy has it"}
	hangs := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	late := func(context.Context) error { time.Sleep(5 * time.Second); return nil }
	for what, c := range map[string]struct {
		answers []func(context.Context) error
		good    time.Duration // how long the lock is held
		ends    bool          // the loss ends the work under the lock; else the next step is refused
		says    string
		told    ipam.DeployOutcome
	}{
		"taken away": {[]func(context.Context) error{says(nil), says(nil), says(taken)}, 20 * time.Second, true,
			"the lock of shop is lost, so the deploy stops: another deploy has it", ipam.DeployLost},
		"nobody answers": {[]func(context.Context) error{says(nil), says(nil), says(errAway), says(errAway),
			says(errAway)}, 40 * time.Second, true, "is lost, so the deploy stops: nobody answers",
			ipam.DeployLost},
		"an answer that does not come": {[]func(context.Context) error{says(nil), hangs}, lockTTL, false,
			"the lock of shop was not renewed in time, so the deploy stops", ipam.DeployFailed},
		"it lasts from when it was asked for": {[]func(context.Context) error{late, hangs}, lockTTL, false,
			"was not renewed in time", ipam.DeployFailed},
		"two answers are missing": {[]func(context.Context) error{says(nil), says(errAway), says(nil), says(errAway),
			says(errAway), says(nil), hangs}, 80 * time.Second, false, "was not renewed in time", ipam.DeployFailed},
	} {
		t.Run(what, func(t *testing.T) {
			d := &daemon{answers: c.answers}
			locked(t, d, func(t *testing.T, under context.Context, l *lock) {
				time.Sleep(c.good - time.Millisecond - time.Since(d.began))
				synctest.Wait()
				if err := l.held(); err != nil || under.Err() != nil {
					t.Errorf("after %s: %v, %v", time.Since(d.began), err, under.Err())
				}
				time.Sleep(time.Millisecond)
				synctest.Wait()
				if err := l.held(); err == nil || !strings.Contains(err.Error(), c.says) {
					t.Errorf("after %s it says %v", time.Since(d.began), err)
				}
				if ended := under.Err() != nil; ended != c.ends {
					t.Errorf("after %s what is done under it has ended: %v", time.Since(d.began), ended)
				}
				if err := l.unlock(under, ipam.DeployFailed, ""); err != nil || d.unlocked.Outcome != c.told {
					t.Errorf("told is %+v, %v; want %s", d.unlocked, err, c.told)
				}
			})
		})
	}
}
