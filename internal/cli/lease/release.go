package lease

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"berth/internal/admin/client"
	"berth/internal/cli"
	"berth/internal/ipam"

	"github.com/spf13/cobra"
)

const leaseReleaseHelp = `Releases an address at once if its endpoint disappeared without releasing it. "berth
check --repair" does this for all such addresses after five minutes.

Berth refuses if an endpoint uses the address, if its container may be starting, or if the engine is
unreachable. --force releases it anyway: the container keeps using it, and another one may get it too. Berth
remembers the last holder, and a reservation stays.`

func leaseReleaseCommand(p *cli.Program) *cobra.Command {
	var req ipam.LeaseRelease
	var engine cli.EngineFlags
	cmd := cli.Verb{Use: "release ADDRESS...", Short: "Release addresses that no endpoint uses", Long: leaseReleaseHelp,
		Args:    cli.Some("ADDRESS"),
		Example: "  berth lease release 10.1.0.7\n  berth lease release 10.1.0.7 --space lab --force"}.Command(p)
	p.SpaceFlag(cmd, &req.Space)
	cmd.Flags().BoolVar(&req.Force, "force", false, "also if an endpoint uses it, or may use it")
	cli.DryRunFlag(cmd, &req.DryRun)
	engine.Flags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		for _, arg := range args {
			if _, err := netip.ParseAddr(arg[strings.LastIndexByte(arg, '/')+1:]); err != nil {
				return cli.Usage(cmd, fmt.Errorf("%q is no address such as 10.1.0.7", arg))
			}
		}
		return p.Ask(cmd, func(ctx context.Context, c *client.Client) error {
			if engine.Given() && !req.Force {
				if req.View, err = engine.View(ctx, c); err != nil {
					return err
				}
			}
			var failed []error
			for _, arg := range args { // as docker does: each for itself
				failed = append(failed, release(ctx, p, c, req, arg))
			}
			return errors.Join(failed...)
		})
	}
	return cmd
}

// release frees one address, as it stands or with its network before it, and says it.
func release(ctx context.Context, p *cli.Program, c *client.Client, req ipam.LeaseRelease, arg string) error {
	network, address, qualified := strings.Cut(arg, "/")
	if !qualified {
		network, address = "", arg
	}
	if network != "" {
		networks, err := cli.NetworksOf(ctx, c, network)
		if err != nil {
			return err
		}
		req.Space = networks[0].Space // also that of the others of one Docker network
	}
	addr, err := netip.ParseAddr(address)
	if err != nil {
		return err
	}
	req.Address = addr
	l, err := c.ReleaseLease(ctx, req)
	if err != nil {
		return err
	}
	if req.DryRun {
		return p.Say([]string{fmt.Sprintf("would release %s, which %s has", l.Address, cli.Printable(l.Name))})
	}
	_, err = fmt.Fprintln(p.Out, l.Address)
	return err
}
