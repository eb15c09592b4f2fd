package owner

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"berth/internal/alloc"
	"berth/internal/cli"
	"berth/internal/ipam"

	"github.com/spf13/cobra"
)

// ending releases what an owner has in a network: everything, or the address of --ip. Without --owner it releases the
// addresses that the noun's list prints with -q.
type ending struct {
	owners cli.Refs // completes --owner
	// whose lists the owners in a network with their addresses, which are zero for owners without one
	whose func(r *cli.Run, network string) ([]owned, error)
	edit  func(network, owner string, addr netip.Addr) ipam.Edit

	owner string
	ip    *string
}

type owned struct {
	owner string
	addr  netip.Addr
}

// change returns the command. help describes --owner.
func (d *ending) change(help string, verb cli.Verb) cli.Change {
	verb.Args = d.args
	verb.Flags = cli.Flags{cli.OwnerFlag(&d.owner, help).Of(d.owners), cli.Flag(&d.ip, "ip",
		"only this `ADDRESS`")}
	verb.Check = func(r *cli.Run) (err error) {
		if !d.byPlaces(r.Args) {
			_, err = d.address()
		}
		return err
	}
	return cli.Change{Verb: verb, Make: func(e *cli.Editor) error {
		if d.byPlaces(e.Args) {
			return d.places(e)
		}
		addr, err := d.address()
		if err != nil {
			return err
		}
		return e.Make(cli.Echo(d.owner), d.edit(e.Args[0], d.owner, addr))
	}}
}

// byPlaces reports whether the arguments are addresses, and not a network.
func (d *ending) byPlaces(args []string) bool {
	return d.owner == "" && d.ip == nil && (len(args) > 1 || strings.Contains(args[0], "/") || isAddress(args[0]))
}

// args requires a network, or addresses as lists print them.
func (d *ending) args(r *cli.Run) error {
	if len(r.Args) == 0 {
		return r.Usagef("NETWORK is missing: %s NETWORK --owner OWNER, or %[1]s ADDRESS", r.Cmd.CommandPath())
	}
	if err := cli.Some("ADDRESS")(r); err != nil || d.byPlaces(r.Args) {
		return err
	}
	return cli.Takes("NETWORK")(r)
}

// places releases what the arguments name: addresses, or owners without one.
func (d *ending) places(e *cli.Editor) error {
	places, err := e.Places()
	if err != nil {
		return err
	}
	var failed []error
	for _, at := range places {
		all, err := d.whose(e.Run, at.Network)
		if err != nil {
			return err
		}
		addr, _ := netip.ParseAddr(at.Thing)
		i := slices.IndexFunc(all, func(o owned) bool {
			return o.addr == addr && (addr.IsValid() || o.owner == at.Thing)
		})
		if i < 0 {
			owns := slices.ContainsFunc(all, func(o owned) bool { return o.owner == at.Thing })
			failed = append(failed, notThere(e.Cmd, at, owns))
			continue
		}
		failed = append(failed, e.Make(cli.Echo(at.Thing), d.edit(at.Network, all[i].owner, addr)))
	}
	return errors.Join(failed...)
}

// notThere returns the error for a thing that a network does not have. If owns is true, the thing is an owner of
// addresses, for which --owner is needed.
func notThere(cmd *cobra.Command, at cli.Place, owns bool) error {
	if owns {
		return fmt.Errorf("%s is not an address but an owner; write %s %s --owner %s", at.Thing, cmd.CommandPath(),
			at.Network, at.Thing)
	}
	return fmt.Errorf("there is no entry for %s in that network; `%s ls` lists all entries", at.Thing,
		cmd.Parent().CommandPath())
}

func isAddress(text string) bool {
	_, err := netip.ParseAddr(text)
	return err == nil
}

// address parses --owner and, if given, --ip.
func (d *ending) address() (addr netip.Addr, err error) {
	if err := cli.NeedsOwner(d.owner); err != nil || d.ip == nil {
		return addr, err
	}
	if addr, err = alloc.ParseAddr(*d.ip); err != nil {
		err = fmt.Errorf("--ip: %w", err)
	}
	return addr, err
}
