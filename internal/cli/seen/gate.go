package seen

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"html/template"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// secretParameter is the query parameter of the secret in the link.
const secretParameter = "secret"

// gate passes requests of browsers that have the secret. Another site's page in the same browser can attack in two
// ways. It can reach this server under a name of its own (DNS rebinding); the Host header shows that. Or it can send
// requests with the user's cookie. A SameSite cookie prevents that, and changes are accepted only from this page
// (Sec-Fetch-Site or Origin).
type gate struct {
	hosts  []string // valid Host headers
	secret [sha256.Size]byte
	cookie string // the cookie's name; it has the port, because cookies do not distinguish ports
	value  string
	origin *http.CrossOriginProtection
	next   http.Handler
}

func newGate(at netip.AddrPort, secret string, next http.Handler) *gate {
	g := &gate{hosts: []string{at.String()}, secret: sha256.Sum256([]byte(secret)), value: secret,
		cookie: "berth-page-" + strconv.Itoa(int(at.Port())), origin: http.NewCrossOriginProtection(), next: next}
	if at.Addr().IsLoopback() {
		g.hosts = append(g.hosts, net.JoinHostPort("localhost", strconv.Itoa(int(at.Port()))))
	}
	return g
}

// ServeHTTP implements http.Handler.
func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case !slices.Contains(g.hosts, r.Host):
		refuse(w, http.StatusMisdirectedRequest, fmt.Sprintf("Berth serves no page under the host name %q. Open "+
			"exactly the link that berth page printed.", r.Host))
	case r.URL.Query().Has(secretParameter):
		g.enter(w, r)
	case !g.knows(r):
		refuse(w, http.StatusForbidden, "To see this page, open the link that berth page printed as its first line. "+
			"The link of an earlier run is no longer valid.")
	default:
		g.pass(w, r)
	}
}

// is compares a text with the secret in constant time.
func (g *gate) is(text string) bool {
	sum := sha256.Sum256([]byte(text))
	return subtle.ConstantTimeCompare(sum[:], g.secret[:]) == 1
}

// knows reports whether the browser has the cookie.
func (g *gate) knows(r *http.Request) bool {
	for _, c := range r.CookiesNamed(g.cookie) {
		if g.is(c.Value) {
			return true
		}
	}
	return false
}

// enter moves the secret from the address bar to a cookie.
func (g *gate) enter(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	given := q.Get(secretParameter)
	if r.Method != http.MethodGet || !g.is(given) {
		refuse(w, http.StatusForbidden, "The secret in this link does not belong to the running berth page. Open "+
			"exactly the link that berth page printed last.")
		return
	}
	q.Del(secretParameter)
	http.SetCookie(w, &http.Cookie{Name: g.cookie, Value: g.value, Path: "/", HttpOnly: true,
		SameSite: http.SameSiteStrictMode})
	protect(w.Header())
	to := "/" + strings.TrimLeft(r.URL.EscapedPath(), `/\`) // never another host, as //host would be
	if len(q) > 0 {
		to += "?" + q.Encode()
	}
	w.Header().Set("Location", to)
	w.WriteHeader(http.StatusSeeOther)
}

// pass passes on requests that the page itself sends.
func (g *gate) pass(w http.ResponseWriter, r *http.Request) {
	if err := g.origin.Check(r); err != nil {
		refuse(w, http.StatusForbidden,
			"Another website sent this request, not Berth's page. Berth has changed nothing.")
		return
	}
	g.next.ServeHTTP(w, r)
}

// protect sets the headers of gate's own answers: they load nothing, and nobody caches them.
func protect(h http.Header) {
	sum := sha256.Sum256([]byte(refusalStyle))
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'sha256-"+
		base64.StdEncoding.EncodeToString(sum[:])+"'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
}

// refusal is the page for a browser without the cookie. After a link on another site, a browser sends the cookie only
// with its next request. The page has a link for that.
var refusal = template.Must(template.New("").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Berth</title>
<style>` + refusalStyle + `</style></head><body><main><h1>{{.Status}}</h1><p>{{.Text}}</p>{{if .Again}}
<p>If you came here by a link on another page: <a href="/">continue to Berth</a>.</p>{{else}}
<p><a href="/">Back to the networks</a></p>{{end}}</main></body></html>
`))

// refusalStyle matches the page's style.
const refusalStyle = `:root{color-scheme:light dark}body{font:16px/1.5 system-ui,sans-serif;` +
	`max-width:40rem;margin:3rem auto;padding:0 1rem;overflow-wrap:anywhere}h1{font-size:1.5rem}a{color:light-dark(#0a56a8,#7cb7ff)}`

func refuse(w http.ResponseWriter, status int, text string) {
	protect(w.Header())
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_ = refusal.Execute(w, map[string]any{ // an error means that the browser is gone
		"Status": http.StatusText(status), "Text": text, "Again": status == http.StatusForbidden})
}
