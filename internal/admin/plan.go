package admin

import (
	"net/http"
	"net/netip"
	"net/url"

	"berth/internal/ipam"
)

// planRoutes lists the operations of the plan: networks, and what is in them.
func (s *Server) planRoutes() []route {
	const network = "/v1/networks/{network}"
	return []route{
		{http.MethodGet, "/v1/networks", s.networks, true},
		{http.MethodPost, "/v1/networks", post(s, func(*http.Request, *ipam.CreateNetwork) error { return nil }), false},
		{http.MethodGet, network, s.network, true},
		{http.MethodPatch, network, patch(s, func(r *http.Request, e *ipam.ModifyNetwork) error { return inNetwork(r, &e.Network) }), false},
		{http.MethodDelete, network, bare(s, removeNetwork, "force"), false},

		{http.MethodGet, network + "/subnets", s.networkSubnets, true},
		{http.MethodPost, network + "/subnets", post(s, func(r *http.Request, e *ipam.AddSubnet) error { return inNetwork(r, &e.Network) }), false},
		{http.MethodPatch, network + "/subnets/{subnet}", patch(s, modifySubnet), false},
		{http.MethodDelete, network + "/subnets/{subnet}", bare(s, removeSubnet), false},

		{http.MethodGet, network + "/pools", s.pools, true},
		{http.MethodPost, network + "/pools", post(s, func(r *http.Request, e *ipam.AddPool) error { return inNetwork(r, &e.Network) }), false},
		{http.MethodPatch, network + "/pools/{pool}", patch(s, modifyPool), false},
		{http.MethodDelete, network + "/pools/{pool}", bare(s, removePool), false},

		{http.MethodGet, network + "/exclusions", s.exclusions, true},
		{http.MethodPost, network + "/exclusions", post(s, func(r *http.Request, e *ipam.AddExclusion) error { return inNetwork(r, &e.Network) }), false},
		{http.MethodDelete, network + "/exclusions/{range}", bare(s, removeExclusion), false},

		{http.MethodGet, "/v1/reservations", s.reservations, true},
		{http.MethodGet, network + "/reservations", s.reservations, true},
		{http.MethodPost, network + "/reservations", post(s, func(r *http.Request, e *ipam.AddReservation) error { return inNetwork(r, &e.Network) }), false},
		{http.MethodDelete, network + "/reservations/{owner}", bare(s, removeReservation, "address"), false},

		{http.MethodDelete, "/v1/owners/{owner}", bare(s, releaseOwner, "under", "replaced"), false},

		{http.MethodGet, "/v1/addresses", s.addresses, true},
		{http.MethodGet, network + "/addresses", s.addresses, true},
		{http.MethodPost, network + "/addresses", post(s, func(r *http.Request, e *ipam.TakeAddress) error { return inNetwork(r, &e.Network) }), false},
		{http.MethodDelete, network + "/addresses/{owner}", bare(s, releaseAddress, "address"), false},

		{http.MethodGet, network + "/env/{owner}", s.environment, true},
		{http.MethodGet, "/v1/subnets/{id}", s.subnet, true},
		{http.MethodGet, "/v1/subnets/{id}/available-ips", s.available, true},
		{http.MethodPost, "/v1/subnets/{id}/available-ips", s.takeNext, false},
		{http.MethodPost, "/v1/edits", s.edits, false},
	}
}

func inNetwork(r *http.Request, field *string) error { return inPath(r, "network", field) }

func removeNetwork(r *http.Request, q url.Values) (ipam.Edit, error) {
	force, err := boolOf(q, "force")
	return &ipam.RemoveNetwork{Network: r.PathValue("network"), Force: force}, err
}

func modifySubnet(r *http.Request, e *ipam.ModifySubnet) error {
	if err := inPath(r, "subnet", &e.Subnet); err != nil {
		return err
	}
	return inNetwork(r, &e.Network)
}

func removeSubnet(r *http.Request, _ url.Values) (ipam.Edit, error) {
	return &ipam.RemoveSubnet{Network: r.PathValue("network"), Subnet: r.PathValue("subnet")}, nil
}

func modifyPool(r *http.Request, e *ipam.ModifyPool) error {
	if err := inPath(r, "pool", &e.Pool); err != nil {
		return err
	}
	return inNetwork(r, &e.Network)
}

func removePool(r *http.Request, _ url.Values) (ipam.Edit, error) {
	return &ipam.RemovePool{Network: r.PathValue("network"), Pool: r.PathValue("pool")}, nil
}

func removeExclusion(r *http.Request, _ url.Values) (ipam.Edit, error) {
	e := &ipam.RemoveExclusion{Network: r.PathValue("network")}
	return e, e.Range.UnmarshalText([]byte(r.PathValue("range")))
}

func removeReservation(r *http.Request, q url.Values) (ipam.Edit, error) {
	addr, err := addressOf(q)
	return &ipam.RemoveReservation{Network: r.PathValue("network"), Owner: r.PathValue("owner"), Address: addr}, err
}

func releaseOwner(r *http.Request, q url.Values) (ipam.Edit, error) {
	under, err := boolOf(q, "under")
	if err != nil {
		return nil, err
	}
	replaced, err := boolOf(q, "replaced")
	return &ipam.ReleaseOwner{Owner: r.PathValue("owner"), Under: under, Replaced: replaced}, err
}

func releaseAddress(r *http.Request, q url.Values) (ipam.Edit, error) {
	addr, err := addressOf(q)
	return &ipam.ReleaseAddress{Network: r.PathValue("network"), Owner: r.PathValue("owner"), Address: addr}, err
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
	var list NetworkList
	list.Networks, list.Next, err = take(p, yes(all), func(n *ipam.NetworkInfo) string { return cursor(n.Name) })
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
	n, err := s.cfg.Service.Network(r.Context(), r.PathValue("network"))
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
	var list SubnetPlanList
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
	var all []PoolEntry
	for _, sub := range n.Subnets {
		for _, pool := range sub.Pools {
			all = append(all, PoolEntry{sub.CIDR, pool})
		}
	}
	var list PoolList
	first := func(e *PoolEntry) netip.Addr { return e.Start }
	list.Pools, list.Next, err = take(p, behind(all, after, first), func(e *PoolEntry) string { return cursor(first(e).String()) })
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
	var all []ExclusionEntry
	for _, sub := range n.Subnets {
		for _, x := range sub.Exclusions {
			all = append(all, ExclusionEntry{sub.CIDR, x})
		}
	}
	var list ExclusionList
	first := func(e *ExclusionEntry) netip.Addr { return e.Start }
	list.Exclusions, list.Next, err = take(p, behind(all, after, first), func(e *ExclusionEntry) string { return cursor(first(e).String()) })
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
	if err != nil || f.Network == "" {
		return p, f, 0, err
	}
	revision, err = s.cfg.Service.Revision(r.Context(), f.Network)
	return p, f, revision, err
}

func (s *Server) reservations(w http.ResponseWriter, r *http.Request) error {
	p, f, revision, err := s.filtered(r)
	if err != nil {
		return err
	}
	var list ReservationList
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
	var list AddressList
	list.Addresses, list.Next, err = take(p, s.cfg.Service.Taken(r.Context(), f),
		func(i *ipam.TakenAddress) string { return cursor(i.Space, i.Address.String()) })
	if err != nil {
		return err
	}
	return replyAddresses(w, r, f, revision, list.Next, list)
}

// replyAddresses answers with a list of all networks, or of one, which has a tag.
func replyAddresses(w http.ResponseWriter, r *http.Request, f ipam.AddressFilter, revision uint64, next string, list any) error {
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
	return reply(w, VariableList{append([]string{}, all...)})
}
