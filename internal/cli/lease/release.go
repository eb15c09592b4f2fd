package lease

import (
	"fmt"
	"net/netip"
	"strings"

	"berth/internal/cli"
	"berth/internal/ipam"
)

const leaseReleaseHelp = `Releases an address at once if its endpoint disappeared without releasing it. "berth
check --repair" does this for all such addresses after five minutes.

Berth refuses if an endpoint uses the address, if its container may be starting, or if the engine is
unreachable. --force releases it anyway: the container keeps using it, and another one may get it too. Berth
remembers the last holder, and a reservation stays.`

func leaseReleaseCommand() cli.Row {
	var req ipam.LeaseRelease
	var engine cli.EngineFlags
	return cli.Verb{Use: "release ADDRESS...", Short: "Release addresses that no endpoint uses",
		Long:    leaseReleaseHelp,
		Example: "  berth lease release 10.1.0.7\n  berth lease release 10.1.0.7 --space lab --force",
		Flags: append(engine.Flags(), cli.SpaceFlag(&req.Space), cli.DryRunFlag(&req.DryRun),
			cli.Flag(&req.Force, "force", "release it even if an endpoint uses it, or may use it")),
		Check: func(r *cli.Run) error {
			for _, arg := range r.Args {
				if _, err := netip.ParseAddr(arg[strings.LastIndexByte(arg, '/')+1:]); err != nil {
					return fmt.Errorf("%q is not an address such as 10.1.0.7", arg)
				}
			}
			return nil
		},
		Ask: func(r *cli.Run) (err error) {
			if engine.Given() && !req.Force {
				if req.View, err = engine.View(r); err != nil {
					return err
				}
			}
			return cli.Each(r.Args, func(arg string) error { return release(r, req, arg) })
		}}
}

// release releases one address, given as ADDRESS or NETWORK/ADDRESS, and prints it.
func release(r *cli.Run, req ipam.LeaseRelease, arg string) error {
	network, address, qualified := strings.Cut(arg, "/")
	if !qualified {
		network, address = "", arg
	}
	if network != "" {
		networks, err := r.NetworksOf(network)
		if err != nil {
			return err
		}
		req.Space = networks[0].Space // all networks of one Docker network are in one space
	}
	addr, err := netip.ParseAddr(address)
	if err != nil {
		return err
	}
	req.Address = addr
	l, err := r.ReleaseLease(r, req)
	if err != nil {
		return err
	}
	if req.DryRun {
		return r.Sayf("would release %s, which %s holds", l.Address, cli.Printable(l.Name))
	}
	_, err = fmt.Fprintln(r.Out, l.Address)
	return err
}
