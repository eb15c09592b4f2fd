package cli

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"berth/internal/admin/client"
	"berth/internal/ipam"

	"github.com/spf13/cobra"
)

// Place is something in a network, as arguments name it: a CIDR, a range, an address or a name.
type Place struct{ Network, Space, Thing string }

// Some demands at least one argument. what is its name in messages.
func Some(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return Usagef(cmd, "%s is missing: %s %s... takes at least one", what, cmd.CommandPath(), what)
		}
		if slices.ContainsFunc(args, func(arg string) bool { return strings.TrimSpace(arg) == "" }) {
			return Usagef(cmd, "one %s of %s is empty", what, cmd.CommandPath())
		}
		return nil
	}
}

// SomePlaces demands at least one argument in the forms of Places. what is its name in messages.
func SomePlaces(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := Some(what)(cmd, args); err != nil {
			return err
		}
		if len(args) > 1 || strings.Contains(args[0], "/") || hasAddress(args[0]) || isID(args[0]) {
			return nil
		}
		return Usagef(cmd, "%s is missing: %s NETWORK %s", what, cmd.CommandPath(), what)
	}
}

// isID reports whether a text is an id or an id's first eight digits.
func isID(text string) bool {
	_, err := ipam.ParseID(text)
	return err == nil || len(text) == 8 && strings.Trim(text, "0123456789abcdef") == ""
}

// Places parses any number of arguments in the form that lists print with --quiet (Ref): NETWORK/THING, or THING in the
// space local. Two arguments are NETWORK THING if the first can only be a network.
func Places(ctx context.Context, c *client.Client, args []string) ([]Place, error) {
	if len(args) == 2 && !strings.Contains(args[0], "/") && !hasAddress(args[0]) {
		return []Place{{Network: args[0], Thing: args[1]}}, nil
	}
	var local []ipam.SubnetInfo
	var all []Place
	for _, arg := range args {
		network, thing, qualified := strings.Cut(arg, "/")
		if qualified && ipam.CheckName("network", network) == nil {
			all = append(all, Place{Network: network, Thing: thing})
			continue
		}
		if local == nil {
			var err error
			if local, err = c.Subnets(ctx, ""); err != nil {
				return nil, err
			}
		}
		i := slices.IndexFunc(local, func(s ipam.SubnetInfo) bool { return liesIn(arg, &s) })
		if i < 0 {
			return nil, fmt.Errorf("no subnet of the space %s has %s; write its network before it: NETWORK/%s",
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
