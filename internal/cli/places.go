package cli

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"berth/internal/ipam"
)

// Place is something in a network, as arguments name it: a CIDR, a range, an address or a name.
type Place struct{ Network, Space, Thing string }

// Some demands at least one argument. what is its name in messages.
func Some(what string) func(*Run) error {
	return func(r *Run) error {
		if len(r.Args) == 0 {
			return r.Usagef("%s is missing: %s %s... takes at least one", what, r.Cmd.CommandPath(), what)
		}
		if slices.ContainsFunc(r.Args, func(arg string) bool { return strings.TrimSpace(arg) == "" }) {
			return r.Usagef("one of the %s arguments of %s is empty", what, r.Cmd.CommandPath())
		}
		return nil
	}
}

// somePlaces demands at least one argument in the forms of Places. what is its name in messages.
func somePlaces(what string) func(*Run) error {
	return func(r *Run) error {
		if err := Some(what)(r); err != nil {
			return err
		}
		if arg := r.Args[0]; len(r.Args) > 1 || strings.Contains(arg, "/") || hasAddress(arg) || isID(arg) {
			return nil
		}
		return r.Usagef("%s is missing: %s NETWORK %s", what, r.Cmd.CommandPath(), what)
	}
}

// isID reports whether a text is an id or an id's first eight digits.
func isID(text string) bool {
	_, err := ipam.ParseID(text)
	return err == nil || len(text) == 8 && strings.Trim(text, "0123456789abcdef") == ""
}

// Places parses the arguments in the form that lists print with --quiet (Ref): NETWORK/THING, or THING in the
// space local. Two arguments are NETWORK THING if the first can only be a network.
func (r *Run) Places() ([]Place, error) {
	if len(r.Args) == 2 && !strings.Contains(r.Args[0], "/") && !hasAddress(r.Args[0]) {
		return []Place{{Network: r.Args[0], Thing: r.Args[1]}}, nil
	}
	var local []ipam.SubnetInfo
	var all []Place
	for _, arg := range r.Args {
		network, thing, qualified := strings.Cut(arg, "/")
		if qualified && ipam.CheckName("network", network) == nil {
			all = append(all, Place{Network: network, Thing: thing})
			continue
		}
		if local == nil {
			var err error
			if local, err = r.Subnets(r, ""); err != nil {
				return nil, err
			}
		}
		i := slices.IndexFunc(local, func(s ipam.SubnetInfo) bool { return liesIn(arg, &s) })
		if i < 0 {
			return nil, fmt.Errorf("no subnet of the space %s contains %s; name its network, too: NETWORK/%s",
				ipam.LocalSpace, arg, arg)
		}
		all = append(all, Place{Network: local[i].NetworkID.String(), Space: local[i].Space, Thing: arg})
	}
	return all, nil
}

// hasAddress reports whether a text is an address, a CIDR or a range.
func hasAddress(text string) bool {
	return new(ipam.Range).UnmarshalText([]byte(text)) == nil
}

// liesIn reports whether a thing without a network is in a subnet: by the subnet's id or, in the space local, by its
// addresses.
func liesIn(thing string, s *ipam.SubnetInfo) bool {
	if thing == s.ID.String() || thing == s.ID.Short() {
		return true
	}
	if s.Space != ipam.LocalSpace {
		return false
	}
	if p, err := netip.ParsePrefix(thing); err == nil {
		return s.CIDR.Contains(p.Addr()) && s.CIDR.Bits() <= p.Bits()
	}
	var r ipam.Range
	return r.UnmarshalText([]byte(thing)) == nil && s.CIDR.Contains(r.From())
}
