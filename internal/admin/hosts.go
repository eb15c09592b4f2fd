package admin

import (
	"fmt"
	"net/http"
	"slices"

	"berth/internal/admin/api"
	"berth/internal/ipam"
)

// hostRoutes lists the operations of the hosts that share a store.
func (s *Server) hostRoutes() []route {
	return []route{
		{http.MethodGet, api.HostsPath, s.hosts, true},
		{http.MethodGet, api.HostPath, s.host, true},
	}
}

func (s *Server) hosts(w http.ResponseWriter, r *http.Request) error {
	if _, err := query(r); err != nil {
		return err
	}
	all, err := s.cfg.Service.Hosts(r.Context())
	if err != nil {
		return err
	}
	return replyList(w, "hosts", all)
}

func (s *Server) host(w http.ResponseWriter, r *http.Request) error {
	if _, err := query(r); err != nil {
		return err
	}
	all, err := s.cfg.Service.Hosts(r.Context())
	if err != nil {
		return err
	}
	name := r.PathValue("name")
	at := slices.IndexFunc(all, func(h ipam.HostInfo) bool { return h.Name == name })
	if at < 0 {
		return noSuchHost(name, all)
	}
	return reply(w, all[at])
}

func noSuchHost(name string, all []ipam.HostInfo) *api.Problem {
	var names []string
	for _, h := range all {
		names = append(names, h.Name)
	}
	return &api.Problem{Status: http.StatusNotFound, Code: api.CodeNotFound,
		Detail: fmt.Sprintf("there is no host %q in the cluster; there are %s", name, orNone(names))}
}
