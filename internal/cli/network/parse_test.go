package network

import (
	"encoding/json"
	"strings"
	"testing"
)

// GA-15, GA-18, GA-26: the result of --subnet.
func TestParseSubnet(t *testing.T) {
	for in, want := range map[string]string{
		"10.7.0.0/24":        `{"cidr":"10.7.0.0/24","pool":true}`,
		"2001:db8::/64":      `{"cidr":"2001:db8::/64","pool":true}`,
		"2001:db8::/64,pool": `{"cidr":"2001:db8::/64","pool":true}`,
		"192.0.2.0/24,gateway=192.0.2.1,name=lan":            `{"cidr":"192.0.2.0/24","name":"lan","gateway":"192.0.2.1"}`,
		"192.0.2.0/24,gateway=none,dhcp":                     `{"cidr":"192.0.2.0/24","dhcp":true}`,
		"192.0.2.0/24,dhcp=true,pool=false":                  `{"cidr":"192.0.2.0/24","dhcp":true}`,
		"192.0.2.0/24,dhcp=off,pool=on":                      `{"cidr":"192.0.2.0/24","pool":true}`,
		"/26,from=10.0.0.0/16":                               `{"bits":26,"from":"10.0.0.0/16"}`,
		"/64,from=2001:db8::/48,pool,name=six":               `{"bits":64,"from":"2001:db8::/48","name":"six","pool":true}`,
		"192.0.2.0/24,pool=front":                            `{"cidr":"192.0.2.0/24"} + {"network":"","subnet":"192.0.2.0/24","name":"front"}`,
		"192.0.2.0/24,pool=192.0.2.10+3,pool=192.0.2.128/25": `{"cidr":"192.0.2.0/24"} + {"network":"","range":"192.0.2.10-192.0.2.12"} + {"network":"","range":"192.0.2.128/25"}`,
		"/26,from=10.0.0.0/16,pool=front,name=lan":           `{"bits":26,"from":"10.0.0.0/16","name":"lan"} + {"network":"","subnet":"lan","name":"front"}`,
		"192.0.2.0/24,pool=192.0.2.10-20":                    `{"cidr":"192.0.2.0/24"} + {"network":"","range":"192.0.2.10-192.0.2.20"}`,
		"192.0.2.0/24,pool=no":                               `{"cidr":"192.0.2.0/24"}`,
		"192.0.2.0/24,pool=0,dhcp=Yes":                       `{"cidr":"192.0.2.0/24","dhcp":true}`,
		"2001:db8::/64,pool=2001:db8::10-2001:db8::1f":       `{"cidr":"2001:db8::/64"} + {"network":"","range":"2001:db8::10/124"}`,
		"10.0.0.0/8,name=ten,gateway=10.255.255.254,dhcp=on": `{"cidr":"10.0.0.0/8","name":"ten","gateway":"10.255.255.254","dhcp":true}`,
		"/32,from=10.0.0.0/32":                               `{"bits":32,"from":"10.0.0.0/32"}`,
	} {
		n, err := parseSubnet(in)
		if err != nil {
			t.Errorf("%s: %v", in, err)
			continue
		}
		texts := []string{asJSON(t, n.spec)}
		for _, pool := range n.pools {
			texts = append(texts, asJSON(t, pool))
		}
		if got := strings.Join(texts, " + "); got != want {
			t.Errorf("--subnet %s is\n%s, want\n%s", in, got, want)
		}
	}
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Each refusal says what to write instead.
func TestParseSubnetRefuses(t *testing.T) {
	for in, says := range map[string]string{
		"":                                        "write it like 10.0.0.0/24",
		"192.0.2.0":                               "write it like 10.0.0.0/24",
		"192.0.2.1/24":                            "it has host bits; the subnet that holds 192.0.2.1 is 192.0.2.0/24",
		"::ffff:192.0.2.0/120":                    "mapped into IPv6; write 192.0.2.0",
		"192.0.2.0/24,gw=192.0.2.1":               `it has no option "gw"; the options are dhcp, from, gateway, name, pool`,
		"192.0.2.0/24,":                           `it has no option ""`,
		"192.0.2.0/24,gateway":                    "the gateway must be an address or none",
		"192.0.2.0/24,gateway=192.0.2.1/24":       "the gateway must be an address or none",
		"192.0.2.0/24,name=lan,name=dmz":          "name is given twice",
		"192.0.2.0/24,name=all":                   "the word has a special meaning",
		"192.0.2.0/24,name=192.0.2.1":             "it looks like an address or a range",
		"192.0.2.0/24,name":                       "cannot name a subnet",
		"192.0.2.0/24,dhcp=perhaps":               `dhcp: "perhaps" is neither on nor off`,
		"192.0.2.0/24,pool=192.0.2.9-192.0.2.1":   "it is reversed; write 192.0.2.1-192.0.2.9",
		"192.0.2.0/24,pool=192.0.2.1-2001:db8::1": "one end is IPv4 and the other IPv6",
		"192.0.2.0/24,pool=100-150":               "or a range like 10.0.0.10-10.0.0.20, or 10.0.0.10-20 for short",
		"192.0.2.0/24,pool=192.0.2.10-0.2.20":     "or a range like 10.0.0.10-",
		"192.0.2.0/24,pool=192.0.2.10..192.0.2.9": "or a range like 10.0.0.10-",
		"192.0.2.0/24,pool=192.0.2.10_20":         "or a range like 10.0.0.10-",
		"192.0.2.0/24,pool=192.0.2":               "or a range like 10.0.0.10-",
		"192.0.2.0/24,pool=192.0.2.1O-20":         "or a range like 10.0.0.10-",
		"192.0.2.0/24,pool=192.0.2.1-2-3":         "or a range like 10.0.0.10-",
		"192.0.2.0/24,name=100-150":               "it looks like an address or a range",
		"192.0.2.0/24,pool=":                      "an address is missing",
		"192.0.2.0/24,pool=none":                  "is not an IPv4 or IPv6 address",
		"192.0.2.0/24,from=192.0.0.0/16":          "give only its length: /BITS instead of 192.0.2.0/24",
		"/26":                                     "name the larger prefix with from=CIDR",
		"/26,from=10.0.0.1/16":                    "it has host bits",
		"/8,from=10.0.0.0/16":                     "write /16 to /32",
		"/33,from=10.0.0.0/16":                    "write /16 to /32",
		"/x,from=10.0.0.0/16":                     "write /16 to /32",
		"/026,from=10.0.0.0/16":                   "write /16 to /32",
		"/129,from=2001:db8::/64":                 "write /64 to /128",
		"/26,from=10.0.0.0/16,pool=front":         "name the subnet with name=",
	} {
		n, err := parseSubnet(in)
		if err == nil || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), "--subnet") {
			t.Errorf("--subnet %s is %+v, %v; want it refused with %q", in, n, err, says)
		}
	}
}

func TestParseTagsAndLinks(t *testing.T) {
	if tags, err := parseTags([]string{"a=b", "c=d=e,f", "g="}); err != nil ||
		asJSON(t, tags) != `{"a":"b","c":"d=e,f","g":""}` {
		t.Errorf("%v, %v", tags, err)
	}
	for text, says := range map[string]string{"a": "must be KEY=VALUE", "=b": "must be KEY=VALUE",
		"x=2": "given twice"} {
		if tags, err := parseTags([]string{"x=1", text}); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("--tag %s: %v, %v", text, tags, err)
		}
	}
	links, err := parseLinks([]string{"host=alpha,mode=bridged,link=br0", "mode=routed,host=beta"})
	if err != nil || asJSON(t,
		links) != `[{"host":"alpha","mode":"bridged","link":"br0"},{"host":"beta","mode":"routed","link":""}]` {
		t.Errorf("%v, %v", links, err)
	}
	for text, says := range map[string]string{
		"":                              "the options are host, link, mode",
		"host=alpha":                    "needs a host and a mode",
		"mode=bridged,link=br0":         "needs a host and a mode",
		"host=a,host=b,mode=bridged":    "host is given twice",
		"host=a,mode=bridged,vlan=7":    `no option "vlan"`,
		"host=a,mode=bridged,link=br0,": `no option ""`,
	} {
		if links, err := parseLinks([]string{text}); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("--link %s: %v, %v; want %q", text, links, err, says)
		}
	}
}
