// Package names has the commands for DNS names. It lists and writes the names that the daemon answers. It computes them
// from the same records by the same rules, so it also works with a daemon that serves no zone.
//
// list.go prints names; files.go writes them for other DNS servers.
package names

import (
	"errors"

	"berth/internal/cli"
	"berth/internal/dns"
	"berth/internal/ipam"
)

// Command is `berth dns`.
func Command() cli.Row {
	return cli.Group("dns", "Names in DNS: lists, and files for other DNS servers", listCommand(),
		hostsCommand(), zoneCommand())
}

// zoneFlag is that of a zone.
type zoneFlag struct{ zone string }

func (f *zoneFlag) flag() cli.FlagRow {
	return cli.Flag(&f.zone, "zone", "`ZONE` of the names (default: that of the daemon's --dns-zone)")
}

// check refuses what is no zone.
func (f *zoneFlag) check() (err error) {
	if f.zone == "" {
		return nil
	}
	f.zone, err = dns.ParseZone(f.zone)
	return err
}

// index makes all names.
func (f *zoneFlag) index(r *cli.Run) (*dns.Index, error) {
	all, err := r.Names(r)
	if err != nil {
		return nil, err
	}
	zone := f.zone
	if zone == "" {
		zone = all.Zone
	}
	if zone == "" {
		return nil, errors.New("the daemon has no zone (berth serve --dns-zone); name one with --zone, such as " +
			"lan.example")
	}
	x := dns.New(zone, r.Now)
	x.Apply(&ipam.NameNews{Whole: true, Ranges: all.Ranges, Set: all.Addresses})
	return x, nil
}
