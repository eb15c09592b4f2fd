package etcd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"berth/store"
)

func add(tx store.Tx, key string, d int) error {
	v, err := tx.Get([]byte(key))
	if err != nil {
		return err
	}
	n, _ := strconv.Atoi(string(v))
	return tx.Put([]byte(key), []byte(strconv.Itoa(n+d)))
}

// through returns a store behind a relay, and another one with the same records and direct access.
func through(t *testing.T, timeout time.Duration, endpoint string) (r *relay, behind, beside *Store) {
	t.Helper()
	r = newRelay(t, endpoint)
	prefix := freshPrefix()
	behind = open(t, Config{Prefix: prefix, Endpoints: []string{r.endpoint()}, Timeout: timeout})
	beside = open(t, Config{Prefix: prefix, Endpoints: []string{endpoint}, Timeout: 30 * time.Second})
	return r, behind, beside
}

// The answer to a commit is lost, and no server can be asked for its outcome: the update returns ErrUnknown, and
// the hooks run. When etcd can be asked again, the commit turns out to be made, and arrives like others' writes.
func TestUnknownCommitted(t *testing.T) {
	t.Parallel()
	r, s, beside := through(t, 3*time.Second, embedded())
	f := follow(t, s)
	undone := 0
	err := s.Update(context.Background(), func(tx store.Tx) error {
		tx.OnAbort(func() { undone++ })
		r.set(pass, lose)
		return add(tx, "n", 1)
	})
	if !errors.Is(err, store.ErrUnknown) || undone != 1 {
		t.Fatalf("%v, %d hooks", err, undone)
	}
	if err := s.Update(context.Background(), putting("m", "1")); !errors.Is(err, store.ErrAway) ||
		errors.Is(err, store.ErrUnknown) {
		t.Errorf("while it is not known: %v", err)
	}
	eventually(t, "Reach says that etcd is away",
		func() bool { r := s.Reach(); return r.Err != nil && !r.Since.IsZero() })
	if got := value(t, beside, "n"); got != "1" {
		t.Fatalf("another handle reads %s: the test lost the commit, not its answer", got)
	}
	r.heal()
	eventually(t, "what was not known is told", func() bool { return f.get("n") == "1" })
	addsTo(t, s, "n", 2)
	if got := value(t, s, "n"); got != "2" {
		t.Errorf("n is %s", got)
	}
	if c := s.Counts(); c.Unknown != 1 {
		t.Errorf("%+v", c)
	}
}

// The commit itself is lost: it turns out not to be made.
func TestUnknownLost(t *testing.T) {
	t.Parallel()
	r, s, beside := through(t, 3*time.Second, embedded())
	f := follow(t, s)
	update(t, s, putting("n", "1"))
	err := s.Update(context.Background(), func(tx store.Tx) error {
		r.set(lose, pass)
		return add(tx, "n", 1)
	})
	if !errors.Is(err, store.ErrUnknown) {
		t.Fatal(err)
	}
	r.heal()
	addsTo(t, s, "n", 2)
	if got := value(t, beside, "n"); got != "2" || f.told != 0 {
		t.Errorf("n is %s, and the follower was told %d times of others", got, f.told)
	}
}

// A commit that arrives long after it was given up is no longer taken.
func TestUnknownLate(t *testing.T) {
	t.Parallel()
	r := newRelay(t, embedded())
	s := open(t, Config{Prefix: freshPrefix(), Endpoints: []string{r.endpoint(), embedded()}, Timeout: 8 * time.Second})
	runs, undone := 0, 0
	err := s.Update(context.Background(), func(tx store.Tx) error {
		if runs++; runs == 1 {
			r.set(hold, pass)
		}
		tx.OnAbort(func() { undone++ })
		return add(tx, "n", 1)
	})
	if err != nil || runs != 2 || undone != 1 {
		t.Fatalf("%v after %d runs, %d taken back", err, runs, undone)
	}
	r.set(pass, pass) // now the commit arrives
	for range 20 {
		update(t, s, func(tx store.Tx) error { return add(tx, "n", 1) })
	}
	if got := value(t, s, "n"); got != "21" {
		t.Errorf("n is %s", got)
	}
}

// If another member can be asked, the outcome is determined before the caller has waited too long.
func TestUnknownFoundOut(t *testing.T) {
	t.Parallel()
	for name, ways := range map[string][2]way{"committed": {pass, lose}, "not committed": {lose, pass}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRelay(t, embedded())
			s := open(t, Config{Prefix: freshPrefix(), Endpoints: []string{r.endpoint(), embedded()},
				Timeout: 8 * time.Second})
			f := follow(t, s)
			runs := 0
			err := s.Update(context.Background(), func(tx store.Tx) error {
				if runs++; runs == 1 {
					r.set(ways[0], ways[1])
				}
				return add(tx, "n", 1)
			})
			if want := map[string]int{"committed": 1, "not committed": 2}[name]; err != nil || runs != want {
				t.Fatalf("%v after %d runs", err, runs)
			}
			update(t, s, func(tx store.Tx) error { return add(tx, "n", 1) })
			if got := value(t, s, "n"); got != "2" || f.told != 0 || s.Counts().Unknown != 1 {
				t.Errorf("n is %s, the follower was told %d times, %+v", got, f.told, s.Counts())
			}
		})
	}
}

// A handle that repeatedly loses its connections during commits neither loses nor doubles an increment with a
// known outcome. An increment with an unknown outcome is made or not.
func TestCountingWhileConnectionsBreak(t *testing.T) {
	t.Parallel()
	r, s, beside := through(t, 2*time.Second, embedded())
	f := follow(t, s)
	f.mu.Lock()
	f.own = "n" // an unknown increment arrives as foreign when it turns out to be made
	f.mu.Unlock()
	var mu sync.Mutex
	known, unknown := 0, 0
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for range 4 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				err := s.Update(context.Background(), func(tx store.Tx) error { return add(tx, "n", 1) })
				mu.Lock()
				switch {
				case err == nil:
					known++
				case errors.Is(err, store.ErrUnknown):
					unknown++
				case !errors.Is(err, store.ErrAway):
					t.Error(err)
				}
				mu.Unlock()
			}
		})
	}
	for i := range 30 {
		before := s.Counts().Commits
		eventually(t, "it goes on", func() bool { return s.Counts().Commits > before+2 })
		switch i % 3 {
		case 0:
			r.kick()
		case 1:
			r.set(pass, lose)
			r.heal()
		case 2:
			update(t, beside, func(tx store.Tx) error { return add(tx, "m", 1) })
		}
	}
	close(stop)
	wg.Wait()
	n, _ := strconv.Atoi(value(t, beside, "n"))
	t.Logf("%d known, %d unknown, %d there, %+v", known, unknown, n, s.Counts())
	if n < known || n > known+unknown {
		t.Errorf("%d increments were answered, %d may be there or not, and there are %d", known, unknown, n)
	}
	eventually(t, "the follower hears of the other handle", func() bool { return f.get("m") == "10" })
}

// A server is frozen, unreachable or silent: callers are refused in time, reads continue, and everything
// recovers by itself.
func TestAway(t *testing.T) {
	t.Parallel()
	kinds := map[string]struct{ away, back func(*relay, *process) }{
		"frozen": {func(_ *relay, p *process) { p.freeze() },
			func(_ *relay, p *process) { p.signal(syscall.SIGCONT) }},
		"unreachable": {func(r *relay, _ *process) { r.cut() }, func(r *relay, _ *process) { r.heal() }},
		"silent":      {func(r *relay, _ *process) { r.set(lose, lose) }, func(r *relay, _ *process) { r.heal() }},
	}
	for name, kind := range kinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := startDebian(t)
			r := newRelay(t, p.endpoint)
			cfg := Config{Prefix: freshPrefix(), Endpoints: []string{r.endpoint()}, Timeout: 2 * time.Second}
			s := open(t, cfg)
			f := follow(t, s)
			update(t, s, putting("a", "1"))
			kind.away(r, p)
			defer kind.back(r, p)
			answers := make(chan error)
			for i := range 8 {
				go func() { answers <- s.Update(context.Background(), putting(fmt.Sprint("b", i), "1")) }()
			}
			for range 8 {
				select {
				case err := <-answers:
					if !errors.Is(err, store.ErrAway) && !errors.Is(err, store.ErrUnknown) {
						t.Errorf("%v", err)
					}
				case <-time.After(20 * time.Second):
					t.Fatal("no answer in 20 s")
				}
			}
			if got := value(t, s, "a"); got != "1" {
				t.Errorf("a is %s", got)
			}
			eventually(t, "Reach says that etcd is away",
				func() bool { r := s.Reach(); return r.Err != nil && !r.Since.IsZero() })
			reach := s.Reach()
			if _, err := Open(context.Background(), cfg); !errors.Is(err, store.ErrAway) {
				t.Errorf("Open: %v", err)
			}
			kind.back(r, p)
			eventually(t, "it is within reach", func() bool { return s.Reach().Err == nil })
			eventually(t, "updates are taken",
				func() bool { return s.Update(context.Background(), putting("a", "2")) == nil })
			cfg.Endpoints, cfg.Timeout = []string{p.endpoint}, 30*time.Second
			other := open(t, cfg)
			update(t, other, putting("c", "1"))
			eventually(t, "the follower hears of others", func() bool { return f.get("c") == "1" })
			eventually(t, "it is fresh", func() bool { return s.Reach().Fresh.After(reach.Fresh) })
		})
	}
}

// A server that is restarted with its data is the same store.
func TestServerStartedAgain(t *testing.T) {
	t.Parallel()
	p := startDebian(t)
	cfg := Config{Prefix: freshPrefix(), Endpoints: []string{p.endpoint}, Timeout: 30 * time.Second}
	update(t, open(t, cfg), putting("n", "1"))
	cfg.Timeout = time.Second // to give up soon on a server that is gone
	s := open(t, cfg)
	s.Announce("a", nil)
	p.end(syscall.SIGKILL)
	// The connection may still seem open: the outcome of what was sent is unknown, though no server was left to
	// write it.
	if err := s.Update(context.Background(), putting("n", "9")); !errors.Is(err, store.ErrAway) &&
		!errors.Is(err, store.ErrUnknown) {
		t.Errorf("%v", err)
	}
	p.start()
	p.answers()
	addsTo(t, s, "n", 2)
	if got := value(t, s, "n"); got != "2" {
		t.Errorf("n is %s", got)
	}
	eventually(t, "who is present", func() bool { _, ok := s.Present()["a"]; return ok })
}

// A server is restarted with an older copy of its data: the handle notices, and takes nothing from it until
// its host trusts the copy. Then it reports the differences.
func TestServerRestored(t *testing.T) {
	t.Parallel()
	p := startDebian(t)
	s := open(t, Config{Prefix: freshPrefix(), Endpoints: []string{p.endpoint}, Timeout: 4 * time.Second})
	update(t, s, putting("n", "1"))
	p.end(syscall.SIGTERM)
	backup := t.TempDir()
	if err := os.CopyFS(backup, os.DirFS(p.data)); err != nil {
		t.Fatal(err)
	}
	p.start()
	p.answers()
	f := follow(t, s)
	for n := 2; n <= 6; n++ {
		addsTo(t, s, "n", n)
		f.set("n", value(t, s, "n"))
	}
	p.end(syscall.SIGKILL)
	if err := os.RemoveAll(p.data); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(p.data, os.DirFS(backup)); err != nil {
		t.Fatal(err)
	}
	p.start()
	p.answers()
	distrusts(t, s)
	if got := value(t, s, "n"); got != "6" {
		t.Errorf("n is %s", got)
	}
	s.Trust(store.Trace{})
	eventually(t, "the follower is told", func() bool { return f.get("n") == "1" })
	addsTo(t, s, "n", 2)
	if got := value(t, s, "n"); got != "2" {
		t.Errorf("n is %s", got)
	}
}

// Of three members one ends, then another one is frozen, then the third: the handle switches to a member that
// answers.
func TestMembers(t *testing.T) {
	t.Parallel()
	all := newMembersOf(t, 3)
	cfg := Config{Prefix: freshPrefix(), Timeout: 3 * time.Second}
	for _, p := range all {
		p.start()
		cfg.Endpoints = append(cfg.Endpoints, p.endpoint)
	}
	for _, p := range all {
		p.answers()
	}
	s, other := open(t, cfg), open(t, cfg)
	f := follow(t, other)
	known, most := 0, 0
	counts := func(n int) {
		t.Helper()
		for range n {
			eventually(t, "an update is taken", func() bool {
				most++
				err := s.Update(context.Background(), func(tx store.Tx) error { return add(tx, "n", 1) })
				if errors.Is(err, store.ErrAway) {
					most--
				}
				return err == nil
			})
			known++
		}
		now := func() int { n, _ := strconv.Atoi(value(t, s, "n")); return n }
		eventually(t, "the other handle has heard of all", func() bool { return f.get("n") == fmt.Sprint(now()) })
		if n := now(); n < known || n > most {
			t.Fatalf("%d increments were answered, %d were tried, and n is %d", known, most, n)
		}
	}
	inUse := func() *process { _, at := s.members.made(); return all[at] }
	counts(5)
	dead := inUse()
	dead.end(syscall.SIGKILL)
	counts(5)
	dead.start()
	dead.answers()
	for range 2 {
		frozen := inUse()
		frozen.freeze()
		counts(5)
		frozen.signal(syscall.SIGCONT)
		frozen.answers()
	}
	counts(5)
}

// A member is blamed only for time spent waiting for its own client, not for another member's.
func TestMemberNotBlamed(t *testing.T) {
	m, err := newMembers(Config{Endpoints: []string{"http://127.0.0.1:1", "http://127.0.0.1:2"}}.withDefaults())
	fine(t, err)
	defer m.close()
	m.fail(0)
	fine(t, m.making.take(t.Context())) // a client of the second member is being made
	over, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	err = m.askOne(t.Context(), meanwhile{over, func() { m.fail(1) }}, nil)
	if _, at := m.made(); !errors.Is(err, context.DeadlineExceeded) || at != 0 {
		t.Errorf("%v, and the endpoint %d is in use, not 0", err, at)
	}
}

// meanwhile is a context that runs happens once it is waited for.
type meanwhile struct {
	context.Context
	happens func()
}

func (w meanwhile) Done() <-chan struct{} {
	w.happens()
	return w.Context.Done()
}

// A refusal counts as an outage, so the request is repeated until its time is up. The attempt that the time cuts off
// does not hide the reason.
func TestReasonKept(t *testing.T) {
	m, err := newMembers(Config{Endpoints: []string{"http://127.0.0.1:1"}, User: "berth"}.withDefaults())
	fine(t, err)
	defer m.close()
	m.opened.Store(true)
	ctx, cancel := context.WithCancel(t.Context())
	asked := 0
	err = m.ask(ctx, func(ctx context.Context, _ *clientv3.Client) error {
		if asked++; asked == 1 {
			return rpctypes.ErrPermissionDenied
		}
		cancel()
		return ctx.Err()
	})
	if !errors.Is(err, store.ErrAway) || !strings.Contains(err.Error(), "permission denied") || asked != 2 {
		t.Errorf("after %d attempts: %v", asked, err)
	}
}

// Close of a handle returns even if etcd does not answer.
func TestCloseWhileAway(t *testing.T) {
	t.Parallel()
	r := newRelay(t, embedded())
	s := open(t, Config{Prefix: freshPrefix(), Endpoints: []string{r.endpoint()}, Timeout: time.Second})
	s.Announce("a", nil)
	r.set(lose, lose)
	closed := make(chan error)
	go func() { closed <- s.Close() }()
	select {
	case err := <-closed:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("Close hangs")
	}
}
