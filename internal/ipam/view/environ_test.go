package view_test

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

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

// indented removes the indentation from the lines of a table, and ends it with a newline.
func indented(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n") + "\n"
}

// net1 has everything that an interface can show of a network.
const environPlan = `
	network net1 mac=aa:00:00 tag.site=a tag.env=prod subnet=192.0.2.0/24,gw=192.0.2.1,dhcp,pool+2001:db8::/64,pool+198.51.100.0/24,gw=198.51.100.254
	network.set net1 link=h1,bridged,br0
	network.set net1 link=h2,macvlan,eth0
	network plain subnet=10.0.0.0/24,pool
`

// nic returns the variables that all interfaces of net1 on a host have.
func nic(n int, mac, link string) string {
	prefix := fmt.Sprintf("NIC%d_", n)
	mode, parent, _ := strings.Cut(link, " ")
	return strings.Join([]string{prefix + "MAC=" + mac, prefix + "MODE=" + mode, prefix + "LINK=" + parent, prefix +
		"NETWORK_NAME=net1", prefix + "NETWORK_UUID",
		prefix + "NETWORK_TAGS=env=prod site=a", prefix + "NETWORK_MAC_PREFIX=aa:00:00", ""}, "\n")
}

// ip returns the variables of one address of an interface. The slot "" means the plain names. A numbered slot has
// its variables twice: with a colon before the number, and with an underscore, which every shell takes.
func ip(n int, slot, addr, subnet, gateway string, dhcp bool) string {
	prefix := fmt.Sprintf("NIC%d_", n)
	if number, ok := strings.CutPrefix(slot, ":"); ok {
		return ipNamed(prefix, slot, addr, subnet, gateway, dhcp) +
			ipNamed(prefix, "_"+number, addr, subnet, gateway, dhcp)
	}
	return ipNamed(prefix, slot, addr, subnet, gateway, dhcp)
}

func ipNamed(prefix, slot, addr, subnet, gateway string, dhcp bool) string {
	return fmt.Sprintf("%sIP%s=%s\n%sNETWORK_SUBNET%s=%s\n%sNETWORK_GATEWAY%s=%s\n%sNETWORK_DHCP%s=%t\n",
		prefix, slot, addr, prefix, slot, subnet, prefix, slot, gateway, prefix, slot, dhcp)
}

func ip4(n int, slot, addr string) string {
	return ip(n, slot, addr, "192.0.2.0/24", "192.0.2.1", true)
}
func ip6(n int, slot, addr string) string { return ip(n, slot, addr, "2001:db8::/64", "", false) }
func ipOld(n int, slot, addr string) string {
	return ip(n, slot, addr, "198.51.100.0/24", "198.51.100.254", false)
}

func count(owner string, n int) string { return fmt.Sprintf("NAME=%s\nNIC_COUNT=%d\n", owner, n) }

// GA-25: IP:i and NETWORK_*:i for each address of an interface, the same as IP_i and NETWORK_*_i, and the plain
// names for the first. GA-2: the variables of the network. GA-24: several addresses.
func TestGA25Variables(t *testing.T) {
	const h1, h2 = "bridged br0", "macvlan eth0"
	for _, c := range []struct {
		name, steps, owner, want string
	}{
		{"one address", `take net1 rtr 192.0.2.4`, "rtr",
			count("rtr", 1) + nic(0, "", h1) + ip4(0, ":0", "192.0.2.4") + ip4(0, "", "192.0.2.4")},
		{"several addresses of one interface", `take net1 rtr 0:ip0=198.51.100.4,ip1=192.0.2.4,ip2=192.0.2.3`, "rtr",
			count("rtr", 1) + nic(0, "", h1) + ipOld(0, ":0", "198.51.100.4") + ip4(0, ":1", "192.0.2.4") +
				ip4(0, ":2", "192.0.2.3") +
				ipOld(0, "", "198.51.100.4")},
		{"both families", `take net1 rtr ip0=2001:db8::4,ip1=192.0.2.4`, "rtr",
			count("rtr", 1) + nic(0, "", h1) + ip6(0, ":0", "2001:db8::4") + ip4(0, ":1", "192.0.2.4") +
				ip6(0, "", "2001:db8::4")},
		{"two interfaces", `take net1 rtr 0:ip0=192.0.2.4,ip1=2001:db8::4
			take net1 rtr 1:add,ip0=198.51.100.4`, "rtr",
			count("rtr", 2) + nic(0, "", h1) + ip4(0, ":0", "192.0.2.4") + ip6(0, ":1", "2001:db8::4") +
				ip4(0, "", "192.0.2.4") +
				nic(1, "", h1) + ipOld(1, ":0", "198.51.100.4") + ipOld(1, "", "198.51.100.4")},
		{"an interface in the middle is gone", `take net1 rtr 0:ip=192.0.2.4
			take net1 rtr 1:add,ip0=192.0.2.5
			take net1 rtr 2:add,ip0=192.0.2.6
			take net1 rtr 1:remove`, "rtr",
			count("rtr", 2) + nic(0, "", h1) + ip4(0, ":0", "192.0.2.4") + ip4(0, "", "192.0.2.4") + nic(2, "", h1) +
				ip4(2, ":0", "192.0.2.6") + ip4(2, "", "192.0.2.6")},
		{"one of two was given back", `take net1 rtr ip0=192.0.2.4,ip1=2001:db8::4
			take net1 rtr 0:modify,ip1=none`, "rtr",
			count("rtr", 1) + nic(0, "", h1) + ip4(0, ":0", "192.0.2.4") + ip4(0, "", "192.0.2.4")},
		{"a container", `attach A net=net1
			ask A web mac=7 -> 192.0.2.2`, "web",
			count("web", 1) + nic(0, "02:00:00:00:00:07", h1) + ip4(0, ":0", "192.0.2.2") + ip4(0, "", "192.0.2.2")},
		{"a container by its MAC", `attach A net=net1
			ask A mac=7 -> 192.0.2.2`, "02:00:00:00:00:07",
			count("02:00:00:00:00:07", 1) + nic(0, "02:00:00:00:00:07", h1) + ip4(0, ":0", "192.0.2.2") +
				ip4(0, "", "192.0.2.2")},
		{"a container of both families", `attach A net=net1
			attach B net=net1 six
			ask B web mac=7 -> 2001:db8::1
			ask A web mac=7 -> 192.0.2.2`, "web",
			count("web", 1) + nic(0, "02:00:00:00:00:07", h1) + ip4(0, ":0", "192.0.2.2") +
				ip6(0, ":1", "2001:db8::1") + ip4(0, "", "192.0.2.2")},
		{"a container with two interfaces", `attach A net=net1
			attach C net=net1
			ask A web mac=7 -> 192.0.2.2
			ask C web mac=8 ip=198.51.100.9`, "web",
			count("web", 2) + nic(0, "02:00:00:00:00:07", h1) + ip4(0, ":0", "192.0.2.2") + ip4(0, "", "192.0.2.2") +
				nic(1, "02:00:00:00:00:08", h1) + ipOld(1, ":0", "198.51.100.9") + ipOld(1, "", "198.51.100.9")},
		{"a container on another host", `host h2
			attach A net=net1
			ask A web mac=7 -> 192.0.2.2
			host h1`, "web",
			count("web", 1) + nic(0, "02:00:00:00:00:07", h2) + ip4(0, ":0", "192.0.2.2") + ip4(0, "", "192.0.2.2")},
		{"a host without a link", `host h3
			take net1 rtr 192.0.2.4
			host h1`, "rtr",
			count("rtr", 1) + nic(0, "", "") + ip4(0, ":0", "192.0.2.4") + ip4(0, "", "192.0.2.4")},
		{"reserved, not in use", `reserve net1 web 192.0.2.50,2001:db8::50`, "web",
			count("web", 1) + nic(0, "", h1) + ip4(0, ":0", "192.0.2.50") + ip6(0, ":1", "2001:db8::50") +
				ip4(0, "", "192.0.2.50")},
		{"reserved and in use", `reserve net1 web 192.0.2.50,2001:db8::50
			attach B net=net1 six
			ask B web mac=7 -> 2001:db8::50`, "web",
			count("web", 1) + nic(0, "02:00:00:00:00:07", h1) + ip4(0, ":0", "192.0.2.50") +
				ip6(0, ":1", "2001:db8::50") + ip4(0, "", "192.0.2.50")},
		{"reserved for it and in use beside it", `reserve net1 web 192.0.2.50
			attach A net=net1
			ask A web mac=7 -> 192.0.2.50
			attach B net=net1 six
			ask B web mac=7 -> 2001:db8::1`, "web",
			count("web", 1) + nic(0, "02:00:00:00:00:07", h1) + ip4(0, ":0", "192.0.2.50") +
				ip6(0, ":1", "2001:db8::1") + ip4(0, "", "192.0.2.50")},
		{"taken beside what is reserved in the same place", `reserve net1 rtr 192.0.2.50
			take net1 rtr 192.0.2.4`, "rtr",
			count("rtr", 1) + nic(0, "", h1) + ip4(0, ":0", "192.0.2.4") + ip4(0, ":1", "192.0.2.50") +
				ip4(0, "", "192.0.2.4")},
		{"the reserved one is taken", `reserve net1 rtr 192.0.2.50
			take net1 rtr 192.0.2.50`, "rtr",
			count("rtr", 1) + nic(0, "", h1) + ip4(0, ":0", "192.0.2.50") + ip4(0, "", "192.0.2.50")},
		{"what it had is not what it has", `attach A net=net1
			ask A web mac=7 ip=192.0.2.9
			back A 192.0.2.9
			ask A web mac=8 ip=192.0.2.10`, "web",
			count("web", 1) + nic(0, "02:00:00:00:00:08", h1) + ip4(0, ":0", "192.0.2.10") + ip4(0, "", "192.0.2.10")},
		{"what it has in another network", `take net1 rtr 192.0.2.4
			take plain rtr 10.0.0.4`, "rtr",
			count("rtr", 1) + nic(0, "", h1) + ip4(0, ":0", "192.0.2.4") + ip4(0, "", "192.0.2.4")},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := ipamtest.New(t)
			r.Run(environPlan + c.steps)
			env, err := r.S.Environment(ctx, "net1", c.owner)
			must(t, err)
			if diff := cmp.Diff(c.want, readable(env)); diff != "" {
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
	const h1 = "bridged br0"
	for _, c := range []struct {
		name, steps string
		event       int // counted back from the last take or release
		want        string
	}{
		{"an address is taken", `take net1 rtr 0:ip0=192.0.2.4,ip1=192.0.2.5`, 1,
			`BERTH_EVENT=lease.take
			BERTH_HOST=h1
			BERTH_SPACE=local
			BERTH_SUBNET=192.0.2.0/24
			BERTH_ADDRESS=192.0.2.4
			BERTH_KIND=external
			BERTH_OWNER=rtr
			BERTH_MAC=
			BERTH_NETWORK=net1` + "\n" + count("rtr", 1) + nic(0, "", h1) + ip4(0, ":0", "192.0.2.4") + ip4(0, ":1", "192.0.2.5") + ip4(0, "", "192.0.2.4")},
		{"a container's", `attach A net=net1
			ask A web mac=7`, 0,
			`BERTH_EVENT=lease.take
			BERTH_HOST=h1
			BERTH_SPACE=local
			BERTH_SUBNET=192.0.2.0/24
			BERTH_ADDRESS=192.0.2.2
			BERTH_KIND=automatic
			BERTH_OWNER=web
			BERTH_MAC=02:00:00:00:00:07
			BERTH_NETWORK=net1` + "\n" + count("web", 1) + nic(0, "02:00:00:00:00:07", h1) + ip4(0, ":0", "192.0.2.2") + ip4(0, "", "192.0.2.2")},
		{"the one that is released is among them, in its place", `take net1 rtr 0:ip0=192.0.2.4,ip1=192.0.2.5
			take net1 rtr 0:modify,ip1=none`, 0,
			`BERTH_EVENT=lease.release
			BERTH_HOST=h1
			BERTH_SPACE=local
			BERTH_SUBNET=192.0.2.0/24
			BERTH_ADDRESS=192.0.2.5
			BERTH_KIND=external
			BERTH_OWNER=rtr
			BERTH_MAC=
			BERTH_NETWORK=net1` + "\n" + count("rtr", 1) + nic(0, "", h1) + ip4(0, ":0", "192.0.2.4") + ip4(0, ":1", "192.0.2.5") + ip4(0, "", "192.0.2.4")},
		{"a container without a name is its MAC's", `attach A net=net1
			ask A mac=7 ip=192.0.2.9
			back A 192.0.2.9`, 0,
			`BERTH_EVENT=lease.release
			BERTH_HOST=h1
			BERTH_SPACE=local
			BERTH_SUBNET=192.0.2.0/24
			BERTH_ADDRESS=192.0.2.9
			BERTH_KIND=static
			BERTH_OWNER=02:00:00:00:00:07
			BERTH_MAC=02:00:00:00:00:07
			BERTH_NETWORK=net1` + "\n" + count("02:00:00:00:00:07", 1) + nic(0, "02:00:00:00:00:07", h1) + ip4(0, ":0", "192.0.2.9") + ip4(0, "", "192.0.2.9")},
		{"nobody's", `attach A net=net1
			ask A ip=192.0.2.9`, 0,
			`BERTH_EVENT=lease.take
			BERTH_HOST=h1
			BERTH_SPACE=local
			BERTH_SUBNET=192.0.2.0/24
			BERTH_ADDRESS=192.0.2.9
			BERTH_KIND=auxiliary
			BERTH_OWNER=
			BERTH_MAC=
			BERTH_NETWORK=net1` + "\n" + count("", 1) + nic(0, "", h1) + ip4(0, ":0", "192.0.2.9") + ip4(0, "", "192.0.2.9")},
		{"the network was renamed and the subnet is another since", `take net1 rtr 198.51.100.4
			subnet.set net1 198.51.100.0/24 cidr=198.51.100.0/25 gw=198.51.100.1
			network.set net1 name=net9
			network.set net9 name=net1`, 0,
			`BERTH_EVENT=lease.take
			BERTH_HOST=h1
			BERTH_SPACE=local
			BERTH_SUBNET=198.51.100.0/24
			BERTH_ADDRESS=198.51.100.4
			BERTH_KIND=external
			BERTH_OWNER=rtr
			BERTH_MAC=
			BERTH_NETWORK=net1` + "\n" + count("rtr", 1) + nic(0, "", h1) +
				ip(0, ":0", "198.51.100.4", "198.51.100.0/25", "198.51.100.1", false) +
				ip(0, "", "198.51.100.4", "198.51.100.0/25", "198.51.100.1", false)},
		{"the network is gone since", `take plain rtr 10.0.0.4
			release plain rtr
			network.rm plain`, 0,
			`BERTH_EVENT=lease.release
			BERTH_HOST=h1
			BERTH_SPACE=local
			BERTH_SUBNET=10.0.0.0/24
			BERTH_ADDRESS=10.0.0.4
			BERTH_KIND=external
			BERTH_OWNER=rtr
			BERTH_MAC=`},
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
			if diff := cmp.Diff(indented(c.want), readable(env)); diff != "" {
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
