package seen

import (
	"io"
	"log"
	"net/http"
	"net/http/httputil"

	"berth/internal/admin/api"
	"berth/internal/admin/client"
)

// passOn forwards requests for the page to the daemon, and no others. It removes what a browser knows of this server,
// such as cookies and the referrer. The gate has checked the origin, so the daemon may take a form for its own page's.
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
		FlushInterval: -1, // events are shown as they arrive
		ErrorLog:      quiet(),
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			refuse(w, http.StatusBadGateway, "The daemon does not answer: "+err.Error())
		},
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !passes(r) {
			refuse(w, http.StatusNotFound, "Berth's page has nothing at "+r.URL.Path+". Programs must use the admin "+
				"API on the daemon's socket.")
			return
		}
		proxy.ServeHTTP(w, r)
	})
}

// passes reports whether a request is for the page. Programs use the daemon's socket instead.
func passes(r *http.Request) bool {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodPost:
		return api.IsPage(r.URL.Path)
	}
	return false
}

// quiet discards the servers' messages about connections that end early.
func quiet() *log.Logger { return log.New(io.Discard, "", 0) }
