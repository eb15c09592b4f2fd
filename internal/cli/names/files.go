package names

import (
	"fmt"
	"io"
	"net/netip"

	"berth/internal/cli"
	"berth/internal/dns"
)

const fileHelp = `

-o replaces an existing FILE by a rename, so that a reader sees the whole old file or the whole new one. The file
has the names of that moment; berth serve --dns-listen answers with the current names.`

const hostsHelp = `Writes all names as a hosts file (hosts(5)): each address with its names, the long name first.
dnsmasq and Pi-hole read such files (addn-hosts, hostsdir), and so does CoreDNS (hosts).` + fileHelp

func hostsCommand() cli.Row {
	return write(cli.Verb{Use: "hosts", Short: "Write the names as a hosts file", Long: hostsHelp,
		Example: "  berth dns hosts\n  berth dns hosts --zone lan.example -o /etc/dnsmasq.hosts/berth"}, nil,
		func(x *dns.Index, w io.Writer) error { return x.WriteHosts(w) })
}

const zoneHelp = `Writes all names as a zone file (RFC 1035) for BIND, Knot, NSD or CoreDNS, with a serial number that
grows. The zone calls its server ns; --server sets the addresses of the server.

--reverse writes a reverse zone instead: for the prefix 192.0.2.0/24 the zone 2.0.192.in-addr.arpa. The length of the
prefix is a multiple of 8, or of 4 for IPv6.` + fileHelp

func zoneCommand() cli.Row {
	var reverse string
	servers := []string{"127.0.0.1"}
	var of netip.Prefix
	var at []netip.Addr
	return write(cli.Verb{Use: "zone", Short: "Write the names as a zone file", Long: zoneHelp,
		Example: `  berth dns zone
  berth dns zone --server 192.0.2.53 -o /var/lib/bind/lan.example
  berth dns zone --reverse 192.0.2.0/24 -o /var/lib/bind/192.0.2`,
		Flags: cli.Flags{
			cli.Flag(&reverse, "reverse", "write the reverse zone of `CIDR` instead"),
			cli.Flag(&servers, "server", "`ADDRESS` of the DNS server that serves the file (repeatable)")}},
		func() (err error) {
			if reverse != "" {
				if of, err = netip.ParsePrefix(reverse); err != nil || of != of.Masked() {
					return fmt.Errorf("--reverse is %q, and must be a prefix such as 192.0.2.0/24", reverse)
				}
				return dns.CheckReverse(of)
			}
			for _, text := range servers {
				addr, err := netip.ParseAddr(text)
				if err != nil || addr.Zone() != "" {
					return fmt.Errorf("--server is %q, and must be an address", text)
				}
				at = append(at, addr.Unmap())
			}
			return nil
		},
		func(x *dns.Index, w io.Writer) error {
			if of.IsValid() {
				return x.WriteReverse(w, of)
			}
			return x.WriteZone(w, at)
		})
}

// write is a verb that writes a file of names. Check may be nil.
func write(verb cli.Verb, check func() error, fn func(*dns.Index, io.Writer) error) cli.Row {
	var zone zoneFlag
	var file string
	verb.Flags = append(verb.Flags, zone.flag(),
		cli.Flag(&file, "output", "write to `FILE` instead of standard output").Short("o"))
	verb.Run = func(r *cli.Run) error {
		if check != nil {
			if err := check(); err != nil {
				return cli.Usage(r.Cmd, err)
			}
		}
		if err := zone.check(); err != nil {
			return r.Usagef("--zone: %w", err)
		}
		if err := r.Ask(); err != nil {
			return err
		}
		x, err := zone.index(r)
		if err != nil {
			return err
		}
		return cli.WriteWhole(r.Out, file, func(w io.Writer) error { return fn(x, w) })
	}
	return verb
}
