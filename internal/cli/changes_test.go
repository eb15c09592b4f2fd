package cli

import (
	"encoding/json"
	"net/netip"
	"strings"
	"testing"

	"berth/internal/ipam"
)

// What would change, as --dry-run tells it.
func TestChangeLine(t *testing.T) {
	for _, c := range []struct{ before, after, want string }{
		{"", `{"name":"lan","cidr":"192.0.2.0/24","pools":[{"range":"192.0.2.0/24"}]}`,
			`name=lan cidr=192.0.2.0/24 pools=(range=192.0.2.0/24)`},
		{`{"range":"192.0.2.10-192.0.2.19"}`, "", `was range=192.0.2.10-192.0.2.19`},
		{`{"name":"lan","dhcp":true}`, `{"name":"lan2","dhcp":false}`, `name=lan->lan2 dhcp=true->false`},
		{`{"gateway":"192.0.2.1"}`, `{"gateway":""}`, `gateway=192.0.2.1->none`},
		{`{"a":1}`, `{"b":"x"}`, `a=1->none b=none->x`},
		{"null", `{"note":"a\tb"}`, `note=a?b`},
		{"", "", ""},
		{"[1]", "[2]", ""},
		{`{"name":"a","range":"192.0.2.1"}`, `{"name":"b","range":"192.0.2.1"}`, "name=a->b range=192.0.2.1"},
		{`{"name":"a","range":"192.0.2.1-192.0.2.9"}`,
			`[{"name":"a","range":"192.0.2.1"},{"name":"a","range":"192.0.2.9"}]`,
			"was name=a range=192.0.2.1-192.0.2.9, is name=a range=192.0.2.1, name=a range=192.0.2.9"},
		{`{"name":"a","range":"192.0.2.1-192.0.2.9"}`, "[]", "was name=a range=192.0.2.1-192.0.2.9"},
	} {
		e := &ipam.Event{Verb: ipam.GatewaySet, Network: "net1", Subnet: netip.MustParsePrefix("192.0.2.0/24"),
			Before: json.RawMessage(c.before), After: json.RawMessage(c.after)}
		want := strings.TrimRight("subnet.gateway      net1 192.0.2.0/24         "+c.want, " ")
		if got := changeLine(e); got != want {
			t.Errorf("%q\nwant\n%q", got, want)
		}
	}
	taken := &ipam.Event{Verb: ipam.LeaseTaken, Network: "net1", Address: netip.MustParseAddr("192.0.2.12"),
		Name: "rtr", Detail: "external 0:ip0"}
	if got, want := changeLine(taken), "lease.take          net1 192.0.2.12 rtr       (external 0:ip0)"; got != want {
		t.Errorf("%q\nwant\n%q", got, want)
	}
	if got := ChangeLines(nil); len(got) != 1 || got[0] != "nothing would change" {
		t.Errorf("%q", got)
	}
}
