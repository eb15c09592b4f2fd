package ipamtest

import (
	"cmp"
	"fmt"
	"strings"

	"berth/internal/ipam"
)

// Describe answers "show NET WHAT" in one line.
func (r *Stage) Describe(args []string) string {
	r.T.Helper()
	if args[0] == "networks" {
		all, err := r.S.Networks(ctx, ipam.NetworkFilter{})
		fine(r.T, err)
		var names []string
		for _, n := range all {
			names = append(names, n.Name)
		}
		return strings.Join(names, " ")
	}
	n := r.Show(args[0])
	var out []string
	add := func(format string, values ...any) { out = append(out, fmt.Sprintf(format, values...)) }
	switch args[1] {
	case "flat":
		add("%s %s %s %s %s", text(n.CIDR), text(n.Gateway), text(n.CIDR6), text(n.Gateway6), cmp.Or(n.Map, "-"))
	case "reserved":
		for _, res := range r.Reservations(ipam.AddressFilter{Network: args[0]}) {
			add("%s=%s%s", res.Owner, res.Address, map[bool]string{true: "*"}[res.InUse])
		}
	case "taken":
		for _, a := range r.Taken(ipam.AddressFilter{Network: args[0], Owner: append(args, "")[2]}) {
			add("%s:%d.%d=%s", a.Owner, a.Interface, a.Slot, a.Address)
		}
	case "counts":
		add("held %d reserved %d docker %d planned %t", n.Use.Leased, n.Use.Reserved, n.Docker, n.Planned)
	case "env":
		env, err := r.S.Environment(ctx, args[0], args[2])
		fine(r.T, err)
		out = env
	default:
		for _, sub := range n.Subnets {
			out = append(out, describeSubnet(&sub, args[1])...)
		}
	}
	return strings.Join(out, " ")
}

// text is "-" for an invalid value.
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
