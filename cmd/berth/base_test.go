package main

import (
	"strings"
	"testing"

	"berth/internal/ipam/ipamtest"
)

func TestBaseList(t *testing.T) {
	for c := range ipamtest.Rows(3, `
		# what is set, one behind the other; as String writes it, or what an error has in it
		base=10.64.0.0/10,size=24 | base=10.64.0.0/10,size=24
		size=24,base=10.64.0.0/10 | base=10.64.0.0/10,size=24
		base=10.64.0.0/10,size=10 | base=10.64.0.0/10,size=10
		base=10.64.0.0/10,size=32 | base=10.64.0.0/10,size=32
		base=10.0.0.0/9,size=24 & base=10.128.0.0/9,size=20 | base=10.0.0.0/9,size=24;base=10.128.0.0/9,size=20
		_base=10.0.0.0/9,size=24_;_base=fd00::/48,size=64$ | base=10.0.0.0/9,size=24;base=fd00::/48,size=64
		_ | | the value is empty
		_;_ | | the value is empty
		10.0.0.0/8 | | is not base=CIDR,size=N
		base=10.0.0.0/8 | | lacks the base or the size
		size=24 | | lacks the base or the size
		base=10.0.0.0/8,size=24,size=25 | | is not base=CIDR,size=N
		base=10.0.0.0/8,base=10.0.0.0/8,size=24 | | is not base=CIDR,size=N
		base=10.0.0.0,size=24 | | is not a prefix
		base=10.0.0.0/33,size=24 | | is not a prefix
		base=fe80::1%eth0/64,size=64 | | is not a prefix
		base=::ffff:10.0.0.0/104,size=120 | | written as IPv6
		base=10.0.0.1/8,size=24 | | write 10.0.0.0/8
		base=127.0.0.0/8,size=24 | | the subnet 127.0.0.0/8 begins in 127.0.0.0/8, the loopback addresses of each host
		base=10.0.0.0/8,size=7 | | from 8 to 32
		base=10.0.0.0/8,size=33 | | from 8 to 32
		base=fd00::/48,size=129 | | from 48 to 128
		base=10.0.0.0/8,size=x | | is not a number
		base=10.0.0.0/8,size=24 & base=10.64.0.0/10,size=24 | | overlap
	`) {
		var l baseList
		var err error
		for text := range strings.SplitSeq(c[0], " & ") {
			if err == nil {
				err = l.Set(strings.NewReplacer("_", " ", "$", "\n").Replace(text))
			}
		}
		if c[2] == "" && (err != nil || l.String() != c[1]) ||
			c[2] != "" && (err == nil || !strings.Contains(err.Error(), c[2])) {
			t.Errorf("%q: %q, %v", c, l.String(), err)
		}
	}
}

func FuzzBaseList(f *testing.F) {
	f.Add("base=10.64.0.0/10,size=24")
	f.Add("base=10.0.0.0/9,size=24 base=fd00::/48,size=64;")
	f.Add("base=::ffff:10.0.0.0/104,size=120")
	f.Fuzz(func(t *testing.T, text string) {
		var l baseList
		if l.Set(text) != nil {
			return
		}
		if len(l) == 0 {
			t.Fatalf("%q was taken and says nothing", text)
		}
		for _, b := range l {
			if b.Prefix != b.Prefix.Masked() || b.Bits < b.Prefix.Bits() || b.Bits > b.Prefix.Addr().BitLen() {
				t.Errorf("%q gives the base %v", text, b)
			}
		}
		var again baseList
		if err := again.Set(l.String()); err != nil || again.String() != l.String() {
			t.Errorf("%q was written as %q, which reads as %q, %v", text, l.String(), again.String(), err)
		}
	})
}
