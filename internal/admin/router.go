package admin

import (
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"

	"berth/internal/admin/api"
	pages "berth/internal/admin/page"
)

// mux finds the operation of a request. It answers an unknown path or method with a problem. It matches paths as they
// were sent, so a segment may contain an escaped slash (10.0.0.0%2F24).
func (s *Server) mux() http.Handler {
	byPath := map[string]map[string]route{}
	for _, r := range slices.Concat(s.routes(), s.pageRoutes()) {
		if byPath[r.Path] == nil {
			byPath[r.Path] = map[string]route{}
		}
		byPath[r.Path][r.Method] = r
	}
	m := http.NewServeMux()
	for pattern, methods := range byPath {
		m.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { s.call(w, r, methods) })
	}
	m.HandleFunc("/", s.noPath)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if sent := r.URL.EscapedPath(); sent != path.Clean(sent) || sent[0] != '/' {
			s.noPath(w, r) // http.ServeMux would redirect
			return
		}
		m.ServeHTTP(w, r)
	})
}

// call answers a request for a path with the operation of its method.
func (s *Server) call(w http.ResponseWriter, r *http.Request, methods map[string]route) {
	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	route, ok := methods[method]
	if !ok {
		allow := allowed(methods)
		w.Header().Set("Allow", allow)
		s.refuse(w, r, noSuchMethod(r.Method, r.URL.Path, allow))
		return
	}
	if p := mayCall(r.Context(), route); p != nil {
		s.refuse(w, r, p)
		return
	}
	if err := s.hasAccount(r.Context()); err != nil {
		s.refuse(w, r, problemOf(err))
		return
	}
	if route.Reads() && route.Path != api.GetStatus.Path && route.Path != api.GetVersion.Path {
		s.tellsAge(w.Header())
	}
	if err := route.handle(w, r); err != nil {
		s.refuse(w, r, problemOf(err))
	}
}

func (s *Server) noPath(w http.ResponseWriter, r *http.Request) {
	s.refuse(w, r, noSuchPath(r.URL.Path))
}

// allowed lists the methods of a path.
func allowed(methods map[string]route) string {
	all := slices.Sorted(maps.Keys(methods))
	if i := slices.Index(all, http.MethodGet); i >= 0 {
		all = slices.Insert(all, i+1, http.MethodHead)
	}
	return strings.Join(all, ", ")
}

// newPage creates the page, which uses the same Service as the API.
func (s *Server) newPage() *pages.Page {
	return pages.New(pages.Config{Service: s.cfg.Service, Host: s.cfg.Host, Writable: s.writable, Ended: s.ended,
		Findings: s.lastFindings, Release: s.cfg.Release, Trend: s.cfg.Trend, Cluster: s.cfg.Cluster,
		Witness: s.cfg.Witness, SeenBy: s.cfg.SeenBy,
		MayChange: func(r *http.Request) bool { return callerIn(r.Context()).role == api.RoleAdmin }})
}

// pageRoutes lists the views of the page. They are for people and not part of the API description.
func (s *Server) pageRoutes() (all []route) {
	for _, v := range s.page.Views() {
		row := api.Row{Method: v.Method, Path: v.Path}
		if v.Reads {
			row.Role = api.RoleReadOnly
		}
		all = append(all, route{api.Spec{Row: row}, viewed(v)})
	}
	return all
}

// viewed returns the handler of a view.
func viewed(v pages.View) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		if p := misdirected(r); p != nil {
			return p
		}
		return v.Handle(w, r)
	}
}
