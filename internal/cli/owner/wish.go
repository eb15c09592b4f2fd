package owner

import (
	"fmt"
	"strings"

	"berth/internal/alloc"
	"berth/internal/cli"
	"berth/internal/ipam"

	"go4.org/netipx"
)

// parseWishes parses the values of --ip: one in Ganeti's form, or several with one address each.
func parseWishes(texts []string) (ipam.Interface, error) {
	var all ipam.Interface
	for slot, text := range texts {
		in, err := ipam.ParseInterface(text)
		if err != nil {
			return in, fmt.Errorf("--ip %w", err)
		}
		if len(texts) == 1 {
			return in, nil
		}
		if strings.Contains(text, "=") || in.Action != ipam.Ensure {
			return in, fmt.Errorf("--ip %q describes a whole interface, and cannot be combined with another --ip", text)
		}
		in.Wishes[0].Slot = slot
		all.Wishes = append(all.Wishes, in.Wishes[0])
	}
	return all, nil
}

func wishFlag(wishes *[]string) cli.FlagRow {
	return cli.Flag(wishes, "ip",
		"what to get: an address, pool, the `NAME` of a pool, or ip0=...,ip1=... (repeatable)").
		Of(wishRefs)
}

// wishRefs completes the values of --ip that have a name.
func wishRefs(r *cli.Run, network string) ([]string, error) {
	names := []string{"pool\tan address of any pool"}
	all, err := r.NetworksOf(network)
	for _, n := range all {
		for _, s := range n.Subnets {
			for _, pool := range s.Pools {
				if pool.Name != "" {
					names = append(names, pool.Name+"\t"+alloc.FormatRange(netipx.IPRangeFrom(pool.Start, pool.End)))
				}
			}
		}
	}
	return names, err
}
