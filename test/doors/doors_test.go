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

// mostResident is how much memory a daemon may have at any time, in MiB. One that nobody asks has 40, of which 25 are
// the program; the largest view of an engine takes the most, some 135.
const mostResident = 160

// mostImporting is that while the largest import is worked on, which is in memory as a whole, with its records and the
// file of the state.
const mostImporting = 256

// door is where somebody can connect to a daemon, and what can be said there.
type door struct {
	name  string
	dial  func(d *daemon, i int) (net.Conn, error) // the i-th connection of a crowd
	begin string                                   // the beginning of something that is never ended; empty: none is tried
	idle  bool                                     // silent connections are tried
	flood []byte                                   // a datagram that is sent again and again; nil: none

	bodies []body                 // requests that have one
	reads  []string               // paths whose answers are long, or do not end
	head   func(d *daemon) string // further lines of each head
}

// body is that of a request: what it begins with, and what it then repeats.
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

// onTCP connects from many addresses of the loopback, since one has a share of the places.
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

// TestDoors: whatever comes through a door, and however much of it, the daemon stays small, and the engine is served.
// Under -short it is a crowd at the engine's own door, and a few others.
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

// sample is two of all under -short.
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

// attacked lets an attack loose on a daemon, and looks how it fares.
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

// suffers begins something, and ends it when the engine was served meanwhile as ever. It tells what that came to, and
// fails the test if the engine is not served.
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
