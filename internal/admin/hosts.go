package admin

import (
	"context"
	"net/http"
	"slices"

	"berth/internal/admin/api"
	"berth/internal/ipam"
)

func (s *Server) host(ctx context.Context, req api.HostRequest) (h ipam.HostInfo, err error) {
	all, err := s.cfg.Service.Hosts(ctx)
	if err != nil {
		return h, err
	}
	at := slices.IndexFunc(all, func(h ipam.HostInfo) bool { return h.Name == req.Name })
	if at < 0 {
		return h, noSuchHost(req.Name, all)
	}
	return all[at], nil
}

func noSuchHost(name string, all []ipam.HostInfo) *api.Problem {
	var names []string
	for _, h := range all {
		names = append(names, h.Name)
	}
	return problem(http.StatusNotFound, api.CodeNotFound,
		"there is no host %q in the cluster; the hosts are %s", name, orNone(names))
}
