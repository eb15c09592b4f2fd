package admin

import (
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"

	"berth/internal/admin/api"
)

// mux finds the operation of a request, and answers what is no path, and what is no method of a path, as the problems
// that they are. Paths are matched as they were sent, so that a segment may hold an escaped slash (10.0.0.0%2F24).
func (s *Server) mux() http.Handler {
	byPath := map[string]map[string]route{}
	for _, r := range s.routes() {
		if byPath[r.path] == nil {
			byPath[r.path] = map[string]route{}
		}
		byPath[r.path][r.method] = r
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

// call answers a request of a path with the operation of its method.
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
	if route.reads && route.path != api.StatusPath && route.path != api.VersionPath {
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
