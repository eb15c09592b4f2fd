package seen

import (
	"io"
	"log"
	"net/http"
	"net/http/httputil"

	"berth/internal/admin/api"
	"berth/internal/admin/client"
)

// passOn hands requests to a daemon: those of its page, and no others. What a browser knows of this server, its cookies
// and where it was before, stays here, and a form is the daemon's own page's, as the gate has seen.
func passOn(c *client.Client) http.Handler {
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.Host = r.In.Host
			for _, name := range []string{"Cookie", "Authorization", "Origin", "Referer"} {
				r.Out.Header.Del(name)
			}
			r.Out.Header.Set("Sec-Fetch-Site", "same-origin")
		},
		Transport:     c.Pass(),
		FlushInterval: -1, // what is told as it happens is shown as it happens
		ErrorLog:      quiet(),
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			refuse(w, http.StatusBadGateway, "The daemon does not answer: "+err.Error())
		},
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !passes(r) {
			refuse(w, http.StatusNotFound, "Berth's page has nothing at "+r.URL.Path+". Programs ask the admin API over "+
				"its socket.")
			return
		}
		proxy.ServeHTTP(w, r)
	})
}

// passes tells whether a request is for the page: what programs ask for goes to the daemon's socket by itself.
func passes(r *http.Request) bool {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodPost:
		return api.IsPage(r.URL.Path)
	}
	return false
}

// quiet is for what servers log of connections that end early.
func quiet() *log.Logger { return log.New(io.Discard, "", 0) }
