package etcd

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"google.golang.org/grpc"

	"berth/store"
)

// crossing makes a server notice that its quota is used up only after it has already taken a transaction.
type crossing struct {
	t     *testing.T
	e     *embed.Etcd
	c     *clientv3.Client
	fills sync.WaitGroup
}

func newCrossing(t *testing.T) (x *crossing, endpoint string) {
	t.Helper()
	b := newBetween(t, func(c *embed.Config) { c.QuotaBackendBytes, c.BackendBatchLimit = 2<<20, 1 })
	eventually(t, "the server has no more to agree on with itself",
		func() bool { return b.Server.ClusterVersion() != nil })
	return &crossing{t: t, e: b.Etcd, c: rawClient(t, b.endpoint)}, b.endpoint
}

// begin makes the server take more than it has room for. The server notices only after it has taken the next
// transaction as well.
func (x *crossing) begin() {
	tx := x.e.Server.Backend().BatchTx()
	tx.Lock()
	at := x.e.Server.CommittedIndex()
	for _, key := range []string{"fill/0", "fill/1"} {
		x.fills.Go(func() { // both are made; each answer depends on the other put
			_, _ = x.c.Put(context.Background(), key, strings.Repeat("x", 1<<20))
		})
	}
	x.fills.Go(func() {
		defer tx.Unlock()
		for end := time.Now().Add(30 * time.Second); x.e.Server.CommittedIndex() < at+3; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				x.t.Error("no transaction came in 30 s")
				return
			}
		}
	})
	eventually(x.t, "the server has taken what fills it",
		func() bool { return x.e.Server.CommittedIndex() >= at+2 })
}

// end waits until the server knows that it is full, and makes room.
func (x *crossing) end() {
	x.t.Helper()
	x.fills.Wait()
	_, err := x.c.Delete(x.t.Context(), "fill/", clientv3.WithPrefix())
	fine(x.t, err)
	makeRoom(x.t, x.c, x.c.Endpoints()[0])
}

// A server that reports no room has still made the transaction if its quota was used up after it had taken it.
// The write is answered as done, and there is no room for more.
func TestNoSpaceCrossed(t *testing.T) {
	t.Parallel()
	x, endpoint := newCrossing(t)
	cfg := patient()
	cfg.Endpoints, cfg.Host = []string{endpoint}, "a"
	s := open(t, cfg)
	f := follow(t, s)
	update(t, s, func(tx store.Tx) error {
		x.begin()
		return tx.Put([]byte("a"), []byte("1"))
	})
	x.fills.Wait()
	if got := value(t, s, "a"); got != "1" || f.told != 0 {
		t.Errorf("a is %s, and the follower was told %d times", got, f.told)
	}
	if r := s.Reach(); !errors.Is(r.Err, store.ErrNoSpace) {
		t.Errorf("it is reached so: %+v", r)
	}
	x.end()
	eventually(t, "room", func() bool { return s.Reach().Err == nil })
	update(t, s, func(tx store.Tx) error { return add(tx, "a", 1) })
	if got := value(t, open(t, cfg), "a"); got != "2" {
		t.Errorf("another handle reads %s", got)
	}
}

// The same holds for the transaction that closes the gate for a large update: the staged writes stay, or no
// handle could open the gate again. If there is no room for the writes after the gate, they are made as soon as
// there is.
func TestNoSpaceCrossedLarge(t *testing.T) {
	t.Parallel()
	for name, later := range map[string]bool{"there is room at once": false, "there is room later": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x, endpoint := newCrossing(t)
			cfg := patient()
			cfg.Endpoints = []string{endpoint}
			s, other := open(t, cfg), open(t, cfg)
			s.sizes.bytes.Store(16 << 10)
			s.dies = func(step string) error {
				switch {
				case step == "staged 2": // the last one
					x.begin()
				case step == "closed" && !later:
					x.end()
				case step == "closed": // as the next step would answer after its timeout
					x.fills.Wait()
					return s.members.explain(rpctypes.ErrNoSpace)
				}
				return nil
			}
			if err := s.Update(t.Context(), many(300, 100, "b")); err != nil {
				t.Error(err)
			}
			if later {
				if r, why := s.Reach(), s.awayError(); !errors.Is(r.Err, store.ErrNoSpace) ||
					!errors.Is(why, store.ErrNoSpace) {
					t.Errorf("it is reached so: %+v, and an update hears %v", r, why)
				}
				x.end()
			}
			for _, h := range []*Store{s, other, open(t, cfg)} {
				if got := everything(t, h); len(got) != 300 || got["many/00299"] != strings.Repeat("b", 100) {
					t.Errorf("there are %d records", len(got))
				}
			}
		})
	}
}

// After a server without room has answered, the outcome is determined: the transaction was made, was not made,
// or its outcome stays unknown.
func TestNoSpaceAnswered(t *testing.T) {
	t.Parallel()
	full := rpctypes.ErrGRPCNoSpace
	for name, c := range map[string]struct {
		made, gone, deaf bool
		want             error
		then             string // n, once it is known
	}{
		"made":                             {made: true, then: "2"},
		"not made":                         {want: store.ErrNoSpace, then: "1"},
		"made, and it cannot be asked":     {made: true, deaf: true, want: store.ErrUnknown, then: "2"},
		"not made, and it cannot be asked": {deaf: true, want: store.ErrUnknown, then: "1"},
		"made, and the marker has expired": {made: true, gone: true, want: store.ErrUnknown, then: "2"},
		"not made, and that has as well":   {gone: true, want: store.ErrUnknown, then: "1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBetween(t, nil)
			cfg := Config{Prefix: freshPrefix(), Endpoints: []string{b.endpoint}, Host: "a", Timeout: 4 * time.Second}
			s := open(t, cfg)
			update(t, s, putting("n", "1"))
			b.once(s, func(ctx context.Context, req any, take grpc.UnaryHandler) (any, error) {
				if c.made {
					if _, err := take(ctx, req); err != nil {
						t.Error(err)
					}
				}
				if c.gone {
					_, err := b.Server.LeaseRevoke(ctx, &pb.LeaseRevokeRequest{ID: int64(s.commit.marker().lease)})
					if err != nil {
						t.Error(err)
					}
				}
				if c.deaf {
					b.set(func(context.Context, any, grpc.UnaryHandler) (any, error) { return nil, rpctypes.ErrGRPCNoLeader })
				}
				return nil, full
			})
			err := s.Update(t.Context(), func(tx store.Tx) error { return add(tx, "n", 1) })
			if !errors.Is(err, c.want) || errors.Is(err, store.ErrUnknown) != (c.want == store.ErrUnknown) {
				t.Errorf("it is answered with %v; want %v", err, c.want)
			}
			b.set(nil)
			eventually(t, "updates are taken",
				func() bool { return s.Update(t.Context(), putting("m", "1")) == nil })
			eventually(t, "n is "+c.then, func() bool { return value(t, s, "n") == c.then })
			if got := inEtcd(t, b.endpoint, s.layout.counts); got[s.layout.counts+"a"] == "" {
				t.Error("nothing is counted")
			}
		})
	}
}

// A present host stays present while there is no room: presence needs no writes.
func TestNoSpacePresent(t *testing.T) {
	t.Parallel()
	x, endpoint := newCrossing(t)
	s := open(t, Config{Prefix: freshPrefix(), Endpoints: []string{endpoint}, Timeout: 5 * time.Second})
	s.Announce("a", []byte("1"))
	eventually(t, "it is present", func() bool { return string(s.Present()["a"]) == "1" })
	update(t, s, func(tx store.Tx) error {
		x.begin()
		return tx.Put([]byte("a"), []byte("1"))
	})
	x.fills.Wait()
	g, err := x.c.Get(t.Context(), s.layout.present+"a")
	fine(t, err)
	lease := clientv3.LeaseID(g.Kvs[0].Lease)
	lowest := int64(presentTTL)
	eventually(t, "it is kept", func() bool {
		l, err := x.c.TimeToLive(t.Context(), lease)
		fine(t, err)
		if l.TTL <= 0 {
			t.Fatal("it is present no more")
		}
		lowest = min(lowest, l.TTL)
		return l.TTL > lowest
	})
}
