package etcd

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"

	"berth/store"
)

// members is the way to the members of the cluster. All requests of a handle, and its watch, go to one member; where that
// one does not answer, all go to the next. (etcd's own client hands its requests round: then each n-th would wait in vain
// for a member that is cut off from the others, for as long as it is.)
type members struct {
	cfg    Config
	tls    *tls.Config
	ctx    context.Context // of all clients
	cancel context.CancelFunc
	making chan struct{} // holds a token while a client is made

	mu      sync.Mutex
	clients []*clientv3.Client // of the endpoint with the same index; nil: not made yet
	at      int                // the endpoint in use
	inUse   context.Context    // ends when another one comes into use
	stop    context.CancelFunc
}

func newMembers(cfg Config) (*members, error) {
	ctx, cancel := context.WithCancel(context.Background())
	m := &members{cfg: cfg, ctx: ctx, cancel: cancel, making: make(chan struct{}, 1), clients: make([]*clientv3.Client, len(cfg.Endpoints))}
	m.inUse, m.stop = context.WithCancel(ctx)
	info := transport.TLSInfo{TrustedCAFile: cfg.CACert, CertFile: cfg.Cert, KeyFile: cfg.Key}
	if (cfg.Cert == "") != (cfg.Key == "") {
		return nil, errors.New("a certificate for etcd needs its key, and a key its certificate: give both --etcd-cert and --etcd-key")
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

// client is the client of the endpoint in use, and its index.
func (m *members) client(ctx context.Context) (*clientv3.Client, int, error) {
	select {
	case m.making <- struct{}{}:
		defer func() { <-m.making }()
	case <-ctx.Done():
		return nil, 0, ctx.Err()
	}
	m.mu.Lock()
	at := m.at
	c := m.clients[at]
	m.mu.Unlock()
	if c != nil {
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

func (m *members) dial(endpoint string) (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{
		Endpoints:            []string{endpoint},
		Context:              m.ctx,
		TLS:                  m.tls,
		Username:             m.cfg.User,
		Password:             m.cfg.Password,
		DialTimeout:          m.cfg.Timeout / 2, // of the log-in; connecting goes on beside
		DialKeepAliveTime:    10 * time.Second,  // gRPC takes no less
		DialKeepAliveTimeout: 2 * time.Second,   // also how long sent bytes may stay without an answer of the other kernel
		MaxUnaryRetries:      2,                 // the second try is for a token that has expired
		MaxCallSendMsgSize:   4 << 20,
		Logger:               zap.NewNop(),
		DialOptions: []grpc.DialOption{
			grpc.WithConnectParams(grpc.ConnectParams{
				Backoff:           backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second},
				MinConnectTimeout: time.Second,
			}),
			grpc.WithStatsHandler(sentHandler{}),
		},
	})
}

// fail has the next endpoint come into use, if that with index at still is the one in use.
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

// use is a context that ends when another endpoint comes into use.
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
			_ = c.Close() // its context has ended: that is all it says
		}
	}
}

// ask sends a request that may be sent twice: to the member in use, and where that one does not answer to the next ones, each
// for a share of the time that ctx leaves. The error is ready for a person.
func (m *members) ask(ctx context.Context, do func(context.Context, *clientv3.Client) error) error {
	var err error
	for left := len(m.clients); left > 0; left-- {
		share := ctx
		cancel := context.CancelFunc(func() {})
		if deadline, ok := ctx.Deadline(); ok && left > 1 {
			share, cancel = context.WithTimeout(ctx, time.Until(deadline)/time.Duration(left))
		}
		c, at, cerr := m.client(share)
		if err = cerr; err == nil {
			err = do(share, c)
		}
		cancel()
		if err == nil {
			return nil
		}
		if !isAway(err) || ctx.Err() != nil {
			break
		}
		m.fail(at)
	}
	return m.explain(err)
}

// isAway tells an error that says that there was no answer from one that is an answer.
func isAway(err error) bool {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return true
	}
	switch code(err) {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled, codes.Unknown, codes.Internal, codes.Aborted:
		return !isHandshake(err)
	}
	return false
}

func code(err error) codes.Code {
	var e rpctypes.EtcdError
	if errors.As(err, &e) {
		return e.Code()
	}
	return status.Code(err)
}

// isHandshake tells that somebody is there with whom no connection can be agreed on: gRPC says so in its text only.
func isHandshake(err error) bool {
	text := err.Error()
	for _, part := range []string{"x509:", "tls:", "authentication handshake failed", "error reading server preface: http2:"} {
		if strings.Contains(text, part) {
			return true
		}
	}
	return false
}

// explain makes an error of the client one for a person.
func (m *members) explain(err error) error {
	where := strings.Join(m.cfg.Endpoints, ", ")
	text := said{err}
	switch {
	case isAway(err):
		return fmt.Errorf("%w: etcd at %s does not answer (%w): look whether it runs and has a quorum, and whether this host reaches it", store.ErrAway, where, text)
	case isHandshake(err):
		return fmt.Errorf("etcd at %s does not agree on a connection (%w): look at http or https in --etcd-endpoints, and at --etcd-cacert, --etcd-cert and --etcd-key", where, text)
	case errors.Is(err, rpctypes.ErrNoSpace) || strings.Contains(text.Error(), "space exceeded"):
		return fmt.Errorf("%w: etcd at %s has used up its quota (%w): compact and defragment it, then disarm its alarm", store.ErrNoSpace, where, text)
	case code(err) == codes.InvalidArgument && strings.Contains(text.Error(), "authentication failed"), code(err) == codes.Unauthenticated, code(err) == codes.PermissionDenied,
		errors.Is(err, rpctypes.ErrUserEmpty), errors.Is(err, rpctypes.ErrAuthNotEnabled):
		return fmt.Errorf("etcd at %s refuses the user %q (%w): look at --etcd-user and --etcd-password-file, and at what the user may do under the prefix %q", where, m.cfg.User, text, m.cfg.Prefix)
	}
	return fmt.Errorf("etcd at %s refuses a request (%w)", where, text)
}

// said is an error without gRPC's words around it.
type said struct{ err error }

func (s said) Unwrap() error { return s.err }

func (s said) Error() string {
	var e rpctypes.EtcdError
	if errors.As(s.err, &e) {
		return e.Error()
	}
	if st, ok := status.FromError(s.err); ok {
		return st.Message()
	}
	return s.err.Error()
}

// sentHandler notes in the context of a request that it was given to a connection. One that never was has changed nothing.
type sentHandler struct{}

type sentKey struct{}

// withSent returns a context whose request notes in the bool whether it was sent.
func withSent(ctx context.Context) (context.Context, *atomic.Bool) {
	sent := new(atomic.Bool)
	return context.WithValue(ctx, sentKey{}, sent), sent
}

func (sentHandler) HandleRPC(ctx context.Context, s stats.RPCStats) {
	if _, out := s.(*stats.OutHeader); !out {
		return
	}
	if sent, ok := ctx.Value(sentKey{}).(*atomic.Bool); ok {
		sent.Store(true)
	}
}

func (sentHandler) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context   { return ctx }
func (sentHandler) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (sentHandler) HandleConn(context.Context, stats.ConnStats)                       {}
