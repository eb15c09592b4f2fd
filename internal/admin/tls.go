package admin

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"berth/internal/admin/api"

	"github.com/sirupsen/logrus"
)

// adminOrganization is the organization (O) in the subject of an admin's client certificate. Every other certificate of
// the clients' authority may only read.
const adminOrganization = "berth:admin"

// KeyFiles are the PEM files of a TLS listener. Without ClientCA it accepts only tokens, no client certificates.
type KeyFiles struct {
	Cert, Key, ClientCA string
}

// Keys are the certificates of a TLS listener. Replaced files are read at the next connection, so a renewed certificate
// needs no restart. If they cannot be read, the previous ones stay in use.
type Keys struct {
	files KeyFiles
	log   *logrus.Entry

	mu     sync.Mutex
	seen   []os.FileInfo // of the files when they were last read
	config *tls.Config
	told   string // the logged problem with the files, so that it is logged once
}

// OpenKeys reads the files.
func OpenKeys(files KeyFiles, log *logrus.Entry) (*Keys, error) {
	k := &Keys{files: files, log: log}
	seen, err := k.look()
	if err != nil {
		return nil, err
	}
	k.seen = seen
	k.config, err = files.read()
	return k, err
}

// look returns the current state of the files.
func (k *Keys) look() ([]os.FileInfo, error) {
	var all []os.FileInfo
	for _, path := range []string{k.files.Cert, k.files.Key, k.files.ClientCA} {
		if path == "" {
			continue
		}
		info, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		all = append(all, info)
	}
	return all, nil
}

// read makes a configuration from the files. It requires TLS 1.3, which all clients of recent years support and which
// has no unsafe options. It disables session resumption, so each connection shows its certificate.
func (f KeyFiles) read() (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(f.Cert, f.Key)
	if err != nil {
		return nil, fmt.Errorf("cannot use the certificate %s with the key %s: %w", f.Cert, f.Key, err)
	}
	config := &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{pair},
		NextProtos: []string{"http/1.1"}, SessionTicketsDisabled: true}
	if f.ClientCA == "" {
		return config, nil
	}
	if config.ClientCAs, err = api.ReadCAs(f.ClientCA); err != nil {
		return nil, err
	}
	config.ClientAuth = tls.VerifyClientCertIfGiven // without a certificate, the client needs a token
	return config, nil
}

// forClient is the GetConfigForClient of a tls.Config.
func (k *Keys) forClient(*tls.ClientHelloInfo) (*tls.Config, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := k.renew(); err != nil && err.Error() != k.told {
		k.told = err.Error()
		k.log.WithError(err).Error("the certificates of the admin API have changed and cannot be read; the API keeps " +
			"the previous ones")
	}
	return k.config, nil
}

// renew reads the files again if they have changed.
func (k *Keys) renew() error {
	seen, err := k.look()
	if err != nil {
		return err
	}
	if slices.EqualFunc(seen, k.seen, sameContent) {
		return nil
	}
	k.seen = seen
	config, err := k.files.read()
	if err != nil {
		return err
	}
	k.config, k.told = config, ""
	k.log.Info("Berth read the changed certificates of the admin API")
	return nil
}

func sameContent(a, b os.FileInfo) bool {
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}

// ServeTLS answers clients with a certificate or a token over TLS on l, until ctx ends, like Serve. It counts its
// connections separately, so strangers on the network cannot take those of the socket.
func (s *Server) ServeTLS(ctx context.Context, l net.Listener, keys *Keys) error {
	server := s.newHTTP(logrus.InfoLevel) // a failed handshake may be an attempted intrusion
	server.BaseContext = func(net.Listener) context.Context {
		return context.WithValue(context.Background(), keysKey{}, keys)
	}
	limit := newShares(s.maxConnections, s.log)
	limit.who = networkOf
	server.ConnContext = withShare
	config := &tls.Config{MinVersion: tls.VersionTLS13, GetConfigForClient: keys.forClient}
	over := func(l net.Listener) net.Listener { return tls.NewListener(limit.over(l), config) }
	if err := s.run(ctx, server, l, over); err != nil {
		return fmt.Errorf("the admin API on %s failed: %w", l.Addr(), err)
	}
	return nil
}

type keysKey struct{}

// misdirected refuses a browser that uses a name that is not in the certificate, because another site may have led it
// here.
func misdirected(r *http.Request) *api.Problem {
	keys, ok := r.Context().Value(keysKey{}).(*Keys)
	if !ok {
		return nil // on the socket
	}
	keys.mu.Lock()
	leaf := keys.config.Certificates[0].Leaf
	keys.mu.Unlock()
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if err := leaf.VerifyHostname(strings.Trim(host, "[]")); err != nil {
		return problem(http.StatusMisdirectedRequest, api.CodeMisdirected,
			"Berth does not serve the page under the name %q: %v; use a name in the daemon's certificate", host, err)
	}
	return nil
}

// remoteCaller finds the caller over TLS. A token takes precedence over a certificate, so that removing the token
// removes what it allowed.
func (s *Server) remoteCaller(r *http.Request) (*caller, *api.Problem) {
	sent := r.Header.Values("Authorization")
	switch {
	case len(sent) == 1:
		scheme, text, _ := strings.Cut(sent[0], " ")
		if !strings.EqualFold(scheme, "Bearer") {
			return nil, unauthenticated("the header Authorization is not \"Bearer TOKEN\"")
		}
		return s.cfg.Tokens.caller(strings.TrimSpace(text))
	case len(sent) > 1:
		return nil, unauthenticated("the header Authorization appears more than once")
	case len(r.TLS.VerifiedChains) > 0:
		return certified(r.TLS.VerifiedChains[0][0], s.now())
	}
	return nil, unauthenticated("requests need authentication: send a token, or a certificate if the daemon accepts " +
		"them")
}

// certified returns the caller for a certificate, which the handshake has verified. It checks the expiry, because a
// connection may outlive the certificate.
func certified(cert *x509.Certificate, now time.Time) (*caller, *api.Problem) {
	if now.After(cert.NotAfter) {
		return nil, unauthenticated("the certificate expired at %s", cert.NotAfter.UTC().Format(time.RFC3339))
	}
	who := &caller{actor: "certificate " + certificateName(cert), role: api.RoleReadOnly}
	if slices.Contains(cert.Subject.Organization, adminOrganization) {
		who.role = api.RoleAdmin
	}
	return who, nil
}

// certificateName returns the common name, cut to 64 characters (RFC 5280, ub-common-name), or the serial number.
func certificateName(cert *x509.Certificate) string {
	name := []rune(cert.Subject.CommonName)
	if len(name) == 0 {
		return fmt.Sprintf("no. %x", cert.SerialNumber)
	}
	for i, r := range name {
		if !unicode.IsPrint(r) {
			name[i] = '?'
		}
	}
	return string(name[:min(len(name), 64)])
}

// CheckListen refuses an invalid listen address, and one without TLS.
func (f KeyFiles) CheckListen(address string) error {
	if _, _, err := net.SplitHostPort(address); err != nil {
		return fmt.Errorf("%q is not an address to listen on such as 10.0.0.1:7890 or :7890", address)
	}
	if f.Cert == "" || f.Key == "" {
		return errors.New("the admin API needs TLS on the network, because others could otherwise read its tokens " +
			"and change its data: give a certificate and its key")
	}
	return nil
}
