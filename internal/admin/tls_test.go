package admin

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"io"
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
	"berth/test/lab"

	"github.com/sirupsen/logrus"
)

// authority signs certificates for a test.
type authority struct{ lab.Authority }

func newAuthority(t *testing.T, name string) *authority {
	t.Helper()
	a, err := lab.NewAuthority(name)
	must(t, err)
	return &authority{a}
}

func (a *authority) sign(t *testing.T, c x509.Certificate) tls.Certificate {
	t.Helper()
	pair, err := a.Sign(c)
	must(t, err)
	return pair
}

// client makes a client certificate.
func (a *authority) client(t *testing.T, name string, organization ...string) tls.Certificate {
	return a.sign(t, x509.Certificate{Subject: pkix.Name{CommonName: name, Organization: organization},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
}

// daemon makes the certificate of the daemon on 127.0.0.1.
func (a *authority) daemon(t *testing.T, name string) tls.Certificate {
	return a.sign(t, x509.Certificate{Subject: pkix.Name{CommonName: name},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
}

// tlsHarness is a harness that also serves over TLS.
type tlsHarness struct {
	*harness
	ca     *authority
	files  KeyFiles
	keys   *Keys
	addr   string
	logged *lines
	tokens *Tokens
	now    *clock // for tokens and certificates
}

// clock is a clock that a test sets.
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
func startTLS(t *testing.T, edit func(*Server)) *tlsHarness {
	t.Helper()
	w := &tlsHarness{ca: newAuthority(t, "ca"), logged: new(lines), now: new(clock)}
	dir := t.TempDir()
	w.files = KeyFiles{Cert: filepath.Join(dir, "cert.pem"), Key: filepath.Join(dir, "key.pem"),
		ClientCA: filepath.Join(dir, "ca.pem")}
	must(t, lab.WritePair(w.ca.daemon(t, "daemon"), w.files.Cert, w.files.Key))
	must(t, lab.WritePair(w.ca.Certificate, w.files.ClientCA, ""))
	log := logrus.New()
	log.SetOutput(w.logged)
	var err error
	w.tokens, err = OpenTokens(filepath.Join(dir, TokenFile), w.now.Now)
	must(t, err)
	w.harness = start(t, func(s *Server) {
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

// who holds a caller's credentials.
type who struct {
	cert   *tls.Certificate
	header []string // Authorization
	config func(*tls.Config)
}

func (w *tlsHarness) config(as who) *tls.Config {
	roots := x509.NewCertPool()
	roots.AddCert(w.ca.Leaf)
	config := &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	if as.cert != nil { // even if the server's list of authorities lacks its authority
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

// over is the harness over TLS, for a caller. Its connections end with the test.
func (w *tlsHarness) over(t *testing.T, as who) *harness {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: w.config(as)}
	t.Cleanup(transport.CloseIdleConnections)
	h := *w.harness
	h.http = &http.Client{Transport: transport, CheckRedirect: redirected}
	h.base, h.header = "https://"+w.addr, http.Header{"Authorization": as.header}
	return &h
}

// letsIn reports whether a caller gets any answer.
func (w *tlsHarness) letsIn(t *testing.T, as who) bool {
	t.Helper()
	h := w.over(t, as)
	res, err := h.http.Do(h.request(t, steps("GET /v1/spaces -> 200")[0]))
	if err == nil {
		res.Body.Close()
	}
	return err == nil
}

func bearer(token string) []string { return []string{"Bearer " + token} }

func (w *tlsHarness) token(t *testing.T, name string, role api.Role, lifetime time.Duration) string {
	t.Helper()
	made, err := w.tokens.create(api.TokenRequest{Name: name, Role: role, Lifetime: ipam.Duration(lifetime),
		NoEnd: lifetime == 0},
		time.Time{}, "a test")
	must(t, err)
	return made.Token
}

// TestWhoMayAskOverTLS: a caller needs a token or a certificate. Nothing else is accepted.
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
			switch c[4] {
			case "-":
				if w.letsIn(t, as) {
					t.Error("it was let in")
				}
			case "unauthenticated":
				w.over(t, as).plays(t, `GET $PATH
					-> 401 "code":"unauthenticated" && Www-Authenticate: Bearer && Closed: true`, "$PATH", c[3])
			case "forbidden":
				w.over(t, as).plays(t, `GET $PATH -> 403 "code":"forbidden"`, "$PATH", c[3])
			default:
				w.over(t, as).plays(t, `GET $PATH -> 200`, "$PATH", c[3])
			}
		})
	}
	if log := w.logged.String(); strings.Contains(log, api.TokenPrefix) ||
		strings.Contains(log, admin[len(api.TokenPrefix):][:20]) {
		t.Errorf("the log has a token in it:\n%s", log)
	}
}

// TestRoles: over all operations, each role may call those that its row names, and no others (CS-14).
func TestRoles(t *testing.T) {
	w := startTLS(t, nil)
	w.plays(t, `edit {"op": "account.create", "account": "shop"} -> 200`)
	for role, may := range map[api.Role]func(*route) bool{
		api.RoleReadOnly: func(r *route) bool { return r.Reads() },
		api.RoleAccount:  func(r *route) bool { return r.Account },
	} {
		req := api.TokenRequest{Name: "of-" + string(role), Role: role}
		if role == api.RoleAccount {
			req.Account = "shop"
		}
		made, err := w.client.CreateToken(t.Context(), req)
		must(t, err)
		h, refused := w.over(t, who{header: bearer(made.Token)}), 0
		for _, r := range w.server.routes() {
			got := h.send(t, step{method: r.Method, target: strings.NewReplacer("{", "", "}", "").Replace(r.Path)})
			forbidden := got.status == http.StatusForbidden
			if forbidden == may(&r) {
				t.Errorf("%s %s of the role %s: %d %s", r.Method, r.Path, role, got.status, got.body)
			}
			if r.Reads() && r.Method != http.MethodGet {
				t.Errorf("%s %s is said only to read", r.Method, r.Path)
			}
			if forbidden {
				refused++
			}
		}
		if refused < 15 {
			t.Errorf("only %d operations are refused to the role %s", refused, role)
		}
	}
	w.plays(t, `GET /v1/tokens -> 200 "name":"of-read-only" && "name":"of-account"`)
}

// TestActors: events name the caller that caused them, on the socket and over TLS.
func TestActors(t *testing.T) {
	w, n := startTLS(t, nil), 0
	for want, h := range map[string]*harness{
		fmt.Sprintf("uid %d", os.Geteuid()): w.harness,
		"token ops":                         w.over(t, who{header: bearer(w.token(t, "ops", api.RoleAdmin, 0))}),
		"certificate anna":                  w.over(t, who{cert: ref(w.ca.client(t, "anna", adminOrganization))}),
		"certificate line?break " + strings.Repeat("x", 53): w.over(t,
			who{cert: ref(w.ca.client(t, "line\nbreak "+strings.Repeat("x", 100), adminOrganization))}),
		"certificate no. ": w.over(t, who{cert: ref(w.ca.client(t, "", adminOrganization))}),
	} {
		h.plays(t, `
			edit {"op": "network.create", "name": "$NAME"} -> 200
			GET /v1/events?last=1 -> 200 $WANT
		`, "$NAME", fmt.Sprint("n", n), "$WANT", want)
		n++
	}
}

func ref[T any](v T) *T { return &v }

// TestRemovedTokenIsCutOff: when a token is removed, its streams end and new requests are refused.
func TestRemovedTokenIsCutOff(t *testing.T) {
	w := startTLS(t, nil)
	h := w.over(t, who{header: bearer(w.token(t, "look", api.RoleReadOnly, 0))})
	lines := h.stream(t, "GET /v1/events?follow=true&last=1")
	line(t, lines)
	_, err := w.tokens.Remove("look")
	must(t, err)
	if lines.Scan() {
		t.Errorf("more came: %q", lines.Text())
	}
	h.plays(t, `GET /v1/spaces -> 401 unauthenticated`)
}

// TestCertificateExpires: an open connection does not outlive its certificate.
func TestCertificateExpires(t *testing.T) {
	w := startTLS(t, nil)
	h := w.over(t, who{cert: ref(w.ca.client(t, "anna", adminOrganization))})
	h.plays(t, `GET /v1/spaces -> 200`)
	w.now.advance(2 * time.Hour)
	h.plays(t, `GET /v1/spaces -> 401 unauthenticated && expired`)
}

// TestPlainText: a client that speaks HTTP without TLS gets an error that says so, and nothing else.
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

// TestStrangersAreLogged: each connection of an unauthorized caller is one line in the log, with its address.
func TestStrangersAreLogged(t *testing.T) {
	w := startTLS(t, nil)
	for range 3 {
		w.over(t, who{header: bearer("x")}).plays(t, `GET /v1/spaces -> 401`)
	}
	if w.letsIn(t, who{cert: ref(newAuthority(t, "other").client(t, "eve"))}) {
		t.Fatal("a stranger was let in")
	}
	// The server logs a failed handshake after the client knows of it.
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

// TestRenewal: replaced certificates count from the next connection on, without a restart. A file that cannot be
// read changes nothing and is reported once.
func TestRenewal(t *testing.T) {
	w := startTLS(t, nil)
	as := who{header: bearer(w.token(t, "ops", api.RoleAdmin, 0))}
	served := func(want string) {
		t.Helper()
		conn, err := tls.Dial("tcp", w.addr, w.config(as))
		must(t, err)
		defer conn.Close()
		if got := conn.ConnectionState().PeerCertificates[0].Subject.CommonName; got != want {
			t.Errorf("served is %s, not %s", got, want)
		}
	}
	served("daemon")
	must(t, lab.WritePair(w.ca.daemon(t, "renewed"), w.files.Cert, w.files.Key))
	served("renewed")
	must(t, os.WriteFile(w.files.Cert, []byte("half a cert"), 0o600))
	for range 3 {
		served("renewed")
	}
	must(t, os.Remove(w.files.Key))
	for range 3 {
		served("renewed")
	}
	must(t, lab.WritePair(w.ca.daemon(t, "mended"), w.files.Cert, w.files.Key))
	served("mended")
	log := w.logged.String()
	if strings.Count(log, "cannot be read") != 2 || strings.Count(log, "read the changed certificates") != 2 {
		t.Errorf("the log:\n%s", log)
	}

	// A new client authority makes the certificates of the old one worthless.
	old, other := who{cert: ref(w.ca.client(t, "anna", adminOrganization))}, newAuthority(t, "other")
	w.over(t, old).plays(t, `GET /v1/spaces -> 200`)
	must(t, lab.WritePair(other.Certificate, w.files.ClientCA, ""))
	if w.letsIn(t, old) {
		t.Error("a certificate of the old authority is taken")
	}
	w.over(t, who{cert: ref(other.client(t, "anna"))}).plays(t, `GET /v1/spaces -> 200`)
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
