package doors

import (
	"crypto/tls"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"testing"
	"time"

	"berth/test/lab"
)

// mostResident is the most memory that a daemon may have at any time, in MiB. An idle daemon has 40, of which 25
// are the program. The largest view of an engine takes the most, about 135.
const mostResident = 160

// mostImporting is the same during the largest import, which is in memory as a whole, with its records and the
// state file.
const mostImporting = 256

// door is a listener of a daemon, and what a client can send there.
type door struct {
	name  string
	dial  func(d *daemon, i int) (net.Conn, error) // the i-th connection of a crowd
	begin string                                   // the start of something that never ends; empty: not tried
	idle  bool                                     // silent connections are tried
	flood []byte                                   // a datagram sent again and again; nil: none

	bodies []body                 // requests with a body
	reads  []string               // paths with long or endless answers
	head   func(d *daemon) string // further header lines
}

// body is a request's body: its start, and the part that it then repeats.
type body struct{ request, form, begin, again string }

const (
	slowHead = "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "
	asJSON   = "application/json"
	asForm   = "application/x-www-form-urlencoded"
)

func doors() []door {
	token := func(d *daemon) string { return "Authorization: Bearer " + d.token + "\r\n" }
	api := []body{
		{"POST /v1/edits", asJSON, `{"edits":[{}`, `,{}`},
		{"POST /v1/import", asJSON, `{"networks":[{}`, `,{}`},
		{"POST /v1/check", asJSON, `{"view":{"containers":[{}`, `,{}`},
		{"PUT /v1/witness", asJSON, `{"containers":[{}`, `,{}`},
		{"POST /v1/witness/news?host=alpha", asJSON, `{"listed":[{}`, `,{}`},
		{"POST /v1/edge", asJSON, `{"mapped":[{}`, `,{}`},
	}
	scrape := func(d *daemon) string { return d.scrape }
	names := func(d *daemon) string { return d.names }
	return []door{
		{name: "plugin socket", dial: onSocket((*daemon).plugin), begin: slowHead, idle: true,
			bodies: []body{{"POST /IpamDriver.RequestPool", asJSON, `{"Options":{"":""`, `,"":""`}},
			reads:  []string{"/IpamDriver.GetCapabilities"}},
		{name: "admin socket", dial: onSocket((*daemon).admin), begin: slowHead, idle: true, bodies: api,
			reads: []string{"/v1/leases", "/v1/events?last=10000", "/v1/export", "/openapi.yaml", "/metrics", "/v1/edge",
				"/v1/edge/lan", "/v1/events?follow=true"}},
		{name: "page", dial: onSocket((*daemon).admin), reads: []string{"/", "/live", "/docs"},
			bodies: []body{{"POST /change/reserve", asForm, "owner=a", "&note="}}},
		{name: "TLS, strangers", dial: onTCP(func(d *daemon) string { return d.remote }), begin: "\x16\x03\x01", idle: true},
		{name: "TLS, admin", dial: overTLS, head: token, begin: slowHead, bodies: api[:3],
			reads: []string{"/v1/export", "/v1/edge"}},
		{name: "metrics", dial: onTCP(scrape), begin: slowHead, idle: true, reads: []string{"/metrics"},
			bodies: []body{{"GET /metrics", asJSON, "{", " "}}},
		{name: "DNS by TCP", dial: onTCP(names), begin: "\xff\xff\x00", idle: true},
		{name: "DNS by UDP", dial: byUDP(names), flood: []byte("\x00\x01\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00" +
			"\x03web\x04home\x03lan\x07example\x00\x00\x01\x00\x01")},
	}
}

func onSocket(path func(*daemon) string) func(*daemon, int) (net.Conn, error) {
	return func(d *daemon, _ int) (net.Conn, error) { return net.Dial("unix", path(d)) }
}

// onTCP connects from many loopback addresses, as each has only a share of the places.
func onTCP(address func(*daemon) string) func(*daemon, int) (net.Conn, error) {
	return func(d *daemon, i int) (net.Conn, error) {
		from := &net.TCPAddr{IP: net.IPv4(127, 1, byte(i>>8), byte(i))}
		return (&net.Dialer{LocalAddr: from, Timeout: patience}).Dial("tcp", address(d))
	}
}

func byUDP(address func(*daemon) string) func(*daemon, int) (net.Conn, error) {
	return func(d *daemon, _ int) (net.Conn, error) { return net.Dial("udp", address(d)) }
}

func overTLS(d *daemon, i int) (net.Conn, error) {
	c, err := onTCP(func(d *daemon) string { return d.remote })(d, i)
	if err != nil {
		return nil, err
	}
	return tls.Client(c, &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: d.roots, ServerName: "127.0.0.1"}), nil
}

var seed = flag.Uint64("seed", 0, "of the sample under -short; 0: any")

// TestDoors: whatever comes through a door, and however much, the daemon stays small and serves the engine. Under
// -short it tests a crowd at the engine's own door, and a few other attacks.
func TestDoors(t *testing.T) {
	type cell struct {
		at door
		a  attack
	}
	var all []cell
	for _, at := range doors() {
		for _, a := range attacksOn(at) {
			all = append(all, cell{at, a})
		}
	}
	for _, c := range append(all[:1:1], sample(t, all[1:])...) {
		t.Run(c.at.name+"/"+c.a.name, func(t *testing.T) { attacked(t, c.at, c.a) })
	}
}

// sample is two of all cases under -short.
func sample[T any](t *testing.T, all []T) []T {
	t.Helper()
	if !testing.Short() {
		return all
	}
	if *seed == 0 {
		*seed = rand.Uint64()
	}
	t.Logf("-seed %d", *seed)
	rand.New(rand.NewPCG(*seed, 0)).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:2]
}

// attacked runs an attack on a daemon and checks the daemon.
func attacked(t *testing.T, at door, a attack) {
	d := start(t, withNames)
	crowd := &crowd{daemon: d, door: at}
	t.Cleanup(crowd.end)
	said := d.suffers(func() { a.begin(crowd) }, crowd.end)
	d.staysSmall()
	t.Logf("%-14s %-44s %s; %s", at.name, a.name, said, crowd)
}

// staysSmall fails the test if the daemon had too much memory at any time.
func (d *daemon) staysSmall() {
	d.t.Helper()
	if m := d.memory(); m.most > mostResident {
		d.t.Errorf("%.0f MiB were resident, and %d may be", m.most, mostResident)
	}
}

// suffers begins something, and ends it once the engine has been served as usual meanwhile. It returns the
// figures, and fails the test if the engine is not served.
func (d *daemon) suffers(begin, end func()) string {
	d.t.Helper()
	e := newEngine(d)
	lab.Must(d.t, e.takes(20))
	before, begun := d.memory(), time.Now()
	begin()
	err := e.takes(100)
	took := time.Since(begun)
	end()
	if err != nil {
		d.t.Fatalf("the engine is not served: %v\n%s", err, d.Log())
	}
	if err := e.takes(20); err != nil {
		d.t.Fatalf("the engine is not served afterwards: %v\n%s", err, d.Log())
	}
	e.stop()
	after := d.memory()
	return fmt.Sprintf("%3.0f MiB, at most %4.0f, then %4.0f; %5d addresses in %5.1f s, the slowest in %5.0f ms", before.now,
		after.most, after.now, e.calls, took.Seconds(), e.slowest.Seconds()*1000)
}
