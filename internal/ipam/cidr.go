package ipam

import (
	"net/netip"

	"berth/internal/alloc"
)

// noHosts lists the blocks whose addresses no container can use (RFC 6890). 240.0.0.0/4 and 169.254.0.0/16 are not
// among them: Linux carries both, and people give them to Docker networks.
var noHosts = []struct {
	block netip.Prefix
	what  string
}{
	{netip.MustParsePrefix("0.0.0.0/8"), "the unspecified addresses"},
	{netip.MustParsePrefix("127.0.0.0/8"), "the loopback addresses of each host"},
	{netip.MustParsePrefix("224.0.0.0/4"), "the multicast addresses"},
	{netip.MustParsePrefix("255.255.255.255/32"), "the broadcast address"},
	{netip.MustParsePrefix("::/127"), "the unspecified and the loopback address"},
	{netip.MustParsePrefix("fe80::/10"), "the link-local addresses of each interface"},
	{netip.MustParsePrefix("ff00::/8"), "the multicast addresses"},
}

// CheckPrefix refuses a prefix that is missing or not written as a subnet.
func CheckPrefix(p netip.Prefix) error {
	switch {
	case !p.IsValid():
		return Refuse(ErrInvalid, "a subnet is missing: write one like 10.0.0.0/24 or 2001:db8::/64")
	case p.Addr().Is4In6():
		return Refuse(ErrInvalid, "%s is an IPv4 subnet mapped into IPv6; write it as IPv4", p)
	case p != p.Masked():
		return Refuse(ErrInvalid, "%s has host bits set; the subnet is %s", p, p.Masked())
	}
	return nil
}

// CheckSubnet refuses a new subnet: one that CheckPrefix refuses, or one whose first host address no container can use.
// It takes a huge subnet that has such addresses only further on.
func CheckSubnet(p netip.Prefix) error {
	if err := CheckPrefix(p); err != nil {
		return err
	}
	for _, no := range noHosts {
		if no.block.Contains(alloc.Usable(p).From()) {
			return Refuse(ErrInvalid, "the subnet %s begins in %s, %s, which no container can use; choose another, "+
				"such as 10.0.0.0/24 or fd00::/64", p, no.block, no.what)
		}
	}
	return nil
}
