package ipam_test

import (
	"encoding/json"
	"net/netip"
	"testing"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
)

// The words of an event, in `berth events`, in dry runs, on the page and in webhooks: what was before and after it, its
// detail, and the words.
func TestEventText(t *testing.T) {
	for c := range ipamtest.Rows(4, `
		| {"range":"10.77.20.5-10.77.20.9","note":"printer"} | | 10.77.20.5-10.77.20.9 "printer"
		{"quarantine":"5m0s"} | {"quarantine":"0s"} | | quarantine 5m -> 0s
		{"quarantine":"1h0m0s"} | {"quarantine":"1h5m0s"} | | quarantine 1h -> 1h5m
		| {"name":"lan","cidr":"192.0.2.0/24","pools":[{"range":"192.0.2.0/24"}]} | | lan, pools (192.0.2.0/24)
		{"range":"192.0.2.10-192.0.2.19"} | | 192.0.2.10-192.0.2.19 | 192.0.2.10-192.0.2.19
		{"name":"lan","dhcp":true} | {"name":"lan2","dhcp":false} | | name lan -> lan2, dhcp yes -> no
		{"gateway":"192.0.2.1"} | {"gateway":""} | | gateway 192.0.2.1 -> none
		{"a":1} | {"b":"x"} | | a 1 -> none, b none -> x
		null | {"note":"a\tb"} | | "a\tb"
		{"tags":{"site":"a"}} | {"tags":{"site":"b"}} | | tags site a -> site b
		| | |
		| | external 0:ip0 | external 0:ip0
		| {"owner":"web"} | by hand | web (by hand)
		[1] | [2] | |
		{"name":"a","range":"192.0.2.1"} | {"name":"b","range":"192.0.2.1"} | | 192.0.2.1 name a -> b
		{"name":"a","range":"192.0.2.1-192.0.2.9"} | [{"name":"a","range":"192.0.2.1"},{"name":"a","range":"192.0.2.9"}] | | a 192.0.2.1-192.0.2.9 -> a 192.0.2.1; a 192.0.2.9
		{"name":"a","range":"192.0.2.1-192.0.2.9"} | [] | | a 192.0.2.1-192.0.2.9
	`) {
		e := &ipam.Event{Verb: ipam.GatewaySet, Network: "net1", Subnet: netip.MustParsePrefix("192.0.2.0/24"),
			Before: json.RawMessage(c[0]), After: json.RawMessage(c[1]), Detail: c[2]}
		if got := e.Changed(); got != c[3] {
			t.Errorf("%q\nwant\n%q", got, c[3])
		}
		want := "subnet.gateway net1 192.0.2.0/24"
		if c[3] != "" {
			want += " " + c[3]
		}
		if got := e.Text(); got != want {
			t.Errorf("%q\nwant\n%q", got, want)
		}
	}
}
