package etcd

import (
	"context"
	"sync"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/embed"
	"google.golang.org/grpc"
)

// between is a server. A test decides which requests it takes, when, and how it answers.
type between struct {
	*embed.Etcd
	endpoint string

	mu sync.Mutex
	do func(ctx context.Context, req any, take grpc.UnaryHandler) (any, error)
}

// newBetween starts a server that takes everything so far; change may change its configuration.
func newBetween(t testing.TB, change func(*embed.Config)) *between {
	t.Helper()
	b := &between{}
	e, err := startEmbedded(t.TempDir(), func(c *embed.Config) {
		c.GRPCAdditionalServerOptions = append(c.GRPCAdditionalServerOptions, grpc.ChainUnaryInterceptor(b.intercept))
		if change != nil {
			change(c)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	b.Etcd, b.endpoint = e, "http://"+e.Clients[0].Addr().String()
	return b
}

func (b *between) intercept(ctx context.Context, req any, _ *grpc.UnaryServerInfo,
	take grpc.UnaryHandler) (any, error) {
	b.mu.Lock()
	do := b.do
	b.mu.Unlock()
	if do == nil {
		return take(ctx, req)
	}
	return do(ctx, req, take)
}

// set sets the handler of all requests from now on; nil: they are taken.
func (b *between) set(do func(ctx context.Context, req any, take grpc.UnaryHandler) (any, error)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.do = do
}

// once sets the handler of the next transaction that commits a batch of s or closes the gate for one.
func (b *between) once(s *Store, do func(ctx context.Context, req any, take grpc.UnaryHandler) (any, error)) {
	var done sync.Once
	b.set(func(ctx context.Context, req any, take grpc.UnaryHandler) (answer any, err error) {
		mine := false
		if r, ok := req.(*pb.TxnRequest); ok && len(r.Success) > 0 &&
			string(r.Success[0].GetRequestPut().GetKey()) == s.layout.last {
			done.Do(func() { mine = true })
		}
		if mine {
			return do(ctx, req, take)
		}
		return take(ctx, req)
	})
}
