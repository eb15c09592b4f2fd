package admin

import (
	"cmp"
	"net/http"
	"net/netip"

	"berth/internal/admin/api"
	"berth/internal/ipam"
)

// planRoutes lists the operations of the plan: networks, and what is in them. All that changes it is an edit.
func (s *Server) planRoutes() []route {
	const network = "/v1/networks/{network}"
	return []route{
		{http.MethodPost, api.EditsPath, s.edits, false},

		{http.MethodGet, "/v1/networks", s.networks, true},
		{http.MethodGet, network, s.network, true},
		{http.MethodGet, network + "/subnets", s.networkSubnets, true},
		{http.MethodGet, network + "/pools", s.pools, true},
		{http.MethodGet, network + "/exclusions", s.exclusions, true},
		{http.MethodGet, network + "/reservations", s.reservations, true},
		{http.MethodGet, network + "/addresses", s.addresses, true},
		{http.MethodGet, network + "/env/{owner}", s.environment, true},
		{http.MethodGet, network + "/free", s.free, true},
		{http.MethodGet, network + "/free/next", s.nextFree, true},
		{http.MethodPost, network + "/scan", s.scan, false},
		{http.MethodGet, "/v1/reservations", s.reservations, true},
		{http.MethodGet, "/v1/addresses", s.addresses, true},

		{http.MethodGet, "/v1/subnets/{id}", s.subnet, true},
		{http.MethodGet, "/v1/subnets/{id}/available-ips", s.available, true},
		{http.MethodPost, "/v1/subnets/{id}/available-ips", s.takeNext, false},
	}
}

func (s *Server) networks(w http.ResponseWriter, r *http.Request) error {
	q, err := query(r, "space", "limit", "after")
	if err != nil {
		return err
	}
	p, err := pageOf(r, q, 1)
	if err != nil {
		return err
	}
	f := ipam.NetworkFilter{Space: q.Get("space"), Limit: p.limit + 1}
	if err := s.knowsSpace(r, f.Space); err != nil {
		return err
	}
	if p.after != nil {
		f.After = p.after[0]
	}
	all, err := s.cfg.Service.Networks(r.Context(), f)
	if err != nil {
		return err
	}
	var list api.NetworkList
	list.Networks, list.Next, err = take(p, yes(all),
		func(n *ipam.NetworkInfo) string { return cursor(cmp.Or(n.Recorded, n.Name)) })
	if err != nil {
		return err
	}
	link(w, r, list.Next)
	return reply(w, list)
}

func (s *Server) network(w http.ResponseWriter, r *http.Request) error {
	if _, err := query(r); err != nil {
		return err
	}
	n, err := s.shownNetwork(r.Context(), r.PathValue("network"))
	if err != nil {
		return err
	}
	return replyShown(w, r, n.Revision, n)
}

// parted reads the page that is wanted of a part of a network, by address, and the network.
func (s *Server) parted(r *http.Request) (p page, after netip.Addr, n ipam.NetworkInfo, err error) {
	q, err := query(r, "limit", "after")
	if err != nil {
		return p, after, n, err
	}
	if p, err = pageOf(r, q, 1); err != nil {
		return p, after, n, err
	}
	if after, err = p.addrOf(); err != nil {
		return p, after, n, err
	}
	n, err = s.cfg.Service.Network(r.Context(), r.PathValue("network"))
	return p, after, n, err
}

func (s *Server) networkSubnets(w http.ResponseWriter, r *http.Request) error {
	p, after, n, err := s.parted(r)
	if err != nil {
		return err
	}
	var list api.SubnetPlanList
	first := func(sub *ipam.SubnetPlan) netip.Addr { return sub.CIDR.Addr() }
	list.Subnets, list.Next, err = take(p, behind(n.Subnets, after, first),
		func(sub *ipam.SubnetPlan) string { return cursor(first(sub).String()) })
	if err != nil {
		return err
	}
	link(w, r, list.Next)
	return replyShown(w, r, n.Revision, list)
}

func (s *Server) pools(w http.ResponseWriter, r *http.Request) error {
	p, after, n, err := s.parted(r)
	if err != nil {
		return err
	}
	var all []api.PoolEntry
	for _, sub := range n.Subnets {
		for _, pool := range sub.Pools {
			all = append(all, api.PoolEntry{Subnet: sub.CIDR, PoolPlan: pool})
		}
	}
	var list api.PoolList
	first := func(e *api.PoolEntry) netip.Addr { return e.Start }
	list.Pools, list.Next, err = take(p, behind(all, after, first), func(e *api.PoolEntry) string {
		return cursor(first(e).String())
	})
	if err != nil {
		return err
	}
	link(w, r, list.Next)
	return replyShown(w, r, n.Revision, list)
}

func (s *Server) exclusions(w http.ResponseWriter, r *http.Request) error {
	p, after, n, err := s.parted(r)
	if err != nil {
		return err
	}
	var all []api.ExclusionEntry
	for _, sub := range n.Subnets {
		for _, x := range sub.Exclusions {
			all = append(all, api.ExclusionEntry{Subnet: sub.CIDR, ExclusionPlan: x})
		}
	}
	var list api.ExclusionList
	first := func(e *api.ExclusionEntry) netip.Addr { return e.Start }
	list.Exclusions, list.Next, err = take(p, behind(all, after, first), func(e *api.ExclusionEntry) string {
		return cursor(first(e).String())
	})
	if err != nil {
		return err
	}
	link(w, r, list.Next)
	return replyShown(w, r, n.Revision, list)
}

// filtered reads which addresses are wanted, of the network of the path or of all, and the revision of that network.
func (s *Server) filtered(r *http.Request) (p page, f ipam.AddressFilter, revision uint64, err error) {
	q, err := query(r, "owner", "limit", "after")
	if err != nil {
		return p, f, 0, err
	}
	if p, err = pageOf(r, q, 2); err != nil {
		return p, f, 0, err
	}
	f = ipam.AddressFilter{Network: r.PathValue("network"), Owner: q.Get("owner"), Limit: p.limit + 1}
	if f.AfterNetwork, f.AfterOwner = p.ownerOf(); f.AfterNetwork == "" {
		f.AfterSpace, f.After, err = p.placeOf()
	}
	if err != nil {
		return p, f, 0, err
	}
	if f.Network == "" {
		return p, f, 0, nil
	}
	revision, err = s.cfg.Service.Revision(r.Context(), f.Network)
	return p, f, revision, err
}

func (s *Server) reservations(w http.ResponseWriter, r *http.Request) error {
	p, f, revision, err := s.filtered(r)
	if err != nil {
		return err
	}
	var list api.ReservationList
	list.Reservations, list.Next, err = take(p, s.cfg.Service.Reservations(r.Context(), f),
		func(i *ipam.ReservationInfo) string {
			if i.Dynamic {
				return ownerCursor(i.Network, i.Owner)
			}
			return cursor(i.Space, i.Address.String())
		})
	if err != nil {
		return err
	}
	return replyAddresses(w, r, f, revision, list.Next, list)
}

func (s *Server) addresses(w http.ResponseWriter, r *http.Request) error {
	p, f, revision, err := s.filtered(r)
	if err == nil && f.AfterNetwork != "" {
		err = notNext()
	}
	if err != nil {
		return err
	}
	var list api.AddressList
	list.Addresses, list.Next, err = take(p, s.cfg.Service.Taken(r.Context(), f),
		func(i *ipam.TakenAddress) string { return cursor(i.Space, i.Address.String()) })
	if err != nil {
		return err
	}
	return replyAddresses(w, r, f, revision, list.Next, list)
}

// replyAddresses answers with a list of all networks, or of one, which has a tag.
func replyAddresses(w http.ResponseWriter, r *http.Request, f ipam.AddressFilter, revision uint64, next string,
	list any) error {
	link(w, r, next)
	if f.Network == "" {
		return reply(w, list)
	}
	return replyShown(w, r, revision, list)
}

func (s *Server) environment(w http.ResponseWriter, r *http.Request) error {
	if _, err := query(r); err != nil {
		return err
	}
	all, err := s.cfg.Service.Environment(r.Context(), r.PathValue("network"), r.PathValue("owner"))
	if err != nil {
		return err
	}
	return reply(w, api.VariableList{Variables: append([]string{}, all...)})
}
