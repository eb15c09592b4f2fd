package page

import (
	"errors"
	"net/http"

	"berth/internal/ipam"
)

// hosts shows the hosts that share a store.
func (p *Page) hosts(r *http.Request) (*shown, error) {
	if _, err := query(r); err != nil {
		return nil, err
	}
	s := &shown{Title: "Hosts", File: "hosts", Here: "hosts"}
	all, err := p.cfg.Service.Hosts(r.Context())
	if errors.Is(err, ipam.ErrAlone) {
		s.note("This host is not in a cluster. Hosts share a store if each daemon runs with --store etcd.")
		all, err = nil, nil
	}
	if err != nil {
		return nil, err
	}
	t := s.table(&table{Name: "hosts", Title: "Hosts", None: "No other host is known.", Columns: columns("name", "Host",
		"present", "Its daemon is there", "state", "State", "self", "-This one", "pools", "#Docker networks", "leases",
		"#Leases", "headroom", "-#Headroom", "version", "-Version", "started", "-Started", "joined", "-Joined", "id", "-Id")})
	for i := range all {
		h := &all[i]
		p.add(t, h.Name, h.Present, string(h.State), h.Self, h.Pools, h.Leases,
			h.Headroom, h.Version, h.Started, h.Joined, h.ID)
	}
	return s, nil
}
