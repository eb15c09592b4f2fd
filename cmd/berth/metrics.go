package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"time"

	"berth/internal/admin"
	"berth/internal/admin/api"
	"berth/internal/connlimit"
	"berth/internal/ipam"
	"berth/internal/metrics"

	"github.com/sirupsen/logrus"
)

// meter counts what happens in the daemon, for /metrics.
type meter struct{ *metrics.Meter }

// watches adds metrics about the current state.
func (m *meter) watches(h *backend, st *storage, witness func() ipam.WitnessState, hooks func() *api.HookCounts,
	webhooks func() []api.WebhookState, names func() *api.NamesState, found func() []ipam.Finding) {
	from := metrics.Sources{Version: version, Records: h.service, Witness: witness, Found: found}
	if st.path != "" {
		from.Bytes = func() (int64, error) {
			info, err := os.Stat(st.path)
			if err != nil {
				return 0, err
			}
			return info.Size(), nil
		}
	}
	if status := h.status(); status != nil {
		from.Cluster = func() bool {
			now := status()
			return now.Away == "" && now.Refused == "" && !now.NoSpace
		}
		from.Spare = func() []ipam.HeadroomState { return status().Headroom }
	}
	if hooks != nil {
		from.Hooks = func() uint64 { return hooks().Failures }
	}
	if webhooks != nil {
		from.Webhooks = func() (failures, aside uint64, waiting time.Time) {
			for _, s := range webhooks() {
				failures += s.Failures
				aside += s.Aside
				if !s.Waiting.IsZero() && (waiting.IsZero() || s.Waiting.Before(waiting)) {
					waiting = s.Waiting
				}
			}
			return failures, aside, waiting
		}
	}
	if names != nil {
		from.Names = func() (int, map[string]uint64) {
			now := names()
			return now.Names, now.Queries
		}
	}
	m.Watch(from)
}

// Limits for clients of the metrics.
const (
	metricsPlaces = 256
	metricsBytes  = 1 << 20 // of requests that have not arrived completely
	metricsHead   = 16 << 10
	metricsHeader = 5 * time.Second
	metricsAnswer = 30 * time.Second
	metricsIdle   = 2 * time.Minute
)

// listenMetrics binds the address of --metrics-listen; nil if none is given. Without a host it is the loopback address.
func (cfg serveConfig) listenMetrics(ctx context.Context, log *logrus.Entry) (net.Listener, error) {
	if cfg.metricsListen == "" {
		return nil, nil
	}
	host, port, err := net.SplitHostPort(cfg.metricsListen)
	if err != nil {
		return nil, fmt.Errorf("--metrics-listen is %q: give an address and a port, such as 127.0.0.1:9723: %w",
			cfg.metricsListen, err)
	}
	if host == "" {
		host = "127.0.0.1"
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(host, port))
	if err != nil {
		return nil, fmt.Errorf("cannot listen on --metrics-listen %s: %w", cfg.metricsListen, rootCause(err))
	}
	log.WithField("address", l.Addr().String()).Info("anybody who can connect can read the metrics at /metrics")
	return l, nil
}

// ownName refuses a browser with a foreign host name on the loopback address. Another site may have directed that name
// there (DNS rebinding) to read the answer. On other addresses the clients' names for this host are not known.
func ownName(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		at, _ := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
		name := r.Host
		if host, _, err := net.SplitHostPort(name); err == nil {
			name = host
		}
		_, err := netip.ParseAddr(strings.Trim(name, "[]"))
		if at != nil && at.IP.IsLoopback() && err != nil && name != "" && !strings.EqualFold(name, "localhost") {
			http.Error(w, "use localhost or an IP address as the host name in the URL", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// serve answers only GET /metrics until ctx ends.
func (m *meter) serve(ctx context.Context, l net.Listener, log *logrus.Entry) error {
	if l == nil {
		return nil
	}
	metrics, mux := m.Handler(), http.NewServeMux()
	mux.HandleFunc("GET "+api.GetMetrics.Path, func(w http.ResponseWriter, r *http.Request) {
		defer connlimit.Answering(r.Context())()
		metrics.ServeHTTP(w, r)
	})
	server := &http.Server{Handler: ownName(mux), ReadHeaderTimeout: metricsHeader, ReadTimeout: metricsHeader,
		WriteTimeout: metricsAnswer, IdleTimeout: metricsIdle, ErrorLog: admin.ErrorLog(log, logrus.DebugLevel),
		ConnContext: connlimit.Context, MaxHeaderBytes: metricsHead}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() }) // the next scrape comes by itself
	defer stop()
	if err := server.Serve(connlimit.New(metricsPlaces, metricsBytes).Listener(l)); ctx.Err() == nil {
		return fmt.Errorf("the metrics: %w", err)
	}
	return nil
}
