package etcd

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"

	"berth/store"
)

// There are more callers than fit one transaction. Some fail, panic, end their goroutine, or give up while they
// wait. Each gets an answer, and the store holds what was answered.
func TestManyCallers(t *testing.T) {
	t.Parallel()
	s := open(t, patient())
	var mu sync.Mutex
	want := map[string]string{}
	big := strings.Repeat("x", 100<<10)
	var wg sync.WaitGroup
	for i := range 200 {
		wg.Go(func() {
			key := fmt.Sprintf("k%03d", i)
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			if i%10 == 9 {
				go cancel()
			}
			defer func() {
				if p := recover(); (p != nil) != (i%10 == 7) {
					t.Errorf("caller %d sees the panic %v", i, p)
				}
			}()
			err := s.Update(ctx, func(tx store.Tx) error {
				if err := putting(key, big)(tx); err != nil {
					return err
				}
				switch i % 10 {
				case 6:
					return errDied
				case 7:
					panic("on purpose")
				case 8:
					runtime.Goexit()
				}
				return nil
			})
			switch {
			case i%10 == 6 && err != errDied, i%10 == 8 && err == nil, i%10 < 6 && err != nil, i%10 == 9 &&
				err != nil && !errors.Is(err, context.Canceled):
				t.Errorf("caller %d: %v", i, err)
			}
			if err == nil {
				mu.Lock()
				defer mu.Unlock()
				want[key] = big
			}
		})
	}
	wg.Wait()
	got := everything(t, s)
	for key := range want {
		if got[key] != big {
			t.Errorf("%s is not there", key)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d records, %d were answered", len(got), len(want))
	}
	if c := s.Counts(); c.Commits < 10 || c.Commits > c.Updates {
		t.Errorf("%+v: 12 MB do not fit fewer requests", c)
	}
}

// An update that reads all records finishes even though another handle writes all the time.
func TestReaderOfEverything(t *testing.T) {
	t.Parallel()
	cfg := patient()
	s, other := open(t, cfg), open(t, cfg)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					update(t, other, func(tx store.Tx) error { return add(tx, fmt.Sprint("n", w), 1) })
				}
			}
		})
	}
	runs := 0
	for i := range 5 {
		update(t, s, func(tx store.Tx) error {
			runs++
			if err := scanInto(map[string]string{}, tx); err != nil {
				return err
			}
			time.Sleep(5 * time.Millisecond) // long enough for the others to commit first
			return putting("seen", fmt.Sprint(i))(tx)
		})
	}
	close(stop)
	wg.Wait()
	t.Logf("%d runs of 5 updates", runs)
	if runs > 5*(lockAfter+1)+5 {
		t.Errorf("5 updates were run %d times", runs)
	}
}

// A handle that dies after it closed the gate for a batch does not stop the others.
func TestLockedDies(t *testing.T) {
	t.Parallel()
	cfg := patient()
	s, other := open(t, cfg), open(t, cfg)
	die(s, "locked")
	n := 0
	err := s.Update(context.Background(), func(tx store.Tx) error {
		n++
		update(t, other, func(tx store.Tx) error { return add(tx, "n", 1) }) // commits first each time
		return add(tx, "n", 1)
	})
	if err == nil || n != lockAfter {
		t.Fatalf("%v after %d runs", err, n)
	}
	update(t, other, func(tx store.Tx) error { return add(tx, "n", 1) })
	if got, want := value(t, other, "n"), fmt.Sprint(lockAfter+1); got != want {
		t.Errorf("n is %s, not %s", got, want)
	}
}

// An update that is too large for etcd is refused, and the error names the limit to raise.
func TestSmallRequests(t *testing.T) {
	t.Parallel()
	cfg := patient()
	cfg.Endpoints = []string{otherEmbedded(t, func(c *embed.Config) { c.MaxRequestBytes = 64 << 10 })}
	s := open(t, cfg)
	update(t, s, many(300, 1000, "a"))
	if got := len(everything(t, open(t, cfg))); got != 300 {
		t.Errorf("%d records", got)
	}
	err := s.Update(context.Background(), putting("a", strings.Repeat("a", 100<<10)))
	if !errors.Is(err, store.ErrTooLarge) || !strings.Contains(err.Error(), "--max-request-bytes") {
		t.Errorf("%v", err)
	}
	update(t, s, putting("a", "1"))
}

// A server that has used up its quota refuses writes until it has room again.
func TestNoSpace(t *testing.T) {
	t.Parallel()
	cfg := patient()
	cfg.Endpoints = []string{otherEmbedded(t, func(c *embed.Config) { c.QuotaBackendBytes = 2 << 20 })}
	s := open(t, cfg)
	var err error
	for i := 0; err == nil && i < 100; i++ {
		err = s.Update(context.Background(), putting("a", strings.Repeat(fmt.Sprint(i%10), 100<<10)))
	}
	if !errors.Is(err, store.ErrNoSpace) {
		t.Fatal(err)
	}
	if r := s.Reach(); !errors.Is(err, store.ErrAway) || !errors.Is(r.Err, store.ErrNoSpace) || r.Since.IsZero() {
		t.Errorf("refused with %v, and then reached so: %+v", err, r)
	}
	if got := value(t, s, "a"); len(got) != 100<<10 {
		t.Errorf("a has %d bytes", len(got))
	}
	c, err := clientv3.New(clientv3.Config{Endpoints: cfg.Endpoints})
	fine(t, err)
	defer c.Close()
	for range 3 { // answered reads do not make it writable
		_, err := s.askLast(t.Context())
		fine(t, err)
	}
	if r := s.Reach(); r.Err == nil {
		t.Error("it is within reach without any room")
	}
	makeRoom(t, c, cfg.Endpoints[0])
	eventually(t, "room", func() bool { return s.Reach().Err == nil })
	update(t, s, putting("a", "1"))
}

func fine(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// makeRoom does what a person does when etcd has used up its quota.
func makeRoom(t *testing.T, c *clientv3.Client, endpoint string) {
	t.Helper()
	g, err := c.Get(t.Context(), "nothing")
	fine(t, err)
	_, err = c.Compact(t.Context(), g.Header.Revision, clientv3.WithCompactPhysical())
	fine(t, err)
	_, err = c.Defragment(t.Context(), endpoint)
	fine(t, err)
	_, err = c.AlarmDisarm(t.Context(), &clientv3.AlarmMember{})
	fine(t, err)
}
