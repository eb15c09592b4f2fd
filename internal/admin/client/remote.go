package client

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"berth/internal/admin/api"
)

// Remote is a daemon that is called over TLS, with the caller's credentials.
type Remote struct {
	URL       string // https://HOST:PORT
	CA        string // a PEM file of authorities for the daemon's certificate; empty: those of the system
	TokenFile string // a file with a token in it; empty: none
	Cert, Key string // PEM files of the client's certificate; empty: none
}

// Limits for the start of a connection. Answers have none.
const (
	dialTimeout      = 10 * time.Second
	handshakeTimeout = 10 * time.Second
)

// NewRemote returns a Client that calls over TLS. It connects at its first call.
func NewRemote(r Remote) (*Client, error) {
	base, err := url.Parse(r.URL)
	if err != nil || base.Scheme != "https" || base.Host == "" || base.User != nil ||
		strings.Trim(base.Path, "/") != "" || base.RawQuery != "" || base.Fragment != "" {
		return nil, fmt.Errorf("%q is not the address of a daemon, such as https://berth.example:7890", r.URL)
	}
	config := &tls.Config{MinVersion: tls.VersionTLS13}
	if r.CA != "" {
		if config.RootCAs, err = api.ReadCAs(r.CA); err != nil {
			return nil, err
		}
	}
	if (r.Cert == "") != (r.Key == "") {
		return nil, errors.New("a client certificate needs its key, and a key its certificate: give both files")
	}
	if r.Cert != "" {
		pair, err := tls.LoadX509KeyPair(r.Cert, r.Key)
		if err != nil {
			return nil, fmt.Errorf("cannot use the certificate %s with the key %s: %w", r.Cert, r.Key, err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	token, err := readToken(r.TokenFile)
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment,
		DialContext: (&net.Dialer{Timeout: dialTimeout}).DialContext, TLSClientConfig: config,
		TLSHandshakeTimeout: handshakeTimeout, ExpectContinueTimeout: continueTimeout}
	return &Client{socket: r.URL, http: &http.Client{Transport: &toRemote{base.Host, token, transport}}}, nil
}

// readToken reads a token from a file that is not readable by everybody.
func readToken(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	text, err := api.ReadSecret(path)
	if err != nil {
		return "", fmt.Errorf("cannot use the token: %w", err)
	}
	token := strings.TrimSpace(text)
	if !strings.HasPrefix(token, api.TokenPrefix) || strings.ContainsAny(token, " \t\r\n") {
		return "", fmt.Errorf("%s does not contain a Berth token: a token is a single word that begins with %s", path,
			api.TokenPrefix)
	}
	return token, nil
}

// toRemote sends a Client's requests to one host, with a token. It sends them only there, even after a redirection.
type toRemote struct {
	host, token string
	transport   *http.Transport
}

// RoundTrip implements http.RoundTripper.
func (t *toRemote) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.URL.Scheme, r.URL.Host, r.Host = "https", t.host, ""
	if t.token != "" {
		r.Header.Set("Authorization", "Bearer "+t.token)
	}
	return t.transport.RoundTrip(r)
}

// CloseIdleConnections is called by http.Client.
func (t *toRemote) CloseIdleConnections() { t.transport.CloseIdleConnections() }
