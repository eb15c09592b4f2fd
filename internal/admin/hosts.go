package admin

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"berth/internal/ipam"
)

// HostList is the answer of GET /v1/hosts.
type HostList struct {
	Hosts []ipam.HostInfo `json:"hosts"`
}

const (
	hostsPath = "/v1/hosts"
	hostPath  = hostsPath + "/{name}"
)

// hostRoutes lists the operations of the hosts that share a store.
func (s *Server) hostRoutes() []route {
	return []route{
		{http.MethodGet, hostsPath, s.hosts, true},
		{http.MethodGet, hostPath, s.host, true},
		{http.MethodDelete, hostPath, bare(s, removeHost, "off"), false},
		{http.MethodPost, hostPath + "/drain", patch(s, func(r *http.Request, e *ipam.DrainHost) error { return inPath(r, "name", &e.Name) }), false},
		{http.MethodPost, hostPath + "/admit", bare(s, admitHost), false},
	}
}

func removeHost(r *http.Request, q url.Values) (ipam.Edit, error) {
	off, err := boolOf(q, "off")
	return &ipam.RemoveHost{Name: r.PathValue("name"), Off: off}, err
}

func admitHost(r *http.Request, _ url.Values) (ipam.Edit, error) {
	return &ipam.AdmitHost{Name: r.PathValue("name")}, nil
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

func noSuchHost(name string, all []ipam.HostInfo) *Problem {
	var names []string
	for _, h := range all {
		names = append(names, h.Name)
	}
	return &Problem{Status: http.StatusNotFound, Code: CodeNotFound,
		Detail: fmt.Sprintf("there is no host %q in the cluster; there are %s", name, orNone(names))}
}

// Hosts lists the hosts that share the server's store.
func (c *Client) Hosts(ctx context.Context) ([]ipam.HostInfo, error) {
	var list HostList
	err := c.call(ctx, http.MethodGet, hostsPath, nil, nil, &list)
	return list.Hosts, err
}

// Host shows one of them.
func (c *Client) Host(ctx context.Context, name string) (h ipam.HostInfo, err error) {
	return h, c.call(ctx, http.MethodGet, strings.Replace(hostPath, "{name}", url.PathEscape(name), 1), nil, nil, &h)
}
