package metrics

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"berth/internal/background"
	"berth/internal/ipam"
	"berth/store"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
)

// Meter counts what happens, and tells it with what is there.
type Meter struct {
	registry *prometheus.Registry
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
	commits  prometheus.Histogram
	down     atomic.Bool // the host's own store did not take its last change
	records  Records     // nil until Watch
	packers  background.Packers
}

// New returns a Meter, which tells of nothing but what it is told itself until Watch.
func New() *Meter {
	m := &Meter{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{Name: requests, Help: help(requests)},
			labels(requests)),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: requestDuration,
			Help: help(requestDuration), Buckets: buckets()}, labels(requestDuration)),
		commits: prometheus.NewHistogram(prometheus.HistogramOpts{Name: storeCommit, Help: help(storeCommit),
			Buckets: buckets()}),
	}
	for _, op := range []string{"RequestPool", "ReleasePool", "RequestAddress", "ReleaseAddress"} {
		m.duration.WithLabelValues(op)
		for _, result := range results() {
			m.requests.WithLabelValues(op, result) // so that a rate begins at nothing, and not at the first
		}
	}
	m.registry.MustRegister(m.requests, m.duration, m.commits)
	return m
}

// buckets are from 0.5 ms, which is one commit on a quick disk, to 30 s, for which the engine waits.
func buckets() []float64 {
	return []float64{.0005, .001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5, 10, 30}
}

// Request counts a call of the engine.
func (m *Meter) Request(op string, took time.Duration, err error) {
	m.requests.WithLabelValues(op, resultOf(err)).Inc()
	m.duration.WithLabelValues(op).Observe(took.Seconds())
}

// Commit counts a commit of a store.
func (m *Meter) Commit(took time.Duration) { m.commits.Observe(took.Seconds()) }

// OwnCommit counts a commit of the host's own store, or that it took none.
func (m *Meter) OwnCommit(took time.Duration, err error) {
	m.down.Store(err != nil)
	if err == nil {
		m.Commit(took)
	}
}

// What comes of a request.
const (
	resultOK        = "ok"
	resultExhausted = "exhausted"
	resultInUse     = "in_use"
	resultRefused   = "refused"
	resultStore     = "store_error"
)

func results() []string {
	return []string{resultOK, resultExhausted, resultInUse, resultRefused, resultStore}
}

func resultOf(err error) string {
	switch {
	case err == nil:
		return resultOK
	case errors.Is(err, ipam.ErrExhausted):
		return resultExhausted
	case errors.Is(err, ipam.ErrInUse):
		return resultInUse
	case errors.Is(err, store.ErrUnknown), errors.Is(err, store.ErrNoSpace), errors.Is(err, store.ErrCorrupt),
		errors.Is(err, store.ErrAway), errors.Is(err, store.ErrAstray), errors.Is(err, store.ErrClosed),
		errors.Is(err, ipam.ErrDamaged):
		return resultStore
	}
	return resultRefused
}

// Handler answers with all of it, in the format that is asked for.
func (m *Meter) Handler() http.Handler {
	plain := promhttp.HandlerFor(prometheus.GathererFunc(m.gather), promhttp.HandlerOpts{MaxRequestsInFlight: 4,
		EnableOpenMetrics: true, DisableCompression: true})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Add("Vary", "Accept-Encoding")
		if !background.AcceptsGzip(r) {
			plain.ServeHTTP(w, r)
			return
		}
		packed := &packedAnswer{w, m.packers.To(w)}
		plain.ServeHTTP(packed, r)
		_ = packed.to.Close() // who is gone makes the next scrape without it
	})
}

// gather is what the registry has, and the pools, in the order of the names.
func (m *Meter) gather() ([]*dto.MetricFamily, error) {
	all, err := m.registry.Gather()
	if err != nil || m.records == nil {
		return all, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTime)
	defer cancel()
	if pools := poolFamily(ctx, m.records); pools != nil {
		at, _ := slices.BinarySearchFunc(all, poolAddresses, func(f *dto.MetricFamily, name string) int {
			return strings.Compare(f.GetName(), name)
		})
		all = slices.Insert(all, at, pools)
	}
	return all, nil
}

// packedAnswer is an answer that is packed, whatever becomes of it.
type packedAnswer struct {
	http.ResponseWriter
	to *background.Packer
}

// WriteHeader implements http.ResponseWriter.
func (a *packedAnswer) WriteHeader(status int) {
	a.Header().Set("Content-Encoding", "gzip")
	a.ResponseWriter.WriteHeader(status)
}

func (a *packedAnswer) Write(b []byte) (int, error) {
	a.Header().Set("Content-Encoding", "gzip") // before the answer begins; afterwards nobody reads it
	return a.to.Write(b)
}

func row(name string) metric {
	for _, m := range table() {
		if m.Name == name {
			return m
		}
	}
	panic("metrics: " + name + " is not in the table") // a slip in this package
}

func help(name string) string     { return row(name).Help }
func labels(name string) []string { return row(name).Labels }
