package page_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/sirupsen/logrus"
	"github.com/spf13/cobra"
	"pgregory.net/rapid"

	"berth/internal/admin"
	"berth/internal/cli"
	"berth/internal/cli/network"
	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
	"berth/internal/ipam/service"
	"berth/internal/metrics"
)

// listed are the lines of `berth network ls`, read over the admin API: the fields of each, by column title.
func listed(t *rapid.T, s *service.Service) (all []map[string]string) {
	dir, err := os.MkdirTemp("", "berth") // a socket needs a short path
	must(t, err)
	defer os.RemoveAll(dir)
	l, err := net.Listen("unix", filepath.Join(dir, "admin.sock"))
	must(t, err)
	quiet := logrus.New()
	quiet.SetOutput(io.Discard)
	serving, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	server := admin.New(admin.Config{Service: s, Log: logrus.NewEntry(quiet), GID: -1, TempDir: dir})
	go func() { ended <- server.Serve(serving, l) }()
	var out strings.Builder
	p := cli.New("test")
	p.AdminSocket, p.Out = l.Addr().String(), &out
	root := &cobra.Command{Use: "berth"}
	root.AddCommand(network.Command(p).Command(p))
	code := p.Run(ctx, root, []string{"network", "ls"})
	stop()
	if err := <-ended; err != nil || code != 0 {
		t.Fatal(code, err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	heads := strings.Fields(lines[0])
	for _, line := range lines[1:] {
		fields, of := strings.Fields(line), map[string]string{}
		of[heads[0]] = fields[0]
		for i := range 2 { // the last two: others may be empty, or have blanks
			of[heads[len(heads)-1-i]] = fields[len(fields)-1-i]
		}
		all = append(all, of)
	}
	return all
}

// oneNumber compares the numbers of each network in the command line, the lists of subnets and of free ranges, the
// page and the metrics with those of the API.
func oneNumber(t *rapid.T, h http.Handler, s *service.Service, networks []ipam.NetworkInfo) {
	var home struct {
		Networks []struct {
			ID ipam.ID `json:"network_id"`
			ipam.StateCounts
		}
	}
	must(t, json.Unmarshal([]byte(asked(t, h, "/?format=json")), &home))
	meter := metrics.New()
	meter.Watch(metrics.Sources{Records: s})
	scrape := httptest.NewRecorder()
	meter.Handler().ServeHTTP(scrape, httptest.NewRequestWithContext(ctx, http.MethodGet, "/metrics", nil))
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(scrape.Body)
	must(t, err)
	subnets, err := s.Subnets(ctx, "")
	must(t, err)
	lines := listed(t, s)
	for i := range networks {
		n := &networks[i]
		want := ipamtest.Counted(&n.Use.StateCounts)
		if !slices.ContainsFunc(lines, func(line map[string]string) bool {
			return line["NAME"] == n.Name && line["HELD"] == fmt.Sprint(n.Use.Leased) &&
				line["RESERVED"] == fmt.Sprint(n.Use.Reservations)
		}) {
			t.Fatalf("%s: the command line has %v, and the API %s", n.Name, lines, want)
		}
		for _, row := range home.Networks {
			row.Outside = n.Use.Outside
			if got := ipamtest.Counted(&row.StateCounts); row.ID == n.ID && got != want {
				t.Fatalf("%s: the page has %s, and the API %s", n.Name, got, want)
			}
		}
		var sum ipam.Use
		for k := range subnets {
			if subnets[k].NetworkID == n.ID {
				sum.And(&subnets[k].Use)
			}
		}
		if got := ipamtest.Counted(&sum.StateCounts); got != want || sum.Fullest.Percent != n.Use.Fullest.Percent ||
			sum.Reservations != n.Use.Reservations {
			t.Fatalf("%s: the subnets have %s, and the network %s", n.Name, got, want)
		}
		counted := s.ReservationCounts()[n.Name]
		if counted.Idle != n.Use.Reserved || counted.Held+counted.Idle != n.Use.Reservations {
			t.Fatalf("%s: the metrics have the reservations %v, and the API %d, %d of them idle", n.Name, counted,
				n.Use.Reservations, n.Use.Reserved)
		}
		for _, state := range ipam.AddressStates() {
			told, exact := 0.0, n.Use.Of(state)
			for _, m := range families["berth_pool_addresses"].GetMetric() {
				of := map[string]string{}
				for _, l := range m.GetLabel() {
					of[l.GetName()] = l.GetValue()
				}
				if of["network"] == n.Name && of["state"] == string(state) {
					told += m.GetGauge().GetValue()
				}
			}
			if f, _ := exact.Float64(); told != f && state != ipam.AddressOutside {
				t.Fatalf("%s: the metrics have %f %s, and the API %s", n.Name, told, state, exact)
			}
		}
		if free, err := s.Free(ctx, n.ID.String(), ipam.FreeFilter{}); err == nil {
			all := ipam.NewCount(0)
			for k := range free {
				all.Add(all.Int, free[k].Addresses.Int)
			}
			if want := n.Use.Of(ipam.AddressFree); all.Cmp(want.Int) != 0 {
				t.Fatalf("%s: %s are free by the list, and %s by the API", n.Name, all, want)
			}
		}
	}
}
