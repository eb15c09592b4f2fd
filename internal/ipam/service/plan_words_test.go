package service_test

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"berth/internal/ipam"
)

// parseEdit reads a step that is an edit; nil where it is none.
//
//	network NET [space=S] [mac=P] [sticky=off] [quarantine=D] [tag.K=V] [subnet=CIDR,gw=A,name=N,dhcp,pool]
//	network.set NET [name=] [mac=] [sticky=] [quarantine=] [tag.K=V] [untag=K] [link=HOST,MODE,LINK]; network.rm NET [force]
//	subnet NET CIDR [gw=] [name=] [dhcp] [pool]; subnet NET /BITS from=CIDR ...
//	subnet.set NET SUBNET [cidr=] [gw=A|none] [name=] [dhcp=]; subnet.rm NET SUBNET
//	pool NET RANGE|- [name=] [subnet=]; pool.set NET POOL NAME|-; pool.rm NET POOL
//	exclude NET RANGE [note=]; include NET RANGE
//	reserve NET OWNER [WISH,...] [force]; unreserve NET OWNER [ADDRESS]
//	take NET OWNER INTERFACE [subnet=] [force]; release NET OWNER [ADDRESS]
func (r *room) parseEdit(verb string, words []string) ipam.Edit {
	r.t.Helper()
	flags := []string{"force"}
	if verb == "subnet" {
		flags = []string{"dhcp", "pool"}
	}
	args, opt := options(words, flags...)
	_, force := opt["force"]
	at := func(i int) string {
		if i < len(args) {
			return args[i]
		}
		return ""
	}
	switch verb {
	case "network":
		return r.createNetwork(args[0], opt)
	case "network.set":
		return r.modifyNetwork(args[0], opt)
	case "network.rm":
		return &ipam.RemoveNetwork{Network: args[0], Force: force}
	case "subnet":
		return &ipam.AddSubnet{Network: args[0], SubnetSpec: r.subnetSpec(args[1], opt)}
	case "subnet.set":
		return r.modifySubnet(args[0], args[1], opt)
	case "subnet.rm":
		return &ipam.RemoveSubnet{Network: args[0], Subnet: r.subnetID(args[0], args[1])}
	case "pool":
		e := &ipam.AddPool{Network: args[0], Subnet: opt["subnet"], Name: opt["name"]}
		if at(1) != "-" {
			e.Range = r.ranged(at(1))
		}
		return e
	case "pool.set":
		return &ipam.ModifyPool{Network: args[0], Pool: at(1), Name: strings.TrimPrefix(at(2), "-")}
	case "pool.rm":
		return &ipam.RemovePool{Network: args[0], Pool: at(1)}
	case "exclude":
		return &ipam.AddExclusion{Network: args[0], Range: r.ranged(at(1)), Note: opt["note"]}
	case "include":
		return &ipam.RemoveExclusion{Network: args[0], Range: r.ranged(at(1))}
	case "reserve":
		return &ipam.AddReservation{Network: args[0], Owner: at(1), Wishes: r.wishes(at(2)), Force: force}
	case "unreserve":
		return &ipam.RemoveReservation{Network: args[0], Owner: at(1), Address: r.addr(at(2))}
	case "take":
		in, err := ipam.ParseInterface(at(2))
		if err != nil {
			r.t.Fatal(err)
		}
		return &ipam.TakeAddress{Network: args[0], Subnet: opt["subnet"], Owner: at(1), Interface: in, Force: force}
	case "release":
		return &ipam.ReleaseAddress{Network: args[0], Owner: at(1), Address: r.addr(at(2))}
	}
	return nil
}

func (r *room) addr(text string) netip.Addr {
	r.t.Helper()
	if text == "" {
		return netip.Addr{}
	}
	a, err := netip.ParseAddr(text)
	if err != nil {
		r.t.Fatal(err)
	}
	return a
}

func (r *room) ranged(text string) (rng ipam.Range) {
	r.t.Helper()
	if err := rng.UnmarshalText([]byte(text)); err != nil {
		r.t.Fatal(err)
	}
	return rng
}

// subnetID is the id of a subnet that the script calls ID:CIDR; else the text itself.
func (r *room) subnetID(network, ref string) string {
	r.t.Helper()
	cidr, ok := strings.CutPrefix(ref, "ID:")
	if !ok {
		return ref
	}
	for _, sub := range r.show(network).Subnets {
		if sub.CIDR.String() == cidr {
			return sub.ID.String()
		}
	}
	r.t.Fatalf("there is no subnet %s", cidr)
	return ""
}

func (r *room) createNetwork(name string, opt map[string]string) ipam.Edit {
	r.t.Helper()
	e := &ipam.CreateNetwork{Name: name, Space: opt["space"], MACPrefix: opt["mac"], Tags: map[string]string{}}
	for key, value := range opt {
		if tag, ok := strings.CutPrefix(key, "tag."); ok {
			e.Tags[tag] = value
		}
	}
	if link, ok := opt["link"]; ok {
		e.Links = []ipam.Link{parseLink(link)}
	}
	e.Sticky, e.Quarantine = r.policy(opt)
	if text, ok := opt["subnet"]; ok {
		for spec := range strings.SplitSeq(text, "+") {
			parts := strings.Split(spec, ",")
			_, opt := options(parts[1:], "dhcp", "pool")
			e.Subnets = append(e.Subnets, r.subnetSpec(parts[0], opt))
		}
	}
	return e
}

func (r *room) policy(opt map[string]string) (sticky *bool, quarantine *ipam.Duration) {
	r.t.Helper()
	if text, ok := opt["sticky"]; ok {
		sticky = ptr(text == "on")
	}
	if text, ok := opt["quarantine"]; ok {
		d, err := time.ParseDuration(text)
		if err != nil {
			r.t.Fatal(err)
		}
		quarantine = ptr(ipam.Duration(d))
	}
	return sticky, quarantine
}

func parseLink(text string) ipam.Link {
	part := strings.Split(text, ",")
	return ipam.Link{Host: part[0], Mode: part[1], Link: part[2]}
}

func (r *room) modifyNetwork(name string, opt map[string]string) ipam.Edit {
	r.t.Helper()
	e := &ipam.ModifyNetwork{Network: name, Tags: map[string]*string{}}
	if v, ok := opt["name"]; ok {
		e.Name = &v
	}
	if v, ok := opt["mac"]; ok {
		e.MACPrefix = &v
	}
	if v, ok := opt["link"]; ok {
		e.Links = []ipam.Link{parseLink(v)}
	}
	for key, value := range opt {
		if tag, ok := strings.CutPrefix(key, "tag."); ok {
			e.Tags[tag] = &value
		}
	}
	if tag, ok := opt["untag"]; ok {
		e.Tags[tag] = nil
	}
	e.Sticky, e.Quarantine = r.policy(opt)
	return e
}

// subnetSpec reads a CIDR, or /BITS with from=CIDR among the options.
func (r *room) subnetSpec(cidr string, opt map[string]string) ipam.SubnetSpec {
	r.t.Helper()
	spec := ipam.SubnetSpec{Name: opt["name"], Gateway: r.addr(opt["gw"])}
	_, spec.DHCP = opt["dhcp"]
	_, spec.Pool = opt["pool"]
	if bits, ok := strings.CutPrefix(cidr, "/"); ok {
		var err error
		if spec.Bits, err = strconv.Atoi(bits); err != nil {
			r.t.Fatal(err)
		}
		spec.From = netip.MustParsePrefix(opt["from"])
		return spec
	}
	spec.CIDR = netip.MustParsePrefix(cidr)
	return spec
}

func (r *room) modifySubnet(network, ref string, opt map[string]string) ipam.Edit {
	r.t.Helper()
	e := &ipam.ModifySubnet{Network: network, Subnet: r.subnetID(network, ref)}
	if v, ok := opt["name"]; ok {
		e.Name = &v
	}
	if v, ok := opt["cidr"]; ok {
		e.CIDR = ptr(netip.MustParsePrefix(v))
	}
	if v, ok := opt["gw"]; ok {
		e.Gateway = ptr(r.addr(strings.TrimPrefix(v, "none")))
	}
	if v, ok := opt["dhcp"]; ok {
		e.DHCP = ptr(v == "true")
	}
	return e
}

// wishes reads "A,pool,NAME": one for each slot.
func (r *room) wishes(text string) (all []ipam.Wish) {
	r.t.Helper()
	if text == "" {
		return nil
	}
	for i, part := range strings.Split(text, ",") {
		in, err := ipam.ParseInterface(part)
		if err != nil {
			r.t.Fatal(err)
		}
		w := in.Wishes[0]
		w.Slot = i
		all = append(all, w)
	}
	return all
}

// docker runs a step that Docker would ask for.
//
//	attach POOL [net=NET] [pool=NAME] [cidr=CIDR] [range=RANGE] [space=S] [six] [gw=A]   answers with subnet and gateway
//	ask POOL [NAME] [mac=N] [ip=ADDRESS]; gateway POOL [ip=ADDRESS]; back POOL ADDRESS; detach POOL
func (r *room) docker(verb string, words []string) (string, error) {
	r.t.Helper()
	name := words[0]
	args, opt := options(words[1:], "six", "pool", "ip", "telling", "swarm")
	id, known := r.pools[name]
	switch verb {
	case "attach":
		return r.attach(name, opt)
	case "detach":
		return "", r.s.ReleasePool(ctx, id)
	}
	if !known {
		r.t.Fatalf("no pool is called %s", name)
	}
	if verb == "back" {
		return "", r.s.ReleaseAddress(ctx, id, r.addr(args[0]))
	}
	req := ipam.AddressRequest{Pool: id, Preferred: r.addr(opt["ip"]), Gateway: verb == "gateway"}
	_, req.Telling = opt["telling"]
	if len(args) > 0 {
		req.Name = args[0]
	}
	if text, ok := opt["mac"]; ok {
		n, err := strconv.Atoi(text)
		if err != nil {
			r.t.Fatal(err)
		}
		req.MAC = mac(n)
	}
	if verb == "has" {
		return r.has(req), nil
	}
	got, err := r.s.RequestAddress(ctx, req)
	if err != nil {
		return "", err
	}
	return got.Addr().String(), nil
}

// has is what the endpoint has that would ask so.
func (r *room) has(req ipam.AddressRequest) string {
	var all []netip.Addr
	for _, l := range listLeases(r.t, r.s, ipam.LeaseFilter{}) {
		this := !req.Preferred.IsValid() || l.Address == req.Preferred
		if l.Pool == req.Pool && l.MAC == req.MAC && l.Name == req.Name && this {
			all = append(all, l.Address)
		}
	}
	return joined(all)
}

func (r *room) attach(name string, opt map[string]string) (string, error) {
	r.t.Helper()
	req := ipam.PoolRequest{Space: cmp.Or(opt["space"], "local"), Network: opt["net"], Pool: opt["pool"],
		Gateway: r.addr(opt["gw"])}
	_, req.IPv6 = opt["six"]
	_, req.Swarm = opt["swarm"]
	if text, ok := opt["cidr"]; ok {
		req.CIDR = netip.MustParsePrefix(text)
	}
	if text, ok := opt["range"]; ok {
		req.Range = r.ranged(text)
	}
	grant, err := r.s.RequestPool(ctx, req)
	if err != nil {
		return "", err
	}
	if slices.Contains(poolIDs(r.pools), grant.ID) {
		r.t.Fatalf("two attachments have the id %s", grant.ID)
	}
	r.pools[name] = grant.ID
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

// describe answers "show NET WHAT" in one line.
func (r *room) describe(args []string) string {
	r.t.Helper()
	if args[0] == "networks" {
		all, err := r.s.Networks(ctx, ipam.NetworkFilter{})
		if err != nil {
			r.t.Fatal(err)
		}
		var names []string
		for _, n := range all {
			names = append(names, n.Name)
		}
		return strings.Join(names, " ")
	}
	n := r.show(args[0])
	var out []string
	add := func(format string, values ...any) { out = append(out, fmt.Sprintf(format, values...)) }
	switch args[1] {
	case "flat":
		add("%s %s %s %s %s", text(n.Network), text(n.Gateway), text(n.Network6), text(n.Gateway6), cmp.Or(n.Map, "-"))
	case "reserved":
		for _, res := range r.reservations(ipam.AddressFilter{Network: args[0]}) {
			add("%s=%s%s", res.Owner, res.Address, map[bool]string{true: "*"}[res.InUse])
		}
	case "taken":
		for _, a := range r.taken(ipam.AddressFilter{Network: args[0]}) {
			add("%s:%d.%d=%s", a.Owner, a.Interface, a.Slot, a.Address)
		}
	case "counts":
		add("held %d reserved %d docker %d planned %t", n.Held, n.Reserved, n.Docker, n.Planned)
	case "env":
		env, err := r.s.Environment(ctx, args[0], args[2])
		if err != nil {
			r.t.Fatal(err)
		}
		out = env
	default:
		for _, sub := range n.Subnets {
			out = append(out, describeSubnet(&sub, args[1])...)
		}
	}
	return strings.Join(out, " ")
}

// text is "-" for what is not there.
func text[T interface {
	IsValid() bool
	fmt.Stringer
}](v T) string {
	if !v.IsValid() {
		return "-"
	}
	return v.String()
}

func describeSubnet(sub *ipam.SubnetPlan, what string) (out []string) {
	add := func(format string, values ...any) { out = append(out, fmt.Sprintf(format, values...)) }
	switch what {
	case "subnets":
		add("%s:%s:%s:%t", cmp.Or(sub.Name, "-"), sub.CIDR, text(sub.Gateway), sub.DHCP)
	case "exclusions":
		for _, x := range sub.Exclusions {
			add("%s:%s-%s", cmp.Or(x.Note, "-"), x.Start, x.End)
		}
	case "pools":
		for _, p := range sub.Pools {
			add("%s:%s-%s", cmp.Or(p.Name, "-"), p.Start, p.End)
		}
	case "maps":
		for _, p := range sub.Pools {
			add("%s", cmp.Or(p.Map, "-"))
		}
	case "free":
		for _, p := range sub.Pools {
			add("%s", p.Free)
		}
	}
	return out
}
