package metrics

import (
	"cmp"
	"context"
	"maps"
	"runtime"
	"time"

	"berth/internal/ipam"

	"github.com/prometheus/client_golang/prometheus"
)

// Sources is what is asked at each scrape. All of it answers out of memory. Functions that are nil have nothing to
// tell.
type Sources struct {
	Version string
	Records Records
	Bytes   func() (int64, error)       // of the store's file
	Cluster func() (up bool)            // whether the shared store takes changes
	Spare   func() []ipam.HeadroomState // headroom of this host
	Witness func() ipam.WitnessState    // how it stands with what is seen of the engine
	Found   func() []ipam.Finding       // what is wrong on this host that no engine tells
	Hooks   func() (failures uint64)    // hooks that failed
	// Names tells how many names are answered for, and how many questions were answered, by the code of the answer.
	Names func() (names int, queries map[string]uint64)
	// Webhooks tells of attempts that failed, of events that were set aside, and when the oldest one was written that
	// waits; zero: none does.
	Webhooks func() (failures, aside uint64, waiting time.Time)
}

// Records is what the records tell. It is a service.Service or, where the
// host shares a store, a cluster.Service.
type Records interface {
	Use(context.Context) ([]ipam.PoolUse, error)
	ElasticUse(context.Context) (ipam.ElasticUse, error)
	EventCounts() map[ipam.Verb]uint64
	LANLeases() map[string]map[ipam.LANState]uint64
	ReservationCounts() map[string]ipam.ReservationCounts
}

// scrapeTime is how long the records may take.
const scrapeTime = 5 * time.Second

// Watch adds what there is to what is counted.
func (m *Meter) Watch(from Sources) {
	m.records = from.Records
	m.registry.MustRegister(&scraper{Sources: from, rows: described(), up: func() bool { return !m.down.Load() }})
}

// desc is a row of the table as the library wants it.
type desc struct {
	*prometheus.Desc
	kind prometheus.ValueType
}

func described() map[string]desc {
	all := map[string]desc{}
	for _, m := range table() {
		kind := prometheus.GaugeValue
		if m.Kind == counter {
			kind = prometheus.CounterValue
		}
		all[m.Name] = desc{prometheus.NewDesc(m.Name, m.Help, m.Labels, nil), kind}
	}
	return all
}

// scraper asks the sources.
type scraper struct {
	Sources
	rows map[string]desc
	up   func() bool // whether the host's own store took its last change
}

// Describe tells nothing: what there is changes.
func (s *scraper) Describe(chan<- *prometheus.Desc) {}

// Collect asks all sources. One that cannot answer tells nothing of its own: a gap is seen, and a zero would be a lie.
func (s *scraper) Collect(to chan<- prometheus.Metric) {
	tell := func(name string, value float64, labels ...string) {
		d := s.rows[name]
		to <- prometheus.MustNewConstMetric(d.Desc, d.kind, value, labels...)
	}
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTime)
	defer cancel()
	tell(buildInfo, 1, s.Version, runtime.Version())
	for verb, n := range s.Records.EventCounts() {
		tell(events, float64(n), verb.String())
	}
	for network, n := range s.Records.ReservationCounts() {
		tell(reservations, float64(n.Held), network, "held")
		tell(reservations, float64(n.Idle), network, "idle")
	}
	for network, of := range s.Records.LANLeases() {
		for state := ipam.LANBound; state <= ipam.LANConflict; state++ { // those that none is in, too: an alert is over
			tell(dhcpLeases, float64(of[state]), network, state.String())
		}
	}
	s.elastic(ctx, tell)
	s.store(tell)
	if s.Spare != nil {
		for _, h := range s.Spare() {
			tell(headroom, float64(h.Claimed-h.Used), h.Network, h.Subnet.String())
		}
	}
	if s.Witness != nil {
		s.witness(tell)
	}
	if s.Hooks != nil {
		tell(hookFailures, float64(s.Hooks()))
	}
	if s.Names != nil {
		names, queries := s.Names()
		tell(dnsNames, float64(names))
		for code, n := range queries {
			tell(dnsQueries, float64(n), code)
		}
	}
	if s.Webhooks != nil {
		n, aside, waiting := s.Webhooks()
		tell(webhookFailures, float64(n))
		tell(webhookAside, float64(aside))
		lag := 0.0
		if !waiting.IsZero() {
			lag = max(time.Since(waiting).Seconds(), 0)
		}
		tell(webhookLag, lag)
	}
}

type emitter func(name string, value float64, labels ...string)

// number is a count as Prometheus has it: exact up to 2^53.
func number(n ipam.Count) float64 {
	f, _ := n.Float64()
	return f
}

func (s *scraper) elastic(ctx context.Context, tell emitter) {
	use, err := s.Records.ElasticUse(ctx)
	if err != nil {
		return
	}
	for i := range use.Ranges {
		r := &use.Ranges[i]
		tell(elasticAddresses, float64(r.Allocated), r.Range.String(), string(ipam.ElasticAllocated))
		tell(elasticAddresses, float64(r.Releasing), r.Range.String(), string(ipam.ElasticReleasing))
		tell(elasticAddresses, number(r.Free), r.Range.String(), string(ipam.ElasticFree))
	}
	tell(elasticUnapplied, float64(use.Unapplied), cmp.Or(use.Host, "none"))
}

func (s *scraper) store(tell emitter) {
	up := func(name string, is bool) {
		value := 0.0
		if is {
			value = 1
		}
		tell(storeUp, value, name)
	}
	up("host", s.up())
	if s.Cluster != nil {
		up("cluster", s.Cluster())
	}
	if s.Bytes == nil {
		return
	}
	if n, err := s.Bytes(); err == nil {
		tell(storeBytes, float64(n))
	}
}

func (s *scraper) witness(tell emitter) {
	w := s.Witness()
	counts := map[ipam.FindingKind]int{}
	maps.Copy(counts, w.Counts)
	if s.Found != nil {
		for _, f := range s.Found() {
			counts[f.Kind]++
		}
	}
	q := &w.Questions
	for answer, n := range map[string]uint64{"one": q.One, "several": q.Several, "none": q.None, "late": q.Late,
		"boots": q.Boots} {
		tell(questions, float64(n), answer)
	}
	tell(putBack, float64(w.PutBack.Done), "done")
	tell(putBack, float64(w.PutBack.Refused), "refused")
	for kind, n := range counts {
		tell(findings, float64(n), string(kind))
	}
	seen := 0.0
	if !w.Seen.IsZero() {
		seen = float64(w.Seen.UnixMilli()) / 1000
	}
	tell(witnessSuccess, seen)
}
