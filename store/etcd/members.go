package etcd

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/peer"

	"berth/store"
)

// members sends requests to the cluster's members. All requests of a handle, and its watch, use one member. If that one
// does not answer, all use the next. (etcd's own client uses the members in turn. If one of them is cut off from the
// others, each n-th request would wait in vain.)
type members struct {
	cfg    Config
	tls    *tls.Config
	ctx    context.Context // of all clients
	cancel context.CancelFunc
	making turn // held while a client is created

	opened atomic.Bool // the store was opened: a refused connection may work again later

	mu      sync.Mutex
	clients []*clientv3.Client // by endpoint; nil: not created yet
	at      int                // the endpoint in use
	inUse   context.Context    // ends when another member comes into use
	stop    context.CancelFunc
}

func newMembers(cfg Config) (*members, error) {
	for _, e := range cfg.Endpoints {
		u, err := url.Parse(e)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return nil, fmt.Errorf("%q is not an endpoint of etcd: give http://HOST:PORT or https://HOST:PORT", e)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	m := &members{cfg: cfg, ctx: ctx, cancel: cancel, making: make(turn, 1),
		clients: make([]*clientv3.Client, len(cfg.Endpoints))}
	m.inUse, m.stop = context.WithCancel(ctx)
	info := transport.TLSInfo{TrustedCAFile: cfg.CACert, CertFile: cfg.Cert, KeyFile: cfg.Key}
	if (cfg.Cert == "") != (cfg.Key == "") {
		return nil, errors.New("a certificate for etcd needs its key, and a key its certificate: give both " +
			"--etcd-cert and --etcd-key")
	}
	if cfg.CACert != "" || cfg.Cert != "" {
		t, err := info.ClientConfig()
		if err != nil {
			return nil, fmt.Errorf("read the certificates for etcd: %w", err)
		}
		m.tls = t
	}
	return m, nil
}

// client returns the client of the endpoint in use, and its index. An error comes with the index of the endpoint that
// it waited for.
func (m *members) client(ctx context.Context) (*clientv3.Client, int, error) {
	c, at := m.made()
	if c != nil {
		return c, at, nil
	}
	if err := m.making.take(ctx); err != nil {
		return nil, at, err
	}
	defer m.making.give()
	if c, at = m.made(); c != nil {
		return c, at, nil
	}
	c, err := m.dial(m.cfg.Endpoints[at])
	if err != nil {
		return nil, at, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.clients[at] = c
	return c, at, nil
}

func (m *members) made() (c *clientv3.Client, at int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.clients[m.at], m.at
}

func (m *members) dial(endpoint string) (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{
		Endpoints:         []string{endpoint},
		Context:           m.ctx,
		TLS:               m.tls,
		Username:          m.cfg.User,
		Password:          m.cfg.Password,
		DialTimeout:       m.cfg.Timeout / 2, // for the login; connecting goes on in the background
		DialKeepAliveTime: 10 * time.Second,  // gRPC takes no less
		// also how long sent bytes may stay unacknowledged
		DialKeepAliveTimeout: 2 * time.Second,
		MaxUnaryRetries:      2, // the second attempt is for an expired token
		Logger:               zap.NewNop(),
		DialOptions: []grpc.DialOption{
			grpc.WithConnectParams(grpc.ConnectParams{
				Backoff: backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2,
					MaxDelay: time.Second},
				MinConnectTimeout: time.Second,
			}),
			grpc.WithChainUnaryInterceptor(notWaiting),
		},
	})
}

// notWaiting makes a request fail at once, with the reason, if there is no connection. etcd's client would let it wait.
func notWaiting(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker,
	opts ...grpc.CallOption) error {
	opts = append(opts, grpc.WaitForReady(false), grpc.MaxCallRecvMsgSize(math.MaxInt32))
	return invoke(ctx, method, req, reply, cc, opts...)
}

// fail switches to the next endpoint, if the one with index at is still in use.
func (m *members) fail(at int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.clients) < 2 || at != m.at {
		return
	}
	m.at = (at + 1) % len(m.clients)
	m.stop()
	m.inUse, m.stop = context.WithCancel(m.ctx)
}

// use returns a context that ends when another endpoint comes into use.
func (m *members) use() context.Context {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.inUse
}

func (m *members) close() {
	m.cancel()
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range m.clients {
		if c != nil {
			_ = c.Close() // its context has ended; there is no other error
		}
	}
}

// ask sends a request that may be repeated: to the member in use, then to the others, and again until ctx ends. Its
// error is a text for people: of the last attempt that ctx did not cut off, since that says more than a timeout.
func (m *members) ask(ctx context.Context, do func(context.Context, *clientv3.Client) error) error {
	var before error
	for {
		err := m.askEach(ctx, do)
		switch {
		case err != nil && before != nil && ctx.Err() != nil:
			return before
		case err == nil || !errors.Is(err, store.ErrAway) || !sleep(ctx, 100*time.Millisecond):
			return err
		}
		before = err
	}
}

// leastShare is the least time to wait for a member before the next one is asked.
const leastShare = 400 * time.Millisecond

// askEach asks each member at most once, for a share of ctx's time.
func (m *members) askEach(ctx context.Context, do func(context.Context, *clientv3.Client) error) (err error) {
	for left := len(m.clients); left > 0; left-- {
		share, cancel := ctx, context.CancelFunc(func() {})
		if deadline, ok := ctx.Deadline(); ok && left > 1 {
			share, cancel = context.WithTimeout(ctx, max(time.Until(deadline)/time.Duration(left), leastShare))
		}
		err = m.askOne(ctx, share, do)
		cancel()
		if err == nil {
			return nil
		}
		if !isAway(err) || ctx.Err() != nil {
			break
		}
	}
	return m.explain(err)
}

// askOne asks the member in use, for at most share. If it does not answer while ctx lasts, the next one comes into use.
func (m *members) askOne(ctx, share context.Context, do func(context.Context, *clientv3.Client) error) error {
	c, at, err := m.client(share)
	if err == nil {
		err = do(share, c)
	}
	if err != nil && isAway(err) && ctx.Err() == nil {
		m.fail(at)
	}
	return err
}

// txn sends a transaction that may be repeated.
func (m *members) txn(ctx context.Context, r *pb.TxnRequest) (resp *pb.TxnResponse, err error) {
	err = m.ask(ctx, func(ctx context.Context, c *clientv3.Client) (err error) {
		resp, err = sendTxn(ctx, c, r)
		return err
	})
	return resp, err
}

// do sends operations without comparisons that may be repeated.
func (m *members) do(ctx context.Context, ops ...*pb.RequestOp) (*pb.TxnResponse, error) {
	return m.txn(ctx, &pb.TxnRequest{Success: ops})
}

// txnOnce sends a transaction so that etcd gets it at most once. Without an answer, unsent reports that etcd did not
// get it. The error is etcd's own.
func (m *members) txnOnce(ctx context.Context, r *pb.TxnRequest) (resp *pb.TxnResponse, unsent bool, err error) {
	for {
		var to peer.Peer // the server that got it; without one nothing has changed
		err = m.askOne(m.ctx, ctx, func(ctx context.Context, c *clientv3.Client) (err error) {
			resp, err = sendTxn(ctx, c, r, grpc.Peer(&to))
			return err
		})
		unsent = to.Addr == nil
		if err == nil || !unsent || !isAway(err) || !sleep(ctx, 50*time.Millisecond) {
			return resp, unsent, err
		}
	}
}

func sendTxn(ctx context.Context, c *clientv3.Client, r *pb.TxnRequest, opts ...grpc.CallOption) (*pb.TxnResponse,
	error) {
	resp, err := pb.NewKVClient(c.ActiveConnection()).Txn(ctx, r, opts...)
	return resp, rpctypes.Error(err)
}

// sleep waits. It returns false if ctx has ended.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}
