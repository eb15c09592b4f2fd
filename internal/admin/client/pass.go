package client

import "net/http"

// Pass returns a transport that forwards requests to the daemon as this Client's own, with its socket, token or
// certificate. It ignores the host in a request, so nothing goes elsewhere. The caller decides which paths and headers
// may pass. It returns redirections instead of following them.
func (c *Client) Pass() http.RoundTripper { return passing{c} }

// passing forwards requests to the daemon of a Client.
type passing struct{ *Client }

// RoundTrip implements http.RoundTripper.
func (p passing) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.URL.Scheme, r.URL.Host = "http", "berth" // a Client over TLS sets its own
	return p.http.Transport.RoundTrip(r)
}
