package dns

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"

	"github.com/miekg/dns"
)

// Name is a name with one of its addresses, for people.
type Name struct {
	Name    string     `json:"name"` // without the final dot
	Address netip.Addr `json:"address"`
	Kind    string     `json:"kind"` // long, service, alias, short
	Owner   string     `json:"owner"`
	Network string     `json:"network,omitempty"` // empty: an elastic address
	Held    bool       `json:"held"`
	Instead string     `json:"instead,omitempty"` // the owner of the name without the mark

	rank rank
}

// Names returns all names by address, the long name first.
func (x *Index) Names() (all []Name) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	put := func(name string, claims []claim, instead string) {
		for _, is6 := range []bool{false, true} {
			addrs := addresses(claims, is6)
			for _, c := range claims {
				if slices.Contains(addrs, c.Address) {
					all = append(all, Name{Name: name + "." + x.zone, Address: c.Address, Kind: kinds[c.rank],
						Owner: c.Owner, Network: c.area.Network, Held: c.Held, Instead: instead, rank: c.rank})
				}
			}
		}
	}
	for name, n := range x.nodes {
		has := n.has()
		put(name, has, "")
		for rest := n.claims[len(has):]; len(rest) > 0 && rest[0].rank <= rankAltered; {
			end := 1
			for end < len(rest) && rest[end].rank == rest[0].rank && rest[end].against(rest[0]) == 0 {
				end++
			}
			put(rest[0].marked(name), rest[:end], has[0].Owner)
			rest = rest[end:]
		}
	}
	slices.SortFunc(all, func(a, b Name) int {
		return cmp.Or(a.Address.Compare(b.Address), cmp.Compare(a.rank, b.rank), strings.Compare(a.Name, b.Name))
	})
	return all
}

// namesInLine is the maximum number of names in a line of a hosts file, because some readers accept no longer lines.
const namesInLine = 4

// WriteHosts writes the names as hosts(5). Each address is written once, the long name first.
func (x *Index) WriteHosts(to io.Writer) error {
	w := bufio.NewWriter(to)
	_, _ = fmt.Fprintf(w, "# The names of %s, by berth dns hosts. Do not edit.\n", x.zone)
	all := x.Names()
	for len(all) > 0 {
		end := 1
		for end < len(all) && all[end].Address == all[0].Address {
			end++
		}
		of := all[:end]
		for part := range slices.Chunk(of, namesInLine) {
			_, _ = w.WriteString(of[0].Address.String())
			for _, one := range part {
				_, _ = w.WriteString(" " + one.Name)
			}
			_ = w.WriteByte('\n')
		}
		all = all[end:]
	}
	return w.Flush()
}

// WriteZone writes the names as a zone file (RFC 1035, 5.1). servers are the addresses of its name server, ns.
func (x *Index) WriteZone(to io.Writer, servers []netip.Addr) error {
	w := bufio.NewWriter(to)
	fqdn := dns.Fqdn(x.zone)
	x.head(w, fqdn)
	for _, addr := range servers {
		_, _ = fmt.Fprintln(w, address(x.server(), addr))
	}
	for _, one := range x.Names() {
		_, _ = fmt.Fprintln(w, address(dns.Fqdn(one.Name), one.Address))
	}
	return w.Flush()
}

// head writes the head of a zone file.
func (x *Index) head(w io.Writer, zone string) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	_, _ = fmt.Fprintf(w, "; The names of %s by berth dns zone. Do not edit.\n$TTL %d\n%s\n%s\n", zone, ttl,
		x.soa(zone, ttl), x.ns(zone))
}

// WriteReverse writes the names of a prefix's addresses as a reverse zone file. Its server is ns of the zone of names.
// The prefix must be a multiple of 8 bits, or of 4 for IPv6.
func (x *Index) WriteReverse(to io.Writer, of netip.Prefix) error {
	if err := CheckReverse(of); err != nil {
		return err
	}
	w := bufio.NewWriter(to)
	zone := dns.Fqdn(reverseName(of))
	x.head(w, zone)
	x.mu.RLock()
	defer x.mu.RUnlock()
	var all []netip.Addr
	for addr := range x.at {
		if of.Contains(addr) {
			all = append(all, addr)
		}
	}
	slices.SortFunc(all, netip.Addr.Compare)
	for _, addr := range all {
		for _, e := range x.at[addr] {
			_, _ = fmt.Fprintln(w, &dns.PTR{Hdr: header(dns.Fqdn(reverseName(netip.PrefixFrom(addr, addr.BitLen()))),
				dns.TypePTR, ttl), Ptr: dns.Fqdn(x.nameOf(e) + "." + x.zone)})
		}
	}
	return w.Flush()
}

// CheckReverse refuses a prefix that is not a reverse zone of its own.
func CheckReverse(of netip.Prefix) error {
	if p := apex(of, of.Addr()); p != of || of.IsSingleIP() {
		return fmt.Errorf("%s is not a whole reverse zone: give a prefix whose length is a multiple of 8 (IPv6: "+
			"of 4), such as %s", of, apex(zoneOf(of), of.Addr()))
	}
	return nil
}
