package bench

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// BenchmarkPage requests each view of the page like a browser, with 10,000 leases, half of them in a /16.
func BenchmarkPage(b *testing.B) {
	dir := newDir(b, memory)
	for i := range 25 {
		fill(b, dir, fmt.Sprintf("10.80.%d.0/24", i), 200)
	}
	fill(b, dir, "10.64.0.0/16", 5000)
	d := serve(b, dir)
	subnet, holder := "/subnet/"+subnetID(b, d, "10.64.0.0/16"), last.Load()
	for _, view := range [][2]string{{"networks", "/"}, {"network", "/network/net10.64.0.0"}, {"subnet-16", subnet},
		{"part-24", subnet + "?part=10.64.7.0/24"}, {"subnet-24", "/subnet/" + subnetID(b, d, "10.80.7.0/24")},
		{"address", "/address/10.64.7.7"}, {"who", "/address/10.64.7.7?at=1s"},
		{"find-name", fmt.Sprint("/find?q=shop-web-", holder)}, {"find-nothing", "/find?q=nobody"},
		{"find-mac", "/find?q=" + macOf(holder).String()}, {"findings", "/findings"}, {"hosts", "/hosts"},
		{"elastic", "/elastic"}, {"events", "/events"}, {"style", "/style.css"}} {
		b.Run(view[0], func(b *testing.B) { asked(b, d, view[1]) })
	}
}

// subnetID returns the id of a subnet.
func subnetID(b *testing.B, d *daemon, cidr string) (id string) {
	b.Helper()
	_, after, _ := strings.Cut(d.berth(b, "subnet", "ls", "--format", "{{.CIDR}} {{.ID}}"), cidr)
	_, err := fmt.Sscan(after, &id)
	must(b, err)
	return id
}

// asked requests a path, and reports the time to the first byte and the transferred size.
func asked(b *testing.B, d *daemon, path string) {
	var first time.Duration
	var size int64
	for b.Loop() {
		n, took, err := d.get(path)
		must(b, err)
		first, size = first+took, n
	}
	b.ReportMetric(ms(first)/float64(b.N), "first-byte-ms")
	b.ReportMetric(float64(size)/1000, "kB")
}

// servePools starts a daemon with a plan of 1,000 subnets, each with a pool and 20 reservations.
func servePools(b *testing.B, flags ...string) *daemon {
	b.Helper()
	dir := newDir(b, os.TempDir())
	d := serve(b, dir, flags...)
	d.berth(b, "plan", "import", document(b, dir, 0, 1000))
	return d
}

// BenchmarkScrape requests the metrics of 1,000 pools.
func BenchmarkScrape(b *testing.B) {
	d := servePools(b)
	b.Run("pools=1000", func(b *testing.B) { asked(b, d, "/metrics") })
}

// BenchmarkWatched compares requests alone with requests while 20 browsers show the networks and reload them at
// each notice, and the metrics are scraped every second. There are 1,000 pools.
func BenchmarkWatched(b *testing.B) {
	d := servePools(b)
	var redrawn atomic.Int64
	compareP99(b, 16, d.takes(d.pool(b, "100.64.0.0/10"), ""), func() {
		ctx, cancel := context.WithTimeout(b.Context(), while)
		defer cancel()
		repeat(b, 21, 21, func(caller int) error {
			if caller < 20 {
				return d.watch(ctx, &redrawn)
			}
			for ctx.Err() == nil {
				if _, _, err := d.get("/metrics"); err != nil {
					return err
				}
				wait(ctx, time.Second)
			}
			return nil
		})
	})
	if redrawn.Load() == 0 {
		b.Fatal("no browser has loaded its view again")
	}
}

// watch is a browser that shows the networks and counts its reloads.
func (d *daemon) watch(ctx context.Context, redrawn *atomic.Int64) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://admin/live", nil)
	if err != nil {
		return err
	}
	res, err := d.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	for lines := bufio.NewScanner(res.Body); lines.Scan(); {
		if lines.Text() == "event: changed" {
			redrawn.Add(1)
			if _, _, err := d.get("/"); err != nil {
				return err
			}
		}
	}
	return nil
}
