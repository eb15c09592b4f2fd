package main

import (
	"strings"
	"testing"
)

func TestBaseList(t *testing.T) {
	for _, c := range []struct {
		texts []string
		want  string // as String writes it; empty: an error that has err in it
		err   string
	}{
		{[]string{"base=10.64.0.0/10,size=24"}, "base=10.64.0.0/10,size=24", ""},
		{[]string{"size=24,base=10.64.0.0/10"}, "base=10.64.0.0/10,size=24", ""},
		{[]string{"base=10.64.0.0/10,size=10"}, "base=10.64.0.0/10,size=10", ""},
		{[]string{"base=10.64.0.0/10,size=32"}, "base=10.64.0.0/10,size=32", ""},
		{[]string{"base=10.0.0.0/9,size=24", "base=10.128.0.0/9,size=20"},
			"base=10.0.0.0/9,size=24;base=10.128.0.0/9,size=20", ""},
		{[]string{" base=10.0.0.0/9,size=24 ; base=fd00::/48,size=64\n"},
			"base=10.0.0.0/9,size=24;base=fd00::/48,size=64", ""},
		{[]string{""}, "", "it is empty"},
		{[]string{" ; "}, "", "it is empty"},
		{[]string{"10.0.0.0/8"}, "", "is not base=CIDR,size=N"},
		{[]string{"base=10.0.0.0/8"}, "", "names no base or no size"},
		{[]string{"size=24"}, "", "names no base or no size"},
		{[]string{"base=10.0.0.0/8,size=24,size=25"}, "", "is not base=CIDR,size=N"},
		{[]string{"base=10.0.0.0/8,base=10.0.0.0/8,size=24"}, "", "is not base=CIDR,size=N"},
		{[]string{"base=10.0.0.0,size=24"}, "", "is not a prefix"},
		{[]string{"base=10.0.0.0/33,size=24"}, "", "is not a prefix"},
		{[]string{"base=fe80::1%eth0/64,size=64"}, "", "is not a prefix"},
		{[]string{"base=::ffff:10.0.0.0/104,size=120"}, "", "written as IPv6"},
		{[]string{"base=10.0.0.1/8,size=24"}, "", "the prefix is 10.0.0.0/8"},
		{[]string{"base=10.0.0.0/8,size=7"}, "", "from 8 to 32"},
		{[]string{"base=10.0.0.0/8,size=33"}, "", "from 8 to 32"},
		{[]string{"base=fd00::/48,size=129"}, "", "from 48 to 128"},
		{[]string{"base=10.0.0.0/8,size=x"}, "", "is not a number"},
		{[]string{"base=10.0.0.0/8,size=24", "base=10.64.0.0/10,size=24"}, "", "overlap"},
	} {
		var l baseList
		var err error
		for _, text := range c.texts {
			if err = l.Set(text); err != nil {
				break
			}
		}
		switch {
		case c.err == "" && (err != nil || l.String() != c.want):
			t.Errorf("%q: %q, %v; want %q", c.texts, l.String(), err, c.want)
		case c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)):
			t.Errorf("%q: %v; want an error with %q", c.texts, err, c.err)
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
