package ipamtest

import (
	"crypto/sha256"
	"encoding/json"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"berth/internal/ipam"
)

// parseEdit reads a step that is an edit. It returns nil for any other step.
func (r *Stage) parseEdit(verb string, words []string) ipam.Edit {
	r.T.Helper()
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
	case "edit":
		return r.jsonEdit(words[0], strings.Join(words[1:], " "))
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
			e.Range = r.Ranged(at(1))
		}
		return e
	case "pool.set":
		return &ipam.ModifyPool{Network: args[0], Pool: at(1), Name: strings.TrimPrefix(at(2), "-")}
	case "pool.rm":
		return &ipam.RemovePool{Network: args[0], Pool: at(1)}
	case "exclude":
		return &ipam.AddExclusion{Network: args[0], Range: r.Ranged(at(1)), Note: opt["note"]}
	case "include":
		return &ipam.RemoveExclusion{Network: args[0], Range: r.Ranged(at(1))}
	case "unreserve":
		return &ipam.RemoveReservation{Network: args[0], Owner: at(1), Address: r.Addr(at(2))}
	case "take":
		in, err := ipam.ParseInterface(at(2))
		fine(r.T, err)
		return &ipam.TakeAddress{Network: args[0], Subnet: opt["subnet"], Owner: at(1), Interface: in, Force: force}
	case "release":
		return &ipam.ReleaseAddress{Network: args[0], Owner: at(1), Address: r.Addr(at(2))}
	}
	return nil
}

// Edits reads steps that are edits, one per line.
func Edits(t testing.TB, lines string) (all []ipam.Edit) {
	t.Helper()
	r := &Stage{T: t}
	for line := range strings.Lines(lines) {
		if words := strings.Fields(line); len(words) > 0 {
			all = append(all, r.edit(words))
		}
	}
	return all
}

// edit reads one edit. It returns nil for any other step.
func (r *Stage) edit(words []string) ipam.Edit {
	r.T.Helper()
	if e := r.ownerEdit(words[0], words[1:]); e != nil {
		return e
	}
	return r.parseEdit(words[0], words[1:])
}

// edits makes the edits of a step in one call, and reports whether the step has edits.
func (r *Stage) edits(words []string) (got string, done bool, err error) {
	r.T.Helper()
	var opt ipam.EditOptions
	by := ctx
	for ; words[0][0] == '@'; words = words[1:] {
		key, value, _ := strings.Cut(words[0], "=")
		switch key {
		case "@by":
			by = ipam.WithActor(ctx, value)
		case "@deploy":
			opt.Deploy = IDOf(value)
		case "@dry":
			opt.DryRun = true
		case "@key":
			key, request, _ := strings.Cut(value, "/")
			opt.Key, opt.Request = key, sha256.Sum256([]byte(request))
		}
	}
	var all []ipam.Edit
	for one := range strings.SplitSeq(strings.Join(words, " "), " + ") {
		e := r.edit(strings.Fields(one))
		if e == nil {
			return "", false, nil
		}
		all = append(all, e)
	}
	out, err := r.S.Edit(by, opt, all...)
	if out.Replayed {
		got = "again "
	}
	for _, res := range out.Results {
		got += answer(res) + " "
	}
	return strings.TrimSpace(got), true, err
}

// IDOf returns the id that a script calls ID:NAME.
func IDOf(name string) (id ipam.ID) {
	copy(id[:], name)
	return id
}

var idWord = regexp.MustCompile(`ID:\w+`)

// jsonEdit reads any edit, with ID:NAME for an id, and LONG for 300 letters.
func (r *Stage) jsonEdit(op, text string) ipam.Edit {
	r.T.Helper()
	e, known := ipam.NewEdit(op)
	if !known {
		r.T.Fatalf("there is no edit %s", op)
	}
	text = strings.ReplaceAll(text, "LONG", strings.Repeat("a", 300))
	text = idWord.ReplaceAllStringFunc(text, func(id string) string { return IDOf(id[len("ID:"):]).String() })
	fine(r.T, json.Unmarshal([]byte(text), e))
	return e
}

// Addr reads an address. No text means no address.
func (r *Stage) Addr(text string) netip.Addr {
	r.T.Helper()
	if text == "" {
		return netip.Addr{}
	}
	a, err := netip.ParseAddr(text)
	fine(r.T, err)
	return a
}

// Ranged reads a range as people write it.
func (r *Stage) Ranged(text string) (rng ipam.Range) {
	r.T.Helper()
	fine(r.T, rng.UnmarshalText([]byte(text)))
	return rng
}

// subnetID returns the id of a subnet that the script calls ID:CIDR, or else the text itself.
func (r *Stage) subnetID(network, ref string) string {
	r.T.Helper()
	cidr, ok := strings.CutPrefix(ref, "ID:")
	if !ok {
		return ref
	}
	for _, sub := range r.Show(network).Subnets {
		if sub.CIDR.String() == cidr {
			return sub.ID.String()
		}
	}
	r.T.Fatalf("there is no subnet %s", cidr)
	return ""
}

func (r *Stage) createNetwork(name string, opt map[string]string) ipam.Edit {
	r.T.Helper()
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

func (r *Stage) policy(opt map[string]string) (sticky *bool, quarantine *ipam.Duration) {
	r.T.Helper()
	if text, ok := opt["sticky"]; ok {
		sticky = new(text == "on")
	}
	if text, ok := opt["quarantine"]; ok {
		d, err := time.ParseDuration(text)
		fine(r.T, err)
		quarantine = new(ipam.Duration(d))
	}
	return sticky, quarantine
}

func parseLink(text string) ipam.Link {
	part := strings.Split(text, ",")
	return ipam.Link{Host: part[0], Mode: part[1], Link: part[2]}
}

func (r *Stage) modifyNetwork(name string, opt map[string]string) ipam.Edit {
	r.T.Helper()
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
func (r *Stage) subnetSpec(cidr string, opt map[string]string) ipam.SubnetSpec {
	r.T.Helper()
	spec := ipam.SubnetSpec{Name: opt["name"], Gateway: r.Addr(opt["gw"])}
	_, spec.DHCP = opt["dhcp"]
	_, spec.Pool = opt["pool"]
	if bits, ok := strings.CutPrefix(cidr, "/"); ok {
		var err error
		if spec.Bits, err = strconv.Atoi(bits); err != nil {
			r.T.Fatal(err)
		}
		spec.From = netip.MustParsePrefix(opt["from"])
		return spec
	}
	spec.CIDR = netip.MustParsePrefix(cidr)
	return spec
}

func (r *Stage) modifySubnet(network, ref string, opt map[string]string) ipam.Edit {
	r.T.Helper()
	e := &ipam.ModifySubnet{Network: network, Subnet: r.subnetID(network, ref)}
	if v, ok := opt["name"]; ok {
		e.Name = &v
	}
	if v, ok := opt["cidr"]; ok {
		e.CIDR = new(netip.MustParsePrefix(v))
	}
	if v, ok := opt["gw"]; ok {
		e.Gateway = new(r.Addr(strings.TrimPrefix(v, "none")))
	}
	if v, ok := opt["dhcp"]; ok {
		e.DHCP = new(v == "true")
	}
	return e
}

// Wishes reads "A,pool,NAME": one wish for each slot.
func (r *Stage) Wishes(text string) (all []ipam.Wish) {
	r.T.Helper()
	if text == "" {
		return nil
	}
	for i, part := range strings.Split(text, ",") {
		in, err := ipam.ParseInterface(part)
		fine(r.T, err)
		w := in.Wishes[0]
		w.Slot = i
		all = append(all, w)
	}
	return all
}
