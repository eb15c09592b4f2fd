package etcd

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"

	"berth/store"
)

// Once a commit is settled as not made, it never will be made, even if the handle had a new marker at that time,
// and even if the commit arrives late, when it is considered failed.
func TestSettledUnderOldMarker(t *testing.T) {
	t.Parallel()
	b := newBetween(t, nil)
	s := open(t, Config{Prefix: freshPrefix(), Endpoints: []string{b.endpoint}, Timeout: 5 * time.Second})
	was := s.commit.marker()
	late, came := make(chan struct{}), make(chan *pb.TxnResponse, 1)
	b.once(s, func(ctx context.Context, req any, take grpc.UnaryHandler) (any, error) {
		if err := s.mark(ctx); err != nil { // as the check for room does
			t.Error(err)
		}
		<-late
		resp, err := take(context.WithoutCancel(ctx), req)
		if err != nil {
			t.Error(err)
		}
		r, _ := resp.(*pb.TxnResponse)
		came <- r
		return resp, err
	})
	runs := 0
	err := s.Update(t.Context(), func(tx store.Tx) error {
		if runs++; runs > 1 {
			return errDied
		}
		return tx.Put([]byte("n"), []byte("1"))
	})
	if !errors.Is(err, errDied) {
		t.Errorf("it is answered with %v after %d runs", err, runs)
	}
	now := s.commit.marker()
	if key := was.key; inEtcd(t, b.endpoint, key)[key] == number(was.n+1) {
		t.Error("what voids a commit has its number")
	}
	close(late)
	if r := <-came; r.Succeeded {
		t.Error("it is committed after it was said that it never will be")
	}
	if got := inEtcd(t, b.endpoint, s.layout.data); len(got) > 0 {
		t.Errorf("there is %v", got)
	}
	if now.key == was.key || now.n <= was.n+1 {
		t.Errorf("the marker %+v became %+v", was, now)
	}
	// The notes belong to the marker in use: the next commit succeeds at once.
	runs = 0
	update(t, s, func(tx store.Tx) error { runs++; return add(tx, "n", 1) })
	if runs != 1 {
		t.Errorf("the next one is run %d times", runs)
	}
}

// The same commit gets an answer: its note belongs to the marker that it had.
func TestMarkedMeanwhile(t *testing.T) {
	t.Parallel()
	b := newBetween(t, nil)
	s := open(t, Config{Prefix: freshPrefix(), Endpoints: []string{b.endpoint}, Timeout: 30 * time.Second})
	b.once(s, func(ctx context.Context, req any, take grpc.UnaryHandler) (any, error) {
		if err := s.mark(ctx); err != nil {
			t.Error(err)
		}
		return take(ctx, req)
	})
	for want := range 3 {
		runs := 0
		update(t, s, func(tx store.Tx) error { runs++; return add(tx, "n", 1) })
		if got := value(t, s, "n"); runs != 1 || got != number(uint64(want)+1) {
			t.Errorf("n is %s after %d runs", got, runs)
		}
	}
}

// If the writing of a marker was given up and arrives late, that marker is not the one in use. Otherwise it
// would overwrite the number by which a commit without an answer is found.
func TestMarkerLate(t *testing.T) {
	t.Parallel()
	b := newBetween(t, nil)
	s := open(t, Config{Prefix: freshPrefix(), Endpoints: []string{b.endpoint}, Timeout: 30 * time.Second})
	var late func()
	b.set(func(ctx context.Context, req any, take grpc.UnaryHandler) (any, error) {
		r, ok := req.(*pb.PutRequest)
		if !ok || !strings.HasPrefix(string(r.Key), s.layout.marker) || late != nil {
			return take(ctx, req)
		}
		late = func() {
			if _, err := take(context.WithoutCancel(ctx), req); err != nil {
				t.Error(err)
			}
		}
		return nil, rpctypes.ErrGRPCTimeout
	})
	fine(t, s.mark(t.Context()))
	b.once(s, func(ctx context.Context, req any, take grpc.UnaryHandler) (any, error) {
		if _, err := take(ctx, req); err != nil {
			t.Error(err)
		}
		late()
		return nil, rpctypes.ErrGRPCTimeout
	})
	runs := 0
	update(t, s, func(tx store.Tx) error { runs++; return add(tx, "n", 1) })
	if got := value(t, s, "n"); runs != 1 || got != "1" {
		t.Errorf("n is %s after %d runs", got, runs)
	}
}
