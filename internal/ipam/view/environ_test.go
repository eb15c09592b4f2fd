package view_test

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
	"berth/internal/ipam/service"
)

var ctx = context.Background()

var uuid = regexp.MustCompile(`NETWORK_UUID=[0-9a-f-]{36}\n`)

// readable removes the common prefix and the network's id from a list of variables.
func readable(env []string) string {
	text := strings.ReplaceAll(strings.Join(env, "\n"), "INSTANCE_", "") + "\n"
	return uuid.ReplaceAllString(text, "NETWORK_UUID\n")
}

// net1 has everything that an interface can show of a network.
const environPlan = `
	network net1 mac=aa:00:00 tag.site=a tag.env=prod subnet=192.0.2.0/24,gw=192.0.2.1,dhcp,pool+2001:db8::/64,pool+198.51.100.0/24,gw=198.51.100.254
	network.set net1 link=h1,bridged,br0
	network.set net1 link=h2,macvlan,eth0
	network plain subnet=10.0.0.0/24,pool
`

// words splits a text. A word "-" is an empty one.
func words(text string) []string {
	all := strings.Fields(text)
	for i := range all {
		all[i] = strings.TrimPrefix(all[i], "-")
	}
	return all
}

// macOf returns the MAC with a last digit; "": none.
func macOf(digit string) string {
	if digit == "" {
		return ""
	}
	return "02:00:00:00:00:0" + digit
}

// variables returns the variables of an owner's interfaces in net1, each written as "NUMBER MAC HOST ADDRESS...". The
// MAC is its last digit.
func variables(owner, interfaces string) string {
	all := strings.Split(interfaces, "; ")
	text := fmt.Sprintf("NAME=%s\nNIC_COUNT=%d\n", owner, len(all))
	for _, one := range all {
		of := words(one)
		mode, link, _ := strings.Cut(map[string]string{"h1": "bridged br0", "h2": "macvlan eth0"}[of[2]], " ")
		prefix := "NIC" + of[0] + "_"
		text += strings.ReplaceAll(fmt.Sprintf("@MAC=%s\n@MODE=%s\n@LINK=%s\n@NETWORK_NAME=net1\n@NETWORK_UUID\n"+
			"@NETWORK_TAGS=env=prod site=a\n@NETWORK_MAC_PREFIX=aa:00:00\n", macOf(of[1]), mode, link), "@", prefix)
		for slot, addr := range of[3:] { // a name with a colon, and one that every shell takes
			text += address(prefix, fmt.Sprint(":", slot), addr) + address(prefix, fmt.Sprint("_", slot), addr)
		}
		text += address(prefix, "", of[3])
	}
	return text
}

// address returns the variables of one address of net1. One of the smaller subnet ends with /25.
func address(prefix, slot, addr string) string {
	addr, smaller, _ := strings.Cut(addr, "/")
	of := words(map[string]string{"192.": "192.0.2.0/24 192.0.2.1 true", "2001": "2001:db8::/64 - false",
		"198.": "198.51.100.0/24 198.51.100.254 false",
		"25":   "198.51.100.0/25 198.51.100.1 false"}[cmp.Or(smaller, addr[:4])])
	return strings.NewReplacer("@", prefix, "#", slot).Replace(fmt.Sprintf("@IP#=%s\n@NETWORK_SUBNET#=%s\n"+
		"@NETWORK_GATEWAY#=%s\n@NETWORK_DHCP#=%s\n", addr, of[0], of[1], of[2]))
}

// GA-25: IP:i and NETWORK_*:i for each address of an interface, the same as IP_i and NETWORK_*_i, and the plain
// names for the first. GA-2: the variables of the network. GA-24: several addresses. A row
// has the owner, its interfaces, and the steps before.
func TestGA25Variables(t *testing.T) {
	for c := range ipamtest.Rows(4, `
		one address | rtr | 0 - h1 192.0.2.4 | take net1 rtr 192.0.2.4
		several addresses of one interface | rtr | 0 - h1 198.51.100.4 192.0.2.4 192.0.2.3 | take net1 rtr 0:ip0=198.51.100.4,ip1=192.0.2.4,ip2=192.0.2.3
		both families | rtr | 0 - h1 2001:db8::4 192.0.2.4 | take net1 rtr ip0=2001:db8::4,ip1=192.0.2.4
		two interfaces | rtr | 0 - h1 192.0.2.4 2001:db8::4; 1 - h1 198.51.100.4 | take net1 rtr 0:ip0=192.0.2.4,ip1=2001:db8::4; take net1 rtr 1:add,ip0=198.51.100.4
		an interface in the middle is gone | rtr | 0 - h1 192.0.2.4; 2 - h1 192.0.2.6 | take net1 rtr 0:ip=192.0.2.4; take net1 rtr 1:add,ip0=192.0.2.5; take net1 rtr 2:add,ip0=192.0.2.6; take net1 rtr 1:remove
		one of two was given back | rtr | 0 - h1 192.0.2.4 | take net1 rtr ip0=192.0.2.4,ip1=2001:db8::4; take net1 rtr 0:modify,ip1=none
		a container | web | 0 7 h1 192.0.2.2 | attach A net=net1; ask A web mac=7 -> 192.0.2.2
		a container by its MAC | 02:00:00:00:00:07 | 0 7 h1 192.0.2.2 | attach A net=net1; ask A mac=7 -> 192.0.2.2
		a container of both families | web | 0 7 h1 192.0.2.2 2001:db8::1 | attach A net=net1; attach B net=net1 six; ask B web mac=7 -> 2001:db8::1; ask A web mac=7 -> 192.0.2.2
		a container with two interfaces | web | 0 7 h1 192.0.2.2; 1 8 h1 198.51.100.9 | attach A net=net1; attach C net=net1; ask A web mac=7 -> 192.0.2.2; ask C web mac=8 ip=198.51.100.9
		a container on another host | web | 0 7 h2 192.0.2.2 | host h2; attach A net=net1; ask A web mac=7 -> 192.0.2.2; host h1
		a host without a link | rtr | 0 - - 192.0.2.4 | host h3; take net1 rtr 192.0.2.4; host h1
		reserved, not in use | web | 0 - h1 192.0.2.50 2001:db8::50 | reserve net1 web 192.0.2.50,2001:db8::50
		reserved and in use | web | 0 7 h1 192.0.2.50 2001:db8::50 | reserve net1 web 192.0.2.50,2001:db8::50; attach B net=net1 six; ask B web mac=7 -> 2001:db8::50
		reserved for it and in use beside it | web | 0 7 h1 192.0.2.50 2001:db8::1 | reserve net1 web 192.0.2.50; attach A net=net1; ask A web mac=7 -> 192.0.2.50; attach B net=net1 six; ask B web mac=7 -> 2001:db8::1
		taken beside what is reserved in the same place | rtr | 0 - h1 192.0.2.4 192.0.2.50 | reserve net1 rtr 192.0.2.50; take net1 rtr 192.0.2.4
		the reserved one is taken | rtr | 0 - h1 192.0.2.50 | reserve net1 rtr 192.0.2.50; take net1 rtr 192.0.2.50
		what it had is not what it has | web | 0 8 h1 192.0.2.10 | attach A net=net1; ask A web mac=7 ip=192.0.2.9; back A 192.0.2.9; ask A web mac=8 ip=192.0.2.10
		what it has in another network | rtr | 0 - h1 192.0.2.4 | take net1 rtr 192.0.2.4; take plain rtr 10.0.0.4
	`) {
		t.Run(c[0], func(t *testing.T) {
			r := ipamtest.New(t)
			r.Run(environPlan + strings.ReplaceAll(c[3], "; ", "\n"))
			env, err := r.S.Environment(ctx, "net1", c[1])
			must(t, err)
			if diff := gocmp.Diff(variables(c[1], c[2]), readable(env)); diff != "" {
				t.Error(diff)
			}
			for _, line := range env {
				if key, _, ok := strings.Cut(line, "="); !ok || strings.ContainsAny(line, "\x00\n") || key == "" {
					t.Errorf("%q is no variable", line)
				}
			}
		})
	}
}

// The environment of an owner without an address in the network is refused.
func TestEnvironmentRefused(t *testing.T) {
	r := ipamtest.New(t)
	r.Run(environPlan + `attach A net=net1
		ask A web mac=7 -> 192.0.2.2
		back A 192.0.2.2`)
	for _, c := range [][2]string{{"net1", "nobody"}, {"net1", "web"}, {"net1", "02:00:00:00:00:07"}, {"net1", ""},
		{"nowhere", "web"}} {
		if _, err := r.S.Environment(ctx, c[0], c[1]); ipamtest.KindOf(err) != "notfound" ||
			!strings.Contains(err.Error(), c[0]) {
			t.Errorf("%q: %v", c, err)
		}
	}
}

// GA-25: hooks get the variables of an event, and those of the owner's addresses at that time.
func TestEventEnvironment(t *testing.T) {
	for _, c := range []struct {
		name, steps string
		event       int // counted back from the last take or release
		// VERB SUBNET ADDRESS KIND OWNER MAC, and the interfaces; "": the network is gone
		facts, interfaces string
	}{
		{"an address is taken", `take net1 rtr 0:ip0=192.0.2.4,ip1=192.0.2.5`, 1,
			"lease.take 192.0.2.0/24 192.0.2.4 external rtr -",
			"0 - h1 192.0.2.4 192.0.2.5"},
		{"a container's", `attach A net=net1
			ask A web mac=7`, 0, "lease.take 192.0.2.0/24 192.0.2.2 automatic web 7",
			"0 7 h1 192.0.2.2"},
		{"the one that is released is among them, in its place", `take net1 rtr 0:ip0=192.0.2.4,ip1=192.0.2.5
			take net1 rtr 0:modify,ip1=none`, 0, "lease.release 192.0.2.0/24 192.0.2.5 external rtr -",
			"0 - h1 192.0.2.4 192.0.2.5"},
		{"a container without a name is its MAC's", `attach A net=net1
			ask A mac=7 ip=192.0.2.9
			back A 192.0.2.9`, 0, "lease.release 192.0.2.0/24 192.0.2.9 static 02:00:00:00:00:07 7",
			"0 7 h1 192.0.2.9"},
		{"nobody's", `attach A net=net1
			ask A ip=192.0.2.9`, 0, "lease.take 192.0.2.0/24 192.0.2.9 auxiliary - -",
			"0 - h1 192.0.2.9"},
		{"the network was renamed and the subnet is another since", `take net1 rtr 198.51.100.4
			subnet.set net1 198.51.100.0/24 cidr=198.51.100.0/25 gw=198.51.100.1
			network.set net1 name=net9
			network.set net9 name=net1`, 0, "lease.take 198.51.100.0/24 198.51.100.4 external rtr -",
			"0 - h1 198.51.100.4/25"},
		{"the network is gone since", `take plain rtr 10.0.0.4
			release plain rtr
			network.rm plain`, 0, "lease.release 10.0.0.0/24 10.0.0.4 external rtr -",
			""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := ipamtest.New(t)
			r.Run(environPlan + c.steps)
			e := leaseEvents(t, r.S)[c.event]
			env, err := r.S.EventEnvironment(ctx, &e)
			must(t, err)
			for _, key := range []string{"BERTH_EVENT_ID", "BERTH_TIME", "BERTH_ACTOR"} {
				i := slices.IndexFunc(env, func(line string) bool { return strings.HasPrefix(line, key+"=") })
				if i < 0 {
					t.Fatalf("no %s", key)
				}
				env = slices.Delete(env, i, i+1)
			}
			of := words(c.facts)
			want := fmt.Sprintf("BERTH_EVENT=%s\nBERTH_HOST=h1\nBERTH_SPACE=local\nBERTH_SUBNET=%s\nBERTH_ADDRESS=%s\n"+
				"BERTH_KIND=%s\nBERTH_OWNER=%s\nBERTH_MAC=%s\n", of[0], of[1], of[2], of[3], of[4], macOf(of[5]))
			if c.interfaces != "" {
				want += "BERTH_NETWORK=net1\n" + variables(of[4], c.interfaces)
			}
			if diff := gocmp.Diff(want, readable(env)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// leaseEvents lists the takes and releases, the last one first.
func leaseEvents(t *testing.T, s *service.Service) []ipam.Event {
	t.Helper()
	all, err := s.Events(ctx, ipam.EventFilter{})
	must(t, err)
	all = slices.DeleteFunc(all,
		func(e ipam.Event) bool { return e.Verb != ipam.LeaseTaken && e.Verb != ipam.LeaseReleased })
	slices.Reverse(all)
	return all
}

// Each value is one line, whatever name the engine gives a container.
func TestEnvironmentLines(t *testing.T) {
	r := ipamtest.New(t)
	r.Run(environPlan + "attach A net=net1")
	_, err := r.S.RequestAddress(ctx, ipam.AddressRequest{Pool: r.Pools["A"], Name: "x\nPATH=/tmp\x00é",
		MAC: ipamtest.MAC(7)})
	must(t, err)
	e := leaseEvents(t, r.S)[0]
	env, err := r.S.EventEnvironment(ctx, &e)
	if err != nil || !slices.Contains(env, "BERTH_OWNER=x?PATH=/tmp?é") ||
		!slices.Contains(env, "INSTANCE_NAME=x?PATH=/tmp?é") {
		t.Errorf("%q, %v", env, err)
	}
}
