package admin

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/netip"
	"slices"
	"time"

	"berth/internal/admin/api"
	"berth/internal/ipam"

	"github.com/go-json-experiment/json/jsontext"
	"go4.org/netipx"
)

// maxTake is the maximum number of addresses that one request takes. They are the slots of an interface.
const maxTake = 64

func (s *Server) subnet(ctx context.Context, req api.OfSubnet) (ipam.SubnetInfo, uint64, error) {
	return s.cfg.Service.Subnet(ctx, req.ID)
}

// available lists the addresses that an automatic request in a subnet could get.
func (s *Server) available(ctx context.Context, req api.AvailableRequest) (api.AvailableList, error) {
	all, err := s.cfg.Service.Available(ctx, req.ID, req.Limit)
	return api.AvailableList{Addresses: all}, err
}

// free lists the addresses of a network that anybody could get, as ranges.
func (s *Server) free(ctx context.Context, req api.FreeRequest) (list api.FreeList, err error) {
	network, err := s.freeNetwork(ctx, req.Network)
	if err != nil {
		return list, err
	}
	f := req.FreeFilter
	if f.After, err = addressAt(req.Cursor); err != nil {
		return list, err
	}
	f.Limit = req.Most + 1
	all, err := s.cfg.Service.Free(ctx, network, f)
	if err != nil {
		return list, err
	}
	list.Free, list.Next, err = take(req.Most, yes(all), func(f *ipam.FreeRange) string {
		return cursor(f.End.String())
	})
	return list, err
}

// nextFree returns the addresses that an unknown endpoint would get.
func (s *Server) nextFree(ctx context.Context, req api.NextFreeRequest) (list api.NextFreeList, err error) {
	network, err := s.freeNetwork(ctx, req.Network)
	if err != nil {
		return list, err
	}
	list.Free, err = s.cfg.Service.NextFree(ctx, network, req.FreeFilter)
	return list, err
}

// freeNetwork returns the network for a request of free addresses. It may be named by its Docker network.
func (s *Server) freeNetwork(ctx context.Context, name string) (string, error) {
	_, err := s.cfg.Service.Revision(ctx, name)
	if errors.Is(err, ipam.ErrNotFound) {
		n, err := s.shownNetwork(ctx, name)
		return n.ID.String(), err
	}
	return name, err
}

// takeNext takes the next addresses of a subnet, each time for another interface of the owner.
func (s *Server) takeNext(w http.ResponseWriter, r *http.Request, req api.TakeRequest) error {
	network, err := s.cfg.Service.NetworkOf(req.ID)
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
		var t api.Taking
		if err := decode(text, &t); err != nil {
			return nil, err
		}
		return takeEdit(&t, network, req.ID)
	})
	if err != nil {
		return err
	}
	return s.edit(w, r, ipam.EditOptions{DryRun: req.DryRun}, body, edits)
}

// takeEdit returns the edit that takes addresses.
func takeEdit(t *api.Taking, network, subnet ipam.ID) (ipam.Edit, error) {
	count := 1
	if t.Count != nil {
		count = *t.Count
	}
	if count < 1 || count > maxTake {
		return nil, invalid(`the field "count" is %d; give a number from 1 to %d, the slots of an interface`,
			count, maxTake)
	}
	wishes := make([]ipam.Wish, count)
	for i := range wishes {
		wishes[i] = ipam.Wish{Slot: i, Pool: t.Pool}
	}
	return &ipam.TakeAddress{Network: network.String(), Subnet: subnet.String(), Owner: t.Owner,
		Interface: ipam.Interface{Number: -1, Action: ipam.AddInterface, Wishes: wishes}}, nil
}

// scanWithin is the time that an edge has for one question of a scan.
const scanWithin = 20 * time.Second

// scan asks the edge of this host who answers for a network's addresses on its LAN.
func (s *Server) scan(ctx context.Context, req api.ScanRequest) (scan api.LANScan, err error) {
	n, err := s.shownNetwork(ctx, req.Network)
	if err != nil {
		return scan, err
	}
	parent := cmp.Or(req.Parent, ipam.LANTerms{DHCPParent: n.Probe}.ParentOn(s.cfg.Host))
	switch {
	case parent == "" && n.Probe != "":
		return scan, invalid("the setting probe of network %s is %s, which names no interface of host %s: name the "+
			"host's interface to the LAN (parent)", n.Name, n.Probe, s.cfg.Host)
	case parent == "":
		return scan, invalid("network %s has no interface for probes: name the host's interface to the LAN (parent)",
			n.Name)
	}
	scan = api.LANScan{Network: n.Name, NetworkID: n.ID, Parent: parent, Skipped: []netip.Prefix{},
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
			if err := s.scanPart(ctx, &scan, sub.ID, part); err != nil {
				return scan, err
			}
		}
	}
	return scan, nil
}

// scanned returns the host addresses of a subnet; ok is false if there are more than most.
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

// scanPart probes addresses of a subnet and adds those that answer.
func (s *Server) scanPart(ctx context.Context, scan *api.LANScan, subnet ipam.ID, addrs []netip.Addr) error {
	a, err := s.cfg.LAN.Ask(ctx, ipam.LANAsk{Verb: ipam.LANProbe, Parent: scan.Parent, IPv6: addrs[0].Is6(),
		Addresses: addrs, Within: ipam.Duration(scanWithin)})
	if err != nil {
		return err
	}
	if a.Failure != "" {
		return problem(http.StatusServiceUnavailable, api.CodeUnavailable, "%s", a.Error)
	}
	for _, other := range a.Answered {
		if !slices.Contains(addrs, other.Address) {
			continue // an edge of another version
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

// holderOf returns the holder of an address, or else its owner.
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
