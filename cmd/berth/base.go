package main

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"berth/internal/ipam"
)

// baseList is the value of --default-pool: base=CIDR,size=N, repeated or separated by semicolons or blanks.
type baseList []ipam.Base

// String implements pflag.Value.
func (l *baseList) String() string {
	var all []string
	for _, b := range *l {
		all = append(all, fmt.Sprintf("base=%s,size=%d", b.Prefix, b.Bits))
	}
	return strings.Join(all, ";")
}

// Type implements pflag.Value.
func (l *baseList) Type() string { return "base=CIDR,size=N" }

// Set implements pflag.Value. It adds to the list.
func (l *baseList) Set(text string) error {
	words := strings.FieldsFunc(text, func(r rune) bool { return r == ';' || r == ' ' || r == '\t' || r == '\n' })
	if len(words) == 0 {
		return errors.New("the value is empty: write base=CIDR,size=N, for example base=10.64.0.0/10,size=24")
	}
	for _, word := range words {
		base, err := parseBase(word)
		if err != nil {
			return err
		}
		for _, other := range *l {
			if other.Prefix.Overlaps(base.Prefix) {
				return fmt.Errorf("the bases %s and %s overlap: give bases that do not overlap",
					other.Prefix, base.Prefix)
			}
		}
		*l = append(*l, base)
	}
	return nil
}

// parseBase reads base=CIDR,size=N, in either order.
func parseBase(text string) (ipam.Base, error) {
	var base ipam.Base
	var size string
	for _, part := range strings.Split(text, ",") {
		key, value, _ := strings.Cut(part, "=")
		switch {
		case key == "base" && !base.Prefix.IsValid():
			p, err := netip.ParsePrefix(value)
			if err != nil {
				return ipam.Base{}, fmt.Errorf("%q is not a prefix such as 10.64.0.0/10", value)
			}
			base.Prefix = p
		case key == "size" && size == "":
			size = value
		default:
			return ipam.Base{}, fmt.Errorf("%q is not base=CIDR,size=N, for example base=10.64.0.0/10,size=24", text)
		}
	}
	if !base.Prefix.IsValid() || size == "" {
		return ipam.Base{}, fmt.Errorf("%q lacks the base or the size: write base=CIDR,size=N, for example "+
			"base=10.64.0.0/10,size=24", text)
	}
	return checkBase(base, size)
}

func checkBase(base ipam.Base, size string) (ipam.Base, error) {
	p := base.Prefix
	bits, err := strconv.Atoi(size)
	switch {
	case err != nil:
		return ipam.Base{}, fmt.Errorf("the size %q of base %s is not a number: give the prefix length of the "+
			"subnets, such as 24", size, p)
	case p.Addr().Is4In6():
		return ipam.Base{}, fmt.Errorf("the base %s is an IPv4 prefix written as IPv6: write it as IPv4", p)
	case p != p.Masked():
		return ipam.Base{}, fmt.Errorf("the base %s has host bits set: write %s", p, p.Masked())
	case bits < p.Bits() || bits > p.Addr().BitLen():
		return ipam.Base{}, fmt.Errorf("the size %d does not fit the base %s: give the prefix length of the subnets, "+
			"from %d to %d",
			bits, p, p.Bits(), p.Addr().BitLen())
	}
	if err := ipam.CheckSubnet(p); err != nil {
		return ipam.Base{}, err
	}
	base.Bits = bits
	return base, nil
}
