package ipam

import (
	"errors"
	"fmt"
	"iter"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func at(slot int, address string) Wish {
	return Wish{Slot: slot, Address: netip.MustParseAddr(address)}
}

var sameAddrs = cmpopts.EquateComparable(netip.Addr{})

// rows yields the two cells of each line of a table.
func rows(table string) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for line := range strings.Lines(strings.Trim(table, "\n\t")) {
			left, right, _ := strings.Cut(strings.Trim(line, "\n\t"), " | ")
			if !yield(left, right) {
				return
			}
		}
	}
}

// GA-24: the forms of the design document, and their short forms.
func TestParseInterface(t *testing.T) {
	for in, long := range rows(`
		192.0.2.4 | 0:ip0=192.0.2.4
		2001:db8::4 | 0:ip0=2001:db8::4
		1:: | 0:ip0=1::
		:: | 0:ip0=::
		pool | 0:ip0=pool
		front | 0:ip0=front
		10.0 | 0:ip0=10.0
		remove | 0:ip0=remove
		ip=192.0.2.4 | 0:ip0=192.0.2.4
		ip=pool,ip1=2001:db8::4 | 0:ip0=pool,ip1=2001:db8::4
		0:ip=pool | 0:ip0=pool
		0:ip0=192.0.2.4,ip1=pool,ip2=some-pool | 0:ip0=192.0.2.4,ip1=pool,ip2=some-pool
		0:ip0=192.0.2.12,ip1=pool,ip2=front | 0:ip0=192.0.2.12,ip1=pool,ip2=front
		3:ip0=2001:db8::4 | 3:ip0=2001:db8::4
		63:ip1=pool,ip0=front | 63:ip0=front,ip1=pool
		-1:add,ip0=pool,ip1=192.0.2.4 | -1:add,ip0=pool,ip1=192.0.2.4
		-1:add | -1:add
		add,ip=pool | 0:add,ip0=pool
		0:modify,ip1=192.0.2.10 | 0:modify,ip1=192.0.2.10
		1:modify,ip1=none | 1:modify,ip1=none
		modify,ip=none,ip63=pool | 0:modify,ip0=none,ip63=pool
		1:remove | 1:remove
	`) {
		if got, err := ParseInterface(in); err != nil || formatInterface(got) != long {
			t.Errorf("ParseInterface(%q): %+v, %v", in, got, err)
		}
	}
	want := Interface{Number: 1, Action: ModifyInterface, Wishes: []Wish{at(0, "192.0.2.4"), {Slot: 1},
		{Slot: 2, Pool: "front"}, {Slot: 3, None: true}}}
	got, err := ParseInterface("1:modify,ip0=192.0.2.4,ip1=pool,ip2=front,ip3=none")
	if diff := cmp.Diff(want, got, sameAddrs); err != nil || diff != "" {
		t.Errorf("each kind of wish: %v\n%s", err, diff)
	}
}

// GA-24: a bad interface is refused, and the refusal says what to write instead.
func TestParseInterfaceRefuses(t *testing.T) {
	for in, says := range rows(`
		 | an address is missing
		ip0= | an address is missing
		0: | "" has no slot; write ip0=ADDRESS
		0:pool | "pool" has no slot; write ip0=pool
		ip0=pool, | "" has no slot
		192.0.2.4,192.0.2.5 | "192.0.2.4" has no slot; write ip0=192.0.2.4, and ip1=... for a second address
		2001:db8::1,2001:db8::2 | write ip0=2001:db8::1
		ip0=192.0.2.4,ip2=pool | ip1 is missing; number the addresses of an interface from ip0 on, without gaps
		ip1=pool | ip0 is missing
		-1:add,ip1=pool | ip0 is missing
		ip=pool,ip0=pool | ip0 is given twice
		0:modify,ip1=pool,ip1=none | ip1 is given twice
		ip64=pool | "ip64" is not one of ip0 to ip63
		ip01=pool | "ip01" is not one of ip0 to ip63
		ip-1=pool | "ip-1" is not one of ip0 to ip63
		ip99999999999999999999=pool | is not one of ip0 to ip63
		mac=02:42:0a:00:00:01 | "mac" is not one of ip0 to ip63
		ip0=pool,network=net1 | "network" is not one of ip0 to ip63
		 ip0=pool | " ip0" is not one of
		64:ip0=pool | 64 is not the number of an interface; write 0 to 63, or -1 for the next
		00:ip0=pool | "00" is not the number of an interface
		-0:ip0=pool | "-0" is not the number of an interface
		-2:add,ip0=pool | -2 is not the number of an interface
		99999999999999999999:ip0=pool | is not the number of an interface
		-1:ip0=pool | -1 means the next interface and needs add; write -1:add,ip0=pool
		-1:modify,ip0=pool | needs add
		ip0=none | ip0=none releases an existing address and needs modify; write 0:modify,ip0=none
		none | write 0:modify,ip0=none
		2:add,ip0=none | write 2:modify,ip0=none
		0:modify | write 0:modify,ip0=ADDRESS
		1:remove,ip0=pool | write 1:remove
		ip0=192.0.2.4/24 | is a prefix, not an address; write 192.0.2.4
		192.0.2.0/24 | is a prefix
		ip0=/24 | write an address
		192.0.2.4-192.0.2.9 | is a range, not an address
		192.0.2.4-9 | is a range, not an address
		192.0.2.4 192.0.2.5 | "192.0.2.4 192.0.2.5" is 2 addresses; write ip0=192.0.2.4,ip1=192.0.2.5
		ip0=192.0.2.4+2 | is a range
		192.0.2.300 | "192.0.2.300" is not an IPv4 or IPv6 address
		ip0=192.0.2.04 | leading zeros, which some programs read as octal; write 192.0.2.4
		::ffff:192.0.2.4 | mapped into IPv6; write 192.0.2.4
		ip0=fe80::1%eth0 | has a zone
		2001:db8::x | "2001:db8::x" is not an IPv4 or IPv6 address
		all | the word has a special meaning
		a b | cannot name a pool
		ip0=ip1=pool | cannot name a pool
		aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa | 1 to 63 letters
	`) {
		got, err := ParseInterface(in)
		if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), says) ||
			!strings.Contains(err.Error(), fmt.Sprintf("%q", in)) {
			t.Errorf("ParseInterface(%q) = %+v, %v; want it refused with %q", in, got, err, says)
		}
	}
}

// An interface that comes as JSON has the same rules.
func TestInterfaceChecked(t *testing.T) {
	for _, c := range []struct {
		in   Interface
		says string
	}{
		{Interface{Action: "drop"}, `"drop" is not one of add, modify and remove`},
		{Interface{Wishes: []Wish{{Slot: -1}}}, "ip-1 is not one of"},
		{Interface{Wishes: []Wish{{Address: netip.MustParseAddr("192.0.2.1"), Pool: "front"}}}, "gives more than one of"},
		{Interface{Action: ModifyInterface, Wishes: []Wish{{None: true, Pool: "front"}}}, "gives more than one of"},
		{Interface{Wishes: []Wish{at(0, "::ffff:192.0.2.1")}}, "write 192.0.2.1"},
		{Interface{Wishes: []Wish{at(0, "fe80::1%eth0")}}, "has a zone"},
		{Interface{Wishes: []Wish{{Pool: "pool"}}}, "a special meaning"},
		{Interface{Wishes: []Wish{{}, {}}}, "given twice"},
	} {
		if err := c.in.Check(); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: %v; want it refused with %q", c.in, err, c.says)
		}
	}
}

// formatInterface writes in the long form what ParseInterface reads.
func formatInterface(in Interface) string {
	text := fmt.Sprintf("%d:", in.Number)
	if in.Action != Ensure {
		text += string(in.Action)
	}
	for i, w := range in.Wishes {
		if i > 0 || in.Action != Ensure {
			text += ","
		}
		value := "pool"
		switch {
		case w.Address.IsValid():
			value = w.Address.String()
		case w.None:
			value = "none"
		case w.Pool != "":
			value = w.Pool
		}
		text += fmt.Sprintf("ip%d=%s", w.Slot, value)
	}
	return text
}

// FuzzParseInterface: a parsed interface keeps the rules, and its long form means the same. GA-24
func FuzzParseInterface(f *testing.F) {
	for _, s := range []string{"pool", "192.0.2.4", "0:ip0=192.0.2.4,ip1=pool,ip2=NAME", "-1:add,ip=2001:db8::1",
		"1:modify,ip1=none",
		"1:remove", "0:modify,ip63=front,ip2=none", "2001:db8::1,::2", "10:add", "ip0=::ffff:1.2.3.4"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		in, err := ParseInterface(s)
		if err != nil {
			if !errors.Is(err, ErrInvalid) {
				t.Fatalf("%q: the refusal is of no kind: %v", s, err)
			}
			return
		}
		if err := in.Check(); err != nil {
			t.Fatalf("%q is read, and then refused: %v", s, err)
		}
		if !slices.IsSortedFunc(in.Wishes, func(a, b Wish) int { return a.Slot - b.Slot }) {
			t.Fatalf("%q: the wishes are out of order: %+v", s, in.Wishes)
		}
		if again, err := ParseInterface(formatInterface(in)); err != nil || !cmp.Equal(in, again, sameAddrs) {
			t.Fatalf("%q is %+v, but %q is %+v, %v", s, in, formatInterface(in), again, err)
		}
	})
}
