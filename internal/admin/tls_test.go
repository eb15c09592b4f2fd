package admin

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"berth/internal/admin/api"
	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"

	"github.com/sirupsen/logrus"
)

// authority signs certificates for a test.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T, name string) *authority {
	t.Helper()
	a := &authority{}
	pair := a.sign(t, x509.Certificate{Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign})
	a.cert, a.key = pair.Leaf, pair.PrivateKey.(*ecdsa.PrivateKey)
	return a
}

// sign makes a certificate of an hour, unless it says how long; an authority without one signs its own.
func (a *authority) sign(t *testing.T, c x509.Certificate) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	c.SerialNumber = big.NewInt(time.Now().UnixNano())
	if c.NotAfter.IsZero() {
		c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	}
	parent, parentKey := a.cert, a.key
	if parent == nil {
		parent, parentKey = &c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, &c, parent, &key.PublicKey, parentKey)
	must(t, err)
	leaf, err := x509.ParseCertificate(der)
	must(t, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

// client makes a certificate of a client.
func (a *authority) client(t *testing.T, name string, organization ...string) tls.Certificate {
	return a.sign(t, x509.Certificate{Subject: pkix.Name{CommonName: name, Organization: organization},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
}

// daemon makes that of the daemon on 127.0.0.1.
func (a *authority) daemon(t *testing.T, name string) tls.Certificate {
	return a.sign(t, x509.Certificate{Subject: pkix.Name{CommonName: name},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
}

// write writes a certificate, and its key unless that is not known, in PEM.
func write(t *testing.T, pair tls.Certificate, certFile, keyFile string) {
	t.Helper()
	must(t, os.WriteFile(certFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]}),
		0o600))
	if keyFile == "" {
		return
	}
	der, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	must(t, err)
	must(t, os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600))
}

// tower is a house that also serves over TLS.
type tower struct {
	*house
	ca     *authority
	files  KeyFiles
	keys   *Keys
	addr   string
	logged *lines
	tokens *Tokens
	now    *clock // of tokens and certificates
}

// clock is a time that a test sets.
type clock struct {
	mu  sync.Mutex
	off time.Duration
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.off)
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.off += d
}

// lines is a log that a test reads.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// startTLS serves over TLS, beside the socket.
func startTLS(t *testing.T, edit func(*Server)) *tower {
	t.Helper()
	w := &tower{ca: newAuthority(t, "ca"), logged: new(lines), now: new(clock)}
	dir := t.TempDir()
	w.files = KeyFiles{Cert: filepath.Join(dir, "cert.pem"), Key: filepath.Join(dir, "key.pem"),
		ClientCA: filepath.Join(dir, "ca.pem")}
	write(t, w.ca.daemon(t, "daemon"), w.files.Cert, w.files.Key)
	write(t, tls.Certificate{Certificate: [][]byte{w.ca.cert.Raw}}, w.files.ClientCA, "")
	log := logrus.New()
	log.SetOutput(w.logged)
	var err error
	w.tokens, err = OpenTokens(filepath.Join(dir, TokenFile), w.now.Now)
	must(t, err)
	w.house = start(t, func(s *Server) {
		s.log, s.now, s.cfg.Tokens = logrus.NewEntry(log), w.now.Now, w.tokens
		if edit != nil {
			edit(s)
		}
	})
	w.keys, err = OpenKeys(w.files, logrus.NewEntry(log))
	must(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	w.addr = l.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.server.ServeTLS(ctx, l, w.keys) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("ServeTLS ended with %v", err)
		}
	})
	return w
}

// who is how somebody presents himself.
type who struct {
	cert   *tls.Certificate
	header []string // Authorization
	config func(*tls.Config)
}

func (w *tower) config(as who) *tls.Config {
	roots := x509.NewCertPool()
	roots.AddCert(w.ca.cert)
	config := &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	if as.cert != nil { // whether or not the server's list of authorities has its own
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return as.cert,
				nil
		}
	}
	if as.config != nil {
		as.config(config)
	}
	return config
}

// client returns one for somebody, whose connections end with the test.
func (w *tower) client(t *testing.T, as who) *http.Client {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: w.config(as)}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// call asks as somebody; what is refused by the handshake is an error.
func (w *tower) call(t *testing.T, as who, method, path string) (*http.Response, *api.Problem, error) {
	t.Helper()
	return w.callWith(t, w.client(t, as), as, method, path)
}

func (w *tower) callWith(t *testing.T, client *http.Client, as who, method,
	path string) (*http.Response, *api.Problem, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "https://"+w.addr+path, http.NoBody)
	must(t, err)
	req.Header["Authorization"] = as.header
	res, err := client.Do(req)
	if err != nil {
		return nil, nil, err
	}
	defer res.Body.Close()
	if res.StatusCode == http.StatusOK {
		_, err := io.Copy(io.Discard, res.Body)
		return res, nil, err
	}
	var p *api.Problem
	if err := refusal(res); !errors.As(err, &p) {
		t.Fatalf("%s %s: the refusal is no problem: %v", method, path, err)
	}
	return res, p, nil
}

func bearer(token string) []string { return []string{"Bearer " + token} }

func (w *tower) token(t *testing.T, name string, role api.Role, lifetime time.Duration) string {
	t.Helper()
	made, err := w.tokens.Create(api.TokenRequest{Name: name, Role: role, Lifetime: ipam.Duration(lifetime),
		NoEnd: lifetime == 0},
		time.Time{}, "a test")
	must(t, err)
	return made.Token
}

// TestWhoMayAskOverTLS: a token or a certificate, and nothing else.
func TestWhoMayAskOverTLS(t *testing.T) {
	w := startTLS(t, nil)
	other := newAuthority(t, "other")
	admin, look := w.token(t, "ops", api.RoleAdmin, 0), w.token(t, "look", api.RoleReadOnly, time.Hour)
	short, gone := w.token(t, "short", api.RoleAdmin, time.Minute), w.token(t, "gone", api.RoleAdmin, 0)
	w.now.advance(2 * time.Minute)
	_, err := w.tokens.Remove("gone")
	must(t, err)
	year := x509.Certificate{Subject: pkix.Name{CommonName: "old"},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		NotBefore:   time.Now().Add(-2 * time.Hour), NotAfter: time.Now().Add(-time.Hour)}
	early := year
	early.NotBefore, early.NotAfter = time.Now().Add(time.Hour), time.Now().Add(2*time.Hour)
	certs := map[string]tls.Certificate{
		"admin": w.ca.client(t, "anna", adminOrganization), "several": w.ca.client(t, "anna", "ops", adminOrganization),
		"look": w.ca.client(t, "ben", "ops"), "similar": w.ca.client(t, "ben", "berth:administrators"),
		"name": w.ca.client(t, adminOrganization), "other": other.client(t, "eve", adminOrganization),
		"itself": new(authority).client(t, "eve", adminOrganization), "old": w.ca.sign(t, year),
		"early": w.ca.sign(t, early), "daemon": w.ca.daemon(t, "a daemon's certificate"),
	}
	for c := range ipamtest.Rows(5, strings.NewReplacer("$ADMIN", admin, "$LOOK", look, "$SHORT", short, "$GONE", gone,
		"$SLIP", admin[:len(admin)-1], "$WRONG", api.TokenPrefix+strings.Repeat("0", 64),
		"$HASH", fmt.Sprintf("%x", w.tokens.list()[0].hash)).Replace(`
		# the headers, the certificate, and the code of the refusal; -: the handshake fails
		nobody | | | /v1/spaces | unauthenticated
		nobody asks for what is not there | | | /v1/nothing | unauthenticated
		an admin's token | Bearer $ADMIN | | /v1/tokens
		the scheme in another case | bearer  $ADMIN | | /v1/tokens
		a token for looking | Bearer $LOOK | | /v1/spaces
		a token for looking, at what is for admins | Bearer $LOOK | | /v1/tokens | forbidden
		a wrong token | Bearer $WRONG | | /v1/spaces | unauthenticated
		a token with a slip | Bearer $SLIP | | /v1/spaces | unauthenticated
		the hash of a token | Bearer $HASH | | /v1/spaces | unauthenticated
		an expired token | Bearer $SHORT | | /v1/spaces | unauthenticated
		a removed token | Bearer $GONE | | /v1/spaces | unauthenticated
		an empty token | Bearer | | /v1/spaces | unauthenticated
		no scheme | $ADMIN | | /v1/spaces | unauthenticated
		another scheme | Basic $ADMIN | | /v1/spaces | unauthenticated
		two headers | Bearer $ADMIN; Bearer $LOOK | | /v1/spaces | unauthenticated
		an admin's certificate | | admin | /v1/tokens
		one of several organizations | | several | /v1/tokens
		a certificate for looking | | look | /v1/spaces
		a certificate for looking, at what is for admins | | similar | /v1/tokens | forbidden
		the organization as a name | | name | /v1/tokens | forbidden
		another authority's certificate | | other | /v1/spaces | -
		a certificate that signs itself | | itself | /v1/spaces | -
		an expired certificate | | old | /v1/spaces | -
		a certificate of tomorrow | | early | /v1/spaces | -
		a daemon's certificate | | daemon | /v1/spaces | -
		another authority's certificate with a token | Bearer $ADMIN | other | /v1/spaces | -
		a token goes before a certificate | Bearer $LOOK | admin | /v1/tokens | forbidden
		a removed token beside a certificate | Bearer $GONE | admin | /v1/spaces | unauthenticated
		TLS 1.2 | Bearer $ADMIN | | /v1/spaces | -
	`)) {
		var as who
		if c[1] != "" {
			as.header = strings.Split(c[1], "; ")
		}
		if cert, has := certs[c[2]]; has {
			as.cert = &cert
		}
		if c[0] == "TLS 1.2" {
			as.config = func(c *tls.Config) { c.MaxVersion = tls.VersionTLS12 }
		}
		t.Run(c[0], func(t *testing.T) {
			res, p, err := w.call(t, as, "GET", c[3])
			switch {
			case c[4] == "-" && err == nil:
				t.Error("it was let in")
			case c[4] == "-":
			case err != nil:
				t.Error(err)
			case c[4] == "" && p != nil:
				t.Errorf("refused: %v", p)
			case c[4] != "" && (p == nil || p.Code != c[4] || p.Detail == ""):
				t.Errorf("%+v, want %s", p, c[4])
			}
			if c[4] == api.CodeUnauthenticated &&
				(res.StatusCode != http.StatusUnauthorized ||
					!strings.HasPrefix(res.Header.Get("WWW-Authenticate"), "Bearer") || !res.Close) {
				t.Errorf("status %d, %v, connection closed: %v", res.StatusCode, res.Header, res.Close)
			}
		})
	}
	if log := w.logged.String(); strings.Contains(log, api.TokenPrefix) ||
		strings.Contains(log, admin[len(api.TokenPrefix):][:20]) {
		t.Errorf("the log has a token in it:\n%s", log)
	}
}

// TestReadOnlyChangesNothing walks over all operations: those that change something, or are for admins, are refused to
// a token for looking, and no other is.
func TestReadOnlyChangesNothing(t *testing.T) {
	w := startTLS(t, nil)
	as := who{header: bearer(w.token(t, "look", api.RoleReadOnly, 0))}
	client := w.client(t, as)
	segments := strings.NewReplacer("{network}", "n", "{subnet}", "s", "{pool}", "p", "{range}", "r", "{owner}", "o",
		"{id}", "i", "{token}", "look")
	refused := 0
	for _, r := range w.server.routes() {
		_, p, err := w.callWith(t, client, as, r.Method, segments.Replace(r.Path))
		must(t, err)
		forbidden := p != nil && p.Code == api.CodeForbidden
		if forbidden != !r.Reads() {
			t.Errorf("%s %s, which reads: %v, was answered with %v", r.Method, r.Path, r.Reads(), p)
		}
		if forbidden {
			refused++
		}
		if r.Reads() && r.Method != http.MethodGet {
			t.Errorf("%s %s is said only to read", r.Method, r.Path)
		}
	}
	if refused < 15 {
		t.Errorf("only %d operations are refused", refused)
	}
	if len(w.tokens.List()) != 1 {
		t.Error("the token has removed itself")
	}
}

// TestActors: who asked is in the events of what he did, on the socket and over TLS.
func TestActors(t *testing.T) {
	w := startTLS(t, nil)
	uid, _, _, _ := own(t)
	for i, c := range []struct {
		as   *who // nil: the socket
		want string
	}{
		{nil, fmt.Sprintf("uid %d", uid)},
		{&who{header: bearer(w.token(t, "ops", api.RoleAdmin, 0))}, "token ops"},
		{&who{cert: ref(w.ca.client(t, "anna", adminOrganization))}, "certificate anna"},
		{&who{cert: ref(w.ca.client(t, "line\nbreak "+strings.Repeat("x", 100), adminOrganization))},
			"certificate line?break " + strings.Repeat("x", 53)},
		{&who{cert: ref(w.ca.client(t, "", adminOrganization))}, "certificate no. "},
	} {
		client, base := w.house.http, "http://berth"
		var header []string
		if c.as != nil {
			client, base, header = w.client(t, *c.as), "https://"+w.addr, c.as.header
		}
		req, err := http.NewRequestWithContext(t.Context(), "POST", base+"/v1/edits",
			strings.NewReader(fmt.Sprintf(`{"edits":[{"op":"network.create","name":"n%d"}]}`, i)))
		must(t, err)
		req.Header["Authorization"] = header
		req.Header.Set("Content-Type", api.JSONType)
		res, err := client.Do(req)
		must(t, err)
		res.Body.Close()
		if res.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s", c.want, res.Status)
		}
		events, err := w.service.Events(t.Context(), ipam.EventFilter{Last: 1})
		must(t, err)
		if got := events[0].Actor; !strings.Contains(got, c.want) {
			t.Errorf("the actor is %q, want %q", got, c.want)
		}
	}
}

func ref[T any](v T) *T { return &v }

// TestRemovedTokenIsCutOff: a stream ends with the token that it was asked for with, and a new request is refused.
func TestRemovedTokenIsCutOff(t *testing.T) {
	w := startTLS(t, nil)
	as := who{header: bearer(w.token(t, "look", api.RoleReadOnly, 0))}
	client := w.client(t, as)
	req, err := http.NewRequestWithContext(t.Context(), "GET", "https://"+w.addr+"/v1/events?follow=true&last=1",
		http.NoBody)
	must(t, err)
	req.Header["Authorization"] = as.header
	res, err := client.Do(req)
	must(t, err)
	defer res.Body.Close()
	stream := bufio.NewReader(res.Body)
	if _, err := stream.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	_, err = w.tokens.Remove("look")
	must(t, err)
	if rest, err := io.ReadAll(stream); len(rest) > 0 {
		t.Errorf("more came: %q, %v", rest, err)
	}
	if _, p, err := w.callWith(t, client, as, "GET", "/v1/spaces"); err != nil || p == nil ||
		p.Code != api.CodeUnauthenticated {
		t.Errorf("with a removed token: %v, %v", p, err)
	}
}

// TestCertificateExpires: a connection that goes on does not outlive its certificate.
func TestCertificateExpires(t *testing.T) {
	w := startTLS(t, nil)
	as := who{cert: ref(w.ca.client(t, "anna", adminOrganization))}
	client := w.client(t, as)
	if _, p, err := w.callWith(t, client, as, "GET", "/v1/spaces"); err != nil || p != nil {
		t.Fatal(p, err)
	}
	w.now.advance(2 * time.Hour)
	if _, p, err := w.callWith(t, client, as, "GET", "/v1/spaces"); err != nil || p == nil ||
		p.Code != api.CodeUnauthenticated || !strings.Contains(p.Detail, "expired") {
		t.Errorf("with an expired certificate: %v, %v", p, err)
	}
}

// TestPlainText: who speaks HTTP without TLS is told so and gets nothing, whatever he sends with it.
func TestPlainText(t *testing.T) {
	w := startTLS(t, nil)
	token := w.token(t, "ops", api.RoleAdmin, 0)
	conn, err := net.Dial("tcp", w.addr)
	must(t, err)
	defer conn.Close()
	fmt.Fprintf(conn, "GET /v1/spaces HTTP/1.1\r\nHost: berth\r\nAuthorization: Bearer %s\r\n\r\n", token)
	answer, err := io.ReadAll(conn)
	must(t, err)
	if !strings.HasPrefix(string(answer), "HTTP/1.0 400") || strings.Contains(string(answer), "spaces") {
		t.Errorf("plain HTTP was answered with %q", answer)
	}
	if log := w.logged.String(); strings.Contains(log, token) {
		t.Errorf("the log has the token: %s", log)
	}
}

// TestSlowClients: clients that say nothing, before the handshake or after it, are cut off, and take nobody's place on
// the socket.
func TestSlowClients(t *testing.T) {
	const most = 4
	w := startTLS(t, func(s *Server) { s.maxConnections, s.headerTimeout = most, 700*time.Millisecond })
	as := who{header: bearer(w.token(t, "ops", api.RoleAdmin, 0))}
	// they are others' than who asks afterwards
	elsewhere := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 9)}}
	for range 2 * most {
		conn, err := elsewhere.Dial("tcp", w.addr)
		must(t, err)
		defer conn.Close()
	}
	if _, err := w.house.client.Version(t.Context()); err != nil {
		t.Errorf("the socket beside silent clients on the network: %v", err)
	}
	for range most {
		raw, err := elsewhere.Dial("tcp", w.addr)
		must(t, err)
		conn := tls.Client(raw, func() *tls.Config { c := w.config(as); c.ServerName = "127.0.0.1"; return c }())
		defer conn.Close()
		if conn.HandshakeContext(t.Context()) != nil {
			continue // beyond the share
		}
		fmt.Fprint(conn, "GET /v1/spaces HTTP/1.1\r\nAuthor")
	}
	if _, p, err := w.call(t, as, "GET", "/v1/spaces"); p != nil || err != nil {
		t.Errorf("beside silent clients: %v, %v", p, err)
	}
}

// TestStrangersAreLogged: each connection of somebody who may not ask is one line, with where it came from.
func TestStrangersAreLogged(t *testing.T) {
	w := startTLS(t, nil)
	client := w.client(t, who{})
	for range 3 {
		if _, p, err := w.callWith(t, client, who{header: bearer("x")}, "GET", "/v1/spaces"); err != nil || p == nil {
			t.Fatal(p, err)
		}
	}
	if _, _, err := w.call(t, who{cert: ref(newAuthority(t, "other").client(t, "eve"))}, "GET",
		"/v1/spaces"); err == nil {
		t.Fatal("a stranger was let in")
	}
	// The server writes of a failed handshake when the client knows already.
	for deadline := time.Now().Add(10 * time.Second); !strings.Contains(w.logged.String(), "TLS handshake error") &&
		time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	log := w.logged.String()
	if strings.Count(log, "refused a stranger") != 3 || strings.Count(log, `peer="127.0.0.1:`) != 3 {
		t.Errorf("three refusals are logged as:\n%s", log)
	}
	if !strings.Contains(log, "TLS handshake error from 127.0.0.1:") {
		t.Errorf("a refused certificate is not logged:\n%s", log)
	}
}

// TestRenewal: certificates that were replaced count from the next connection on, without a restart; a file that cannot
// be read leaves everything as it was, and is told once.
func TestRenewal(t *testing.T) {
	w := startTLS(t, nil)
	as := who{header: bearer(w.token(t, "ops", api.RoleAdmin, 0))}
	served := func() string {
		t.Helper()
		conn, err := tls.Dial("tcp", w.addr, w.config(as))
		must(t, err)
		defer conn.Close()
		return conn.ConnectionState().PeerCertificates[0].Subject.CommonName
	}
	if got := served(); got != "daemon" {
		t.Errorf("served %s", got)
	}
	write(t, w.ca.daemon(t, "renewed"), w.files.Cert, w.files.Key)
	if got := served(); got != "renewed" {
		t.Errorf("after the renewal: %s", got)
	}
	must(t, os.WriteFile(w.files.Cert, []byte("half a cert"), 0o600))
	for range 3 {
		if got := served(); got != "renewed" {
			t.Errorf("with a damaged file: %s", got)
		}
	}
	must(t, os.Remove(w.files.Key))
	for range 3 {
		if got := served(); got != "renewed" {
			t.Errorf("with a missing file: %s", got)
		}
	}
	write(t, w.ca.daemon(t, "mended"), w.files.Cert, w.files.Key)
	if got := served(); got != "mended" {
		t.Errorf("after it was mended: %s", got)
	}
	if log := w.logged.String(); strings.Count(log, "cannot be read") != 2 || strings.Count(log, "read again") != 2 {
		t.Errorf("the log:\n%s", log)
	}

	// A new authority of the clients makes the certificates of the old one worthless.
	old := who{cert: ref(w.ca.client(t, "anna", adminOrganization))}
	if _, p, err := w.call(t, old, "GET", "/v1/spaces"); p != nil || err != nil {
		t.Fatal(p, err)
	}
	other := newAuthority(t, "other")
	write(t, tls.Certificate{Certificate: [][]byte{other.cert.Raw}}, w.files.ClientCA, "")
	if _, _, err := w.call(t, old, "GET", "/v1/spaces"); err == nil {
		t.Error("a certificate of the old authority is taken")
	}
	if _, p, err := w.call(t, who{cert: ref(other.client(t, "anna"))}, "GET", "/v1/spaces"); p != nil || err != nil {
		t.Error(p, err)
	}
}

func TestCheckListen(t *testing.T) {
	for c := range ipamtest.Rows(4, `
		:7890 | c | k | ok
		[::1]:7890 | c | k | ok
		berth.example:7890 | c | k | ok
		:7890
		:7890 | c
		:7890 | | k
		7890 | c | k
		10.0.0.1 | c | k
		https://10.0.0.1:1 | c | k
		| c | k
	`) {
		if err := (KeyFiles{Cert: c[1], Key: c[2]}).CheckListen(c[0]); (err == nil) != (c[3] != "") {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
