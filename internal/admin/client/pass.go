package client

import "net/http"

// Pass carries requests of somebody else to the daemon, as this Client's own: over its socket or in TLS, with its token
// or certificate. Whatever host a request names, it goes to that daemon and to no other; who passes them on says which
// paths and headers may go there. A redirection is handed back and not followed.
func (c *Client) Pass() http.RoundTripper { return passing{c} }

// passing carries requests to the daemon of a Client.
type passing struct{ *Client }

// RoundTrip implements http.RoundTripper.
func (p passing) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.URL.Scheme, r.URL.Host = "http", "berth" // a Client over TLS has its own
	return p.http.Transport.RoundTrip(r)
}
