package ipamtest

import (
	"cmp"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"berth/internal/ipam"
)

// docker runs a step that is a request of Docker.
func (r *Stage) docker(verb string, words []string) (string, error) {
	r.T.Helper()
	name, asked := words[0], r.Asked
	if asked == nil {
		asked = r.S
	}
	args, opt := options(words[1:], "six", "pool", "ip", "telling", "swarm")
	id, known := r.Pools[name]
	switch verb {
	case "attach":
		return r.attach(asked, name, opt)
	case "detach":
		return "", asked.ReleasePool(ctx, id)
	}
	if !known {
		r.T.Fatalf("no pool is called %s", name)
	}
	if verb == "back" {
		return "", asked.ReleaseAddress(ctx, id, r.Addr(args[0]))
	}
	req := ipam.AddressRequest{Pool: id, Preferred: r.Addr(opt["ip"]), Gateway: verb == "gateway"}
	_, req.Telling = opt["telling"]
	if len(args) > 0 {
		req.Name = args[0]
	}
	if text, ok := opt["mac"]; ok {
		n, err := strconv.Atoi(text)
		if req.MAC = MAC(n); err != nil {
			req.MAC, err = ipam.ParseMAC(text)
		}
		fine(r.T, err)
	}
	if verb == "has" {
		return r.has(req), nil
	}
	got, err := asked.RequestAddress(ctx, req)
	if err != nil {
		return "", err
	}
	return got.Addr().String(), nil
}

// has returns the addresses of the endpoint with this request.
func (r *Stage) has(req ipam.AddressRequest) string {
	var all []netip.Addr
	for _, l := range ListLeases(r.T, r.S, ipam.LeaseFilter{}) {
		this := !req.Preferred.IsValid() || l.Address == req.Preferred
		if l.Pool == req.Pool && l.MAC == req.MAC && l.Name == req.Name && this {
			all = append(all, l.Address)
		}
	}
	return Joined(all)
}

func (r *Stage) attach(asked Engine, name string, opt map[string]string) (string, error) {
	r.T.Helper()
	req := ipam.PoolRequest{Space: strings.TrimPrefix(cmp.Or(opt["space"], "local"), "-"), Network: opt["net"],
		Pool: opt["pool"], Gateway: r.Addr(opt["gw"])}
	_, req.IPv6 = opt["six"]
	_, req.Swarm = opt["swarm"]
	if text, ok := opt["cidr"]; ok {
		req.CIDR = netip.MustParsePrefix(text)
	}
	if text, ok := opt["range"]; ok {
		req.Range = r.Ranged(text)
	}
	grant, err := asked.RequestPool(ctx, req)
	if err != nil {
		return "", err
	}
	if slices.Contains(poolIDs(r.Pools), grant.ID) {
		r.T.Fatalf("two attachments have the id %s", grant.ID)
	}
	r.Pools[name] = grant.ID
	text := grant.CIDR.String()
	if grant.Gateway.IsValid() {
		text += " " + grant.Gateway.Addr().String()
	}
	return text, nil
}

func poolIDs(pools map[string]ipam.ID) (ids []ipam.ID) {
	for _, id := range pools {
		ids = append(ids, id)
	}
	return ids
}
