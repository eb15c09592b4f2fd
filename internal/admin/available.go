package admin

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"time"

	"berth/internal/admin/api"
	"berth/internal/ipam"

	"github.com/go-json-experiment/json/jsontext"
	"go4.org/netipx"
)

// The bounds of what is listed of the free addresses of a subnet, and of how many one request takes.
const (
	defaultAvailable = 50
	maxTake          = 64 // the slots of an interface
)

func (s *Server) subnet(w http.ResponseWriter, r *http.Request) error {
	if _, err := query(r); err != nil {
		return err
	}
	id, err := ipam.ParseID(r.PathValue("id"))
	if err != nil {
		return err
	}
	sub, revision, err := s.cfg.Service.Subnet(r.Context(), id)
	if err != nil {
		return err
	}
	return replyShown(w, r, revision, sub)
}

// available lists what an automatic request in a subnet could be given.
func (s *Server) available(w http.ResponseWriter, r *http.Request) error {
	q, err := query(r, "limit")
	if err != nil {
		return err
	}
	id, err := ipam.ParseID(r.PathValue("id"))
	if err != nil {
		return err
	}
	p, err := pageOf(r, q, 0)
	if err != nil {
		return err
	}
	if !p.given {
		p.limit = defaultAvailable
	}
	all, err := s.cfg.Service.Available(r.Context(), id, p.limit)
	if err != nil {
		return err
	}
	return replyList(w, "addresses", all)
}

// free lists what could be given to anybody of a network, as ranges.
func (s *Server) free(w http.ResponseWriter, r *http.Request) error {
	q, err := query(r, "subnet", "pool", "limit", "after")
	if err != nil {
		return err
	}
	p, err := pageOf(r, q, 1)
	if err != nil {
		return err
	}
	network, f, err := s.freeFilter(r, q)
	if err != nil {
		return err
	}
	if f.After, err = p.addrOf(); err != nil {
		return err
	}
	f.Limit = p.limit + 1
	all, err := s.cfg.Service.Free(r.Context(), network, f)
	if err != nil {
		return err
	}
	var list api.FreeList
	list.Free, list.Next, err = take(p, yes(all), func(f *ipam.FreeRange) string { return cursor(f.End.String()) })
	if err != nil {
		return err
	}
	link(w, r, list.Next)
	return reply(w, list)
}

// nextFree tells what an endpoint that nobody knows would be given.
func (s *Server) nextFree(w http.ResponseWriter, r *http.Request) error {
	q, err := query(r, "subnet", "pool")
	if err != nil {
		return err
	}
	network, f, err := s.freeFilter(r, q)
	if err != nil {
		return err
	}
	all, err := s.cfg.Service.NextFree(r.Context(), network, f)
	if err != nil {
		return err
	}
	return replyList(w, "free", all)
}

// freeFilter reads which free addresses are asked for. The network may be one that Docker calls so.
func (s *Server) freeFilter(r *http.Request, q url.Values) (network string, f ipam.FreeFilter, err error) {
	f.Pool = q.Get("pool")
	if text := q.Get("subnet"); text != "" {
		if f.Subnet, err = netip.ParsePrefix(text); err != nil {
			return "", f, invalid("the subnet %q is not a prefix such as 10.1.0.0/24", text)
		}
		f.Subnet = f.Subnet.Masked()
	}
	network = r.PathValue("network")
	if _, err = s.cfg.Service.Revision(r.Context(), network); errors.Is(err, ipam.ErrNotFound) {
		n, err := s.shownNetwork(r.Context(), network)
		return n.ID.String(), f, err
	}
	return network, f, err
}

// taking is what is wanted of a subnet: the next address, or the next few.
type taking struct {
	Owner string `json:"owner"`
	Count *int   `json:"count"` // nil: 1
	Pool  string `json:"pool"`  // out of the pools of this name; "": any
}

// takeNext takes the next addresses of a subnet, for another interface of the owner each time.
func (s *Server) takeNext(w http.ResponseWriter, r *http.Request) error {
	id, err := ipam.ParseID(r.PathValue("id"))
	if err != nil {
		return err
	}
	network, err := s.cfg.Service.NetworkOf(id)
	if err != nil {
		return err
	}
	dry, err := dryRun(r)
	if err != nil {
		return err
	}
	body, err := readBody(r)
	if err != nil {
		return err
	}
	texts, err := items(body)
	if err != nil {
		return err
	}
	edits, err := readEdits(texts, func(text jsontext.Value) (ipam.Edit, error) {
		var t taking
		if err := decode(text, &t); err != nil {
			return nil, err
		}
		return t.edit(network, id)
	})
	if err != nil {
		return err
	}
	return s.edit(w, r, ipam.EditOptions{DryRun: dry}, body, edits)
}

func (t *taking) edit(network, subnet ipam.ID) (ipam.Edit, error) {
	count := 1
	if t.Count != nil {
		count = *t.Count
	}
	if count < 1 || count > maxTake {
		return nil, invalid(`the field "count" is %d; one request takes 1 to %d addresses, the slots of an interface`,
			count, maxTake)
	}
	wishes := make([]ipam.Wish, count)
	for i := range wishes {
		wishes[i] = ipam.Wish{Slot: i, Pool: t.Pool}
	}
	return &ipam.TakeAddress{Network: network.String(), Subnet: subnet.String(), Owner: t.Owner,
		Interface: ipam.Interface{Number: -1, Action: ipam.AddInterface, Wishes: wishes}}, nil
}

// scanWithin is how long an edge has for one question of a scan.
const scanWithin = 20 * time.Second

// scan has the edge of this host ask on a network's LAN who has its addresses.
func (s *Server) scan(w http.ResponseWriter, r *http.Request) error {
	q, err := query(r, "parent")
	if err != nil {
		return err
	}
	n, err := s.shownNetwork(r.Context(), r.PathValue("network"))
	if err != nil {
		return err
	}
	parent := cmp.Or(q.Get("parent"), ipam.LANTerms{DHCPParent: n.Probe}.ParentOn(s.cfg.Host))
	switch {
	case parent == "" && n.Probe != "":
		return invalid("network %s is probed by %s, of which none is an interface of host %s: name the one that leads to "+
			"its LAN (parent)", n.Name, n.Probe, s.cfg.Host)
	case parent == "":
		return invalid("network %s has no interface to be probed by: name the one that leads to its LAN (parent)", n.Name)
	}
	if _, err := untimed(w); err != nil {
		return err
	}
	scan := api.LANScan{Network: n.Name, NetworkID: n.ID, Parent: parent, Skipped: []netip.Prefix{},
		Answered: []api.LANPresence{}}
	for i := range n.Subnets {
		sub := &n.Subnets[i]
		addrs, ok := scanned(sub.CIDR, api.MaxScan-scan.Asked)
		if !ok {
			scan.Skipped = append(scan.Skipped, sub.CIDR)
			continue
		}
		scan.Asked += len(addrs)
		for part := range slices.Chunk(addrs, ipam.MaxProbe) {
			if err := s.scanPart(r.Context(), &scan, sub.ID, part); err != nil {
				return err
			}
		}
	}
	return reply(w, scan)
}

// scanned are the addresses of a subnet that a machine can have, where they are not more than so many.
func scanned(cidr netip.Prefix, most int) (all []netip.Addr, ok bool) {
	if cidr.Addr().BitLen()-cidr.Bits() > 12 {
		return nil, false
	}
	whole := netipx.RangeOfPrefix(cidr)
	for addr := whole.From(); whole.Contains(addr); addr = addr.Next() {
		all = append(all, addr)
	}
	if cidr.Addr().Is4() && len(all) > 2 { // network and broadcast; RFC 3021 has none
		all = all[1 : len(all)-1]
	}
	return all, len(all) <= most
}

// scanPart asks for some addresses of a subnet, and adds who answered.
func (s *Server) scanPart(ctx context.Context, scan *api.LANScan, subnet ipam.ID, addrs []netip.Addr) error {
	a, err := s.cfg.LAN.Ask(ctx, ipam.LANAsk{Verb: ipam.LANProbe, Parent: scan.Parent, IPv6: addrs[0].Is6(),
		Addresses: addrs, Within: ipam.Duration(scanWithin)})
	if err != nil {
		return err
	}
	if a.Failure != "" {
		return &api.Problem{Status: http.StatusServiceUnavailable, Code: api.CodeUnavailable, Detail: a.Error}
	}
	for _, other := range a.Answered {
		if !slices.Contains(addrs, other.Address) {
			continue // an edge of another make
		}
		one := api.LANPresence{LANNeighbour: other}
		layout, err := s.cfg.Service.Layout(ctx, subnet,
			ipam.LayoutFilter{Within: netip.PrefixFrom(other.Address, other.Address.BitLen())})
		if err != nil {
			return err
		}
		if len(layout.Rows) > 0 {
			row := &layout.Rows[0]
			one.State, one.Note, one.Holder = row.State, row.Note, holderOf(row)
		}
		scan.Answered = append(scan.Answered, one)
	}
	return nil
}

// holderOf is who has an address, else whose it is.
func holderOf(row *ipam.LayoutRow) string {
	switch {
	case row.State == ipam.AddressLeased && row.Lease != nil:
		l := row.Lease
		if l.Name == "" && l.Owner == "" && l.MAC != (ipam.MAC{}) {
			return l.MAC.String()
		}
		return cmp.Or(l.Name, l.Owner, l.Kind.String())
	case row.Reservation != nil:
		return row.Reservation.Owner
	}
	return ""
}
