package metrics

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go4.org/netipx"

	"berth/internal/ipam"
	"berth/store"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// records is a source with something to report for every metric.
type records struct{ pools int }

func (r records) Use(context.Context) (all []ipam.PoolUse, err error) {
	for i := range r.pools {
		cidr := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i >> 8), byte(i), 0}), 24)
		all = append(all, ipam.PoolUse{Network: fmt.Sprintf("network-%d", i), Subnet: cidr, Pool: cidr.String(),
			StateCounts: ipam.StateCounts{Leased: 3, Quarantined: 2, Reserved: 1, Excluded: ipam.NewCount(4),
				Free: ipam.NewCount(246)}})
	}
	return all, nil
}

func (records) ElasticUse(context.Context) (ipam.ElasticUse, error) {
	r := netipx.MustParseIPRange("203.0.113.1-203.0.113.9")
	return ipam.ElasticUse{Host: "h1", Unapplied: 1, Ranges: []ipam.RangeUse{{Range: ipam.Range{IPRange: r}, Allocated: 2,
		Releasing: 1, Free: ipam.Count{Int: big.NewInt(6)}}}}, nil
}

func (records) ReservationCounts() map[string]ipam.ReservationCounts {
	return map[string]ipam.ReservationCounts{"net1": {Held: 2, Idle: 1}}
}

func (records) LANLeases() map[string]map[ipam.LANState]uint64 {
	return map[string]map[ipam.LANState]uint64{"lan": {ipam.LANBound: 3, ipam.LANLost: 1}}
}

func (records) EventCounts() map[ipam.Verb]uint64 { return map[ipam.Verb]uint64{ipam.LeaseTaken: 7} }

// all is a Meter over sources for every metric.
func all(pools int) *Meter {
	m := New()
	m.Watch(Sources{Version: "1", Records: records{pools},
		Bytes:   func() (int64, error) { return 4096, nil },
		Cluster: func() bool { return true },
		Spare: func() []ipam.HeadroomState {
			return []ipam.HeadroomState{{Network: "n", Subnet: netip.MustParsePrefix("10.0.0.0/24"), Claimed: 5, Used: 2}}
		},
		Witness: func() ipam.WitnessState {
			return ipam.WitnessState{Seen: time.Unix(1000, 0), Counts: map[ipam.FindingKind]int{ipam.UnusedLease: 2}}
		},
		Hooks:    func() uint64 { return 3 },
		Names:    func() (int, map[string]uint64) { return 5, map[string]uint64{"NOERROR": 7} },
		Webhooks: func() (uint64, uint64, time.Time) { return 2, 1, time.Now().Add(-time.Minute) },
	})
	return m
}

func scraped(t *testing.T, m *Meter) map[string]*dto.MetricFamily {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(w.Body)
	if err != nil || w.Code != http.StatusOK {
		t.Fatal(w.Code, err)
	}
	return families
}

// TestTable: the metrics are exactly those of the table, by name, kind, help and labels.
func TestTable(t *testing.T) {
	got := scraped(t, all(1))
	for _, row := range table() {
		f := got[row.Name]
		if f == nil {
			t.Errorf("%s is not told", row.Name)
			continue
		}
		delete(got, row.Name)
		var labels []string
		for _, l := range f.GetMetric()[0].GetLabel() {
			labels = append(labels, l.GetName())
		}
		want := slices.Sorted(slices.Values(row.Labels))
		if !slices.Equal(labels, want) || f.GetHelp() != row.Help ||
			strings.ToLower(f.GetType().String()) != string(row.Kind) {
			t.Errorf("%s has the labels %v, kind %s, help %q", row.Name, labels, f.GetType(), f.GetHelp())
		}
	}
	for name := range got {
		t.Errorf("%s is not in the table", name)
	}
}

var update = flag.Bool("update", false, "write docs/metrics-list.md again")

// TestDocs: docs/metrics-list.md has the table, and docs/metrics.md names no other metrics.
func TestDocs(t *testing.T) {
	const file = "../../docs/metrics-list.md"
	var page bytes.Buffer
	page.WriteString("# All metrics\n\n<!-- Generated from the program: make docs. -->\n\n" +
		"How to scrape them: [metrics.md](metrics.md).\n\n| name | kind | labels | value |\n|---|---|---|---|\n")
	for _, row := range table() {
		fmt.Fprintf(&page, "| `%s` | %s | %s | %s |\n", row.Name, row.Kind, strings.Join(row.Labels, ", "), row.Help)
	}
	if *update {
		if err := os.WriteFile(file, page.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, page.Bytes()) {
		t.Errorf("%s differs from the table; make docs writes it again", file)
	}
	text, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	named(t, "docs/metrics.md", text)
}

// TestBoard: the dashboard shows every metric, and explains each panel with the metric's help. Its rows and panels have
// titles in words, and no panel covers another.
func TestBoard(t *testing.T) {
	const (
		file  = "../../contrib/grafana/berth.json"
		width = 24 // of Grafana's grid
	)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	named(t, file, text)
	var board struct {
		Panels []struct {
			ID                       int
			Title, Description, Type string
			GridPos                  struct{ X, Y, W, H int }
			Targets                  []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &board); err != nil {
		t.Fatal(err)
	}
	helps := map[string]bool{}
	for _, m := range table() {
		helps[m.Help] = true
		if !bytes.Contains(text, []byte(m.Name)) {
			t.Errorf("%s is on no panel", m.Name)
		}
	}
	var rows []string
	taken := map[[2]int]string{}
	for i, p := range board.Panels {
		if p.ID != i+1 || p.Title == "" || strings.Contains(p.Title, "_") {
			t.Errorf("panel %d has the id %d and the title %q", i+1, p.ID, p.Title)
		}
		at := p.GridPos
		for x := at.X; x < at.X+at.W; x++ {
			for y := at.Y; y < at.Y+at.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" || x >= width {
					t.Fatalf("%q covers %q", p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
		switch {
		case p.Type == "row":
			rows = append(rows, p.Title)
		case len(p.Targets) == 0 || p.Targets[0].Expr == "" || !helps[p.Description]:
			t.Errorf("%q has the queries %v and the description %q", p.Title, p.Targets, p.Description)
		}
	}
	if !slices.Equal(rows, []string{"Pools", "Requests", "Findings", "Cluster"}) {
		t.Errorf("the rows are %q", rows)
	}
}

// TestAlerts: the alerts use only existing metrics, and docs/metrics.md lists each alert.
func TestAlerts(t *testing.T) {
	const file = "../../contrib/prometheus/berth.rules.yml"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	named(t, file, bytes.ReplaceAll(text, []byte("berth:"), []byte("recorded:")))
	docs, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	alerts := 0
	for line := range strings.Lines(string(text)) {
		if name, is := strings.CutPrefix(strings.TrimSpace(line), "- alert: "); is {
			alerts++
			if !bytes.Contains(docs, []byte("| `"+name+"` |")) {
				t.Errorf("docs/metrics.md does not list %s", name)
			}
		}
	}
	if alerts == 0 {
		t.Error("there are no alerts")
	}
}

// TestPromtool: each alert fires when contrib/prometheus/berth.rules.test.yml expects it.
func TestPromtool(t *testing.T) {
	tool, err := filepath.Abs("../../build/tools/promtool")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(tool, "test", "rules", "berth.rules.test.yml")
	cmd.Dir = "../../contrib/prometheus"
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v; `scripts/needs test` brings promtool:\n%s", err, out)
	}
}

// TestStates: the states of a pool add up to the pool.
func TestStates(t *testing.T) {
	sum := 0.0
	for _, m := range scraped(t, all(1))[poolAddresses].GetMetric() {
		sum += m.GetGauge().GetValue()
	}
	if sum != 256 {
		t.Errorf("the states of a /24 add up to %v", sum)
	}
}

// TestResults: requests are counted by result, and the last change decides the state of the store.
func TestResults(t *testing.T) {
	m := all(1)
	for want, err := range map[string]error{"ok": nil, "exhausted": ipam.Refuse(ipam.ErrExhausted, "full"),
		"in_use":  ipam.Refuse(ipam.ErrInUse, "held"),
		"refused": ipam.Refuse(ipam.ErrInvalid, "odd"), "store_error": fmt.Errorf("disk: %w", store.ErrNoSpace)} {
		m.Request("RequestAddress", time.Millisecond, err)
		for _, one := range scraped(t, m)[requests].GetMetric() {
			op, result := one.GetLabel()[0].GetValue(), one.GetLabel()[1].GetValue()
			if counted := one.GetCounter().GetValue() == 1; op == "RequestAddress" && result == want && !counted {
				t.Errorf("%v is not counted as %s", err, want)
			}
		}
	}
	up := func() (value float64) {
		for _, one := range scraped(t, m)[storeUp].GetMetric() {
			if one.GetLabel()[0].GetValue() == "host" {
				value = one.GetGauge().GetValue()
			}
		}
		return value
	}
	m.OwnCommit(time.Millisecond, errors.New("no room"))
	if up() != 0 {
		t.Error("a store that takes no changes is up")
	}
	m.OwnCommit(time.Millisecond, nil)
	if up() != 1 {
		t.Error("a store that takes changes again is not up")
	}
}

// TestUnanswered: a source that cannot answer leaves a gap. All other metrics are reported.
func TestUnanswered(t *testing.T) {
	m := New()
	m.Watch(Sources{Version: "1", Records: unanswered{}, Bytes: func() (int64, error) { return 0, io.EOF }})
	got := scraped(t, m)
	for _, name := range []string{poolAddresses, elasticAddresses, elasticUnapplied, storeBytes, headroom,
		witnessSuccess} {
		if got[name] != nil {
			t.Errorf("%s is told, and nobody knows it", name)
		}
	}
	if got[buildInfo] == nil || got[storeUp] == nil {
		t.Errorf("only %v is told", got)
	}
}

type unanswered struct{ records }

func (unanswered) Use(context.Context) ([]ipam.PoolUse, error) { return nil, store.ErrAway }

func (unanswered) ElasticUse(context.Context) (ipam.ElasticUse, error) {
	return ipam.ElasticUse{}, store.ErrAway
}

// TestPacked: compressed and uncompressed answers are the same, and errors are readable in both.
func TestPacked(t *testing.T) {
	ask := func(m *Meter, encoding string) (status int, text string) {
		r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
		r.Header.Set("Accept-Encoding", encoding)
		w := httptest.NewRecorder()
		m.Handler().ServeHTTP(w, r)
		var body io.Reader = w.Body
		if got := w.Header().Get("Content-Encoding"); got != encoding && (got != "" || encoding == "gzip") {
			t.Errorf("%q is answered in %q", encoding, got)
		} else if got == "gzip" {
			var err error
			if body, err = gzip.NewReader(body); err != nil {
				t.Fatal(err)
			}
		}
		told, err := io.ReadAll(body)
		if err != nil {
			t.Fatal(err)
		}
		return w.Code, string(told)
	}
	m := New()
	m.Watch(Sources{Version: "1", Records: records{100}})
	_, plain := ask(m, "identity")
	if _, unpacked := ask(m, "gzip"); unpacked != plain || strings.Count(plain, poolAddresses+"{") != 500 {
		t.Errorf("packed and not are\n%s\nand\n%s", unpacked, plain)
	}
	m.registry.MustRegister(odd{})
	for _, encoding := range []string{"identity", "gzip"} {
		if status, text := ask(m, encoding); status != http.StatusInternalServerError || !strings.Contains(text, "\n\nodd\n") {
			t.Errorf("%s: %d %s", encoding, status, text)
		}
	}
}

// odd is a collector that fails.
type odd struct{}

func (odd) Describe(chan<- *prometheus.Desc) {}
func (odd) Collect(to chan<- prometheus.Metric) {
	to <- prometheus.NewInvalidMetric(prometheus.NewInvalidDesc(errors.New("odd")), errors.New("odd"))
}

// named checks that a text names no metric of Berth's that does not exist.
func named(t *testing.T, file string, text []byte) {
	t.Helper()
	known := map[string]bool{}
	for _, row := range table() {
		known[row.Name] = true
		if row.Kind == histogram {
			known[row.Name+"_bucket"], known[row.Name+"_sum"], known[row.Name+"_count"] = true, true, true
		}
	}
	for word := range strings.FieldsFuncSeq(string(text), func(r rune) bool {
		return r != '_' && (r < 'a' || r > 'z') && (r < '0' || r > '9')
	}) {
		if strings.HasPrefix(word, "berth_") && !known[word] {
			t.Errorf("%s names %s, which is not told", file, word)
		}
	}
}
