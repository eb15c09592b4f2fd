package deploy

import (
	"fmt"
	"strings"
	"testing"
)

// What the engine would refuse at `docker compose up`, or no interface can have, is refused before, with its place.
func TestFaults(t *testing.T) {
	for _, c := range []struct {
		name    string
		service string // keys of the service web, from line 4 on
		config  string // of the network dual, on line 6
		want    string // nothing: it is taken
	}{
		{name: "one entry without a subnet, which the override completes", config: "[{gateway: 10.9.0.1}]"},
		{name: "two entries of one subnet", config: "[{subnet: 10.9.0.0/24}, {gateway: 10.9.0.1}]",
			want: `:6: networks.dual.ipam.config[1] has no subnet & "invalid CIDR address"`},
		{name: "an empty entry", config: "[{subnet: 10.9.0.0/24}, {}]", want: ":6: networks.dual.ipam.config[1] has no"},
		{name: "none with a subnet", config: "[{gateway: 10.9.0.1}, {gateway: 'fd00:9::1'}]", want: "config[0] has no"},
		{name: "no length", config: "[{subnet: 10.9.0.0}]", want: ":6: networks.dual.ipam.config[0]: & it has no length"},
		{name: "host bits", config: "[{subnet: 10.9.0.1/24}]", want: "10.9.0.1 is 10.9.0.0/24"},
		{name: "multicast", config: "[{subnet: 224.0.1.0/24}]", want: "224.0.1.0/24 begins in 224.0.0.0/4, the multicast addresses"},
		{name: "all keys", config: "[{subnet: 10.9.0.0/24, gateway: 10.9.0.1, ip_range: 10.9.0.128/25, aux_addresses: " +
			"{a: 10.9.0.7}}, {subnet: 'fd00:9::/64', gateway: 'fd00:9::1'}]"},
		{name: "a gateway outside", config: "[{subnet: 10.9.0.0/24, gateway: 10.8.0.1}]",
			want: "config[0].gateway is 10.8.0.1, which is outside the subnet 10.9.0.0/24"},
		{name: "a gateway outside what the override writes", config: "[{gateway: 10.8.0.1}]",
			want: "gateway is 10.8.0.1, which is outside the subnet 10.9.0.0/24 or fd00:9::/64"},
		{name: "a range outside", config: "[{subnet: 10.9.0.0/24, ip_range: 10.9.0.0/23}]", want: "ip_range is 10.9.0.0/23"},
		{name: "no range", config: "[{subnet: 10.9.0.0/24, ip_range: 10.9.0.x}]", want: "config[0].ip_range: "},
		{name: "an auxiliary address outside", config: "[{subnet: 10.9.0.0/24, aux_addresses: {a: 10.8.0.7}}]",
			want: "config[0].aux_addresses.a is 10.8.0.7"},

		{name: "a MAC", service: "mac_address: 02:42:0a:00:00:02"},
		{name: "a MAC of five octets", service: "mac_address: 02:42:0a:00:02",
			want: `:4: services.web.mac_address is "02:42:0a:00:02", which is not a MAC address`},
		{name: "a multicast MAC", service: "mac_address: 01:00:5e:00:00:01",
			want: ":4: services.web.mac_address is 01:00:5e:00:00:01, which no interface can have"},
		{name: "the MAC of all", service: "mac_address: ff:ff:ff:ff:ff:ff", want: "which no interface can have"},
		{name: "the MAC of none", service: "mac_address: 00:00:00:00:00:00", want: "which no interface can have"},
		{name: "a network's MAC", service: "networks: {dual: {mac_address: 03:00:00:00:00:01}}",
			want: ":4: services.web.networks.dual.mac_address is 03:00:00:00:00:01"},
		{name: "a MAC for replicas", service: "mac_address: 02:42:0a:00:00:02, scale: 2",
			want: "services.web.mac_address is 02:42:0a:00:00:02, but services.web has 2 replicas"},
		{name: "a network's MAC for replicas",
			service: "networks: {dual: {mac_address: 02:42:0a:00:00:02}}, deploy: {replicas: 3}",
			want:    "services.web.networks.dual.mac_address is 02:42:0a:00:00:02, but services.web has 3 replicas"},
		{name: "a MAC, and no replicas", service: "mac_address: 02:42:0a:00:00:02, scale: 0",
			want: "its services have no replicas"},
	} {
		t.Run(c.name, func(t *testing.T) {
			service, config := c.service, c.config
			if !strings.Contains(service, "networks:") {
				service += ", networks: [dual]"
			}
			if config == "" {
				config = "[]"
			}
			source := file(t, fmt.Sprintf("# a comment\nservices:\n  web:\n    {image: x, %s}\nnetworks:\n"+
				"  dual: {ipam: {driver: berth, options: {network: dual}, config: %s}}\n",
				strings.TrimPrefix(service, ", "), config))
			_, err := load(t, source).Plan(Mapping{}, planned())
			if c.want == "" {
				fine(t, err)
				return
			}
			if err == nil {
				t.Fatal("it is not refused")
			}
			for word := range strings.SplitSeq(c.want, " & ") {
				if !strings.Contains(err.Error(), word) {
					t.Errorf("got %v, want %s", err, word)
				}
			}
		})
	}
}
