package deploy

import (
	"context"
	"maps"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"

	"github.com/compose-spec/compose-go/v2/types"
	"github.com/google/go-cmp/cmp"
)

// file writes a Compose file into a new directory called shop.
func file(t *testing.T, text string) Source {
	t.Helper()
	name := filepath.Join(t.TempDir(), "shop", "compose.yaml")
	write(t, name, []byte(text))
	return Source{Files: []string{name}}
}

// A plan that cannot be made is refused. The error names the part of the file and what to do. In a row are the words of
// the refusal, the mapping (NETWORK=PLANNED, or a driver), and the file: // begins a line of it, FRONT its networks.
func TestRefusals(t *testing.T) {
	const front = "// networks: {front: {ipam: {driver: berth, options: {network: front}}}}"
	for row := range ipamtest.Rows(4, strings.ReplaceAll(`
		# unknown planned networks
		networks.lan is on the planned network "fornt", which does not exist & berth network create & --network lan=NAME || services: {web: {image: x, networks: [lan]}} // networks: {lan: {ipam: {driver: berth, options: {network: fornt}}}}
		networks.lan is on the planned network "fornt" | lan=fornt | | services: {web: {image: x, networks: [lan]}} // networks: {lan: {external: true}}
		# an unknown network of the file
		the project shop has no network "lan"; it has front | lan=front | | services: {web: {image: x, networks: [front]}} FRONT
		# no network of ours, another driver, no replicas, a dynamic network
		nothing to reserve for the project shop & ipam: {driver: berth || services: {web: {image: x}}
		nothing to reserve | | ship | services: {web: {image: x, networks: [front]}} FRONT
		its services have no replicas || services: {web: {image: x, scale: 0, networks: [front]}} FRONT
		nothing to reserve & theirs, which has the type dynamic || services: {web: {image: x}} // networks: {default: {ipam: {driver: berth, options: {network: theirs}}}}
		# Docker's own addresses
		networks.default has no IPAM driver & ipam: {driver: berth} | default=front | | services: {web: {image: x}}
		# no subnet, and several
		wire, which has no subnet & berth subnet add wire || services: {web: {image: x}} // networks: {default: {ipam: {driver: berth, options: {network: wire}}}}
		several IPv4 subnets (10.10.0.0/24, 10.11.0.0/24) & ipam: {config: [{subnet: 10.10.0.0/24}]} || services: {web: {image: x}} // networks: {default: {ipam: {driver: berth, options: {network: two}}}}
		networks.lan is external & several IPv4 subnets of the planned network two (10.10.0.0/24, 10.11.0.0/24) | lan=two | | services: {web: {image: x, networks: [lan]}} // networks: {lan: {external: true}}
		# a subnet, and an address, of another network
		networks.default names the subnet 10.99.0.0/24 & front does not have; it has 10.8.0.0/24 || services: {web: {image: x}} // networks: {default: {ipam: {driver: berth, options: {network: front}, config: [{subnet: 10.99.0.0/24}]}}}
		services.web.networks.lan.ipv4_address & this address is in 10.11.0.0/24, but the network uses the subnet 10.10.0.0/24 || services: {web: {image: x, networks: {lan: {ipv4_address: 10.11.0.4}}}} // networks: {lan: {ipam: {driver: berth, options: {network: two, pool: a}}}}
		# no address, one of the other family, and families that the network does not have
		services.web.networks.front.ipv4_address is "10.8.0.900": this is not an IPv4 address || services: {web: {image: x, networks: {front: {ipv4_address: 10.8.0.900}}}} FRONT
		ipv6_address is "10.8.0.9": this is not an IPv6 address || services: {web: {image: x, networks: {front: {ipv6_address: 10.8.0.9}}}} FRONT
		networks.front is not an IPv6 network & front has 10.8.0.0/24; to make networks.front an IPv6 network, write enable_ipv6: true || services: {web: {image: x, networks: {front: {ipv6_address: 'fd00::9'}}}} FRONT
		networks.lan is not an IPv4 network; the planned network six has fd00:13::/64 || services: {web: {image: x, networks: {lan: {ipv4_address: 10.9.0.9}}}} // networks: {lan: {ipam: {driver: berth, options: {network: six}}}}
		# one address for many, a name that is none, one name for two
		services.web has 2 replicas, but only one address on the network front || services: {web: {image: x, scale: 2, networks: {front: {ipv4_address: 10.8.0.9}}}} FRONT
		services._web & "shop/_web/1" is not a valid owner || services: {_web: {image: x, networks: [front]}} FRONT
		the services db and web have the same container_name, box || services: {web: {image: x, container_name: box, networks: [front]}, db: {image: x, container_name: box, networks: [front]}} FRONT
		# one planned network twice
		services.web is on the networks back and front & on the planned network two & plan a network for each of them || services: {web: {image: x, networks: [front, back]}} // networks: {front: {ipam: {driver: berth, options: {network: two, pool: a}}}, back: {ipam: {driver: berth, options: {network: two, pool: b}}}}
	`, "||", "| | |")) {
		t.Run(row[0], func(t *testing.T) {
			m := Mapping{Driver: row[2]}
			if network, planned, is := strings.Cut(row[1], "="); is {
				m.Networks = map[string]string{network: planned}
			}
			text := strings.ReplaceAll(strings.Replace(row[3], "FRONT", front, 1), " // ", "\n") + "\n"
			_, err := load(t, file(t, text)).Plan(m, planned())
			if err == nil {
				t.Fatal("it was not refused")
			}
			for word := range strings.SplitSeq(row[0], " & ") {
				if !strings.Contains(err.Error(), word) {
					t.Errorf("the refusal does not say %q: %v", word, err)
				}
			}
		})
	}
}

// Load refuses files that it cannot read, that are the wrong ones, or that do not fit the options.
func TestLoadRefusals(t *testing.T) {
	const text = "services: {web: {image: x, container_name: box}, db: {image: x}}"
	ours := file(t, marker+" for somebody\nservices: {web: {}}\n")
	empty := Source{Directory: t.TempDir(), Environment: []string{"COMPOSE_FILE=" + ours.Files[0]}}
	changed := func(change func(*Source)) Source {
		s := file(t, text)
		change(&s)
		return s
	}
	for _, c := range []struct {
		name   string
		source Source
		word   string
	}{
		{"not there", Source{Files: []string{filepath.Join(t.TempDir(), "compose.yaml")}}, "no such file"},
		{"no YAML", file(t, "services: ["), "compose.yaml"},
		{"unknown key", file(t, "services: {web: {imagee: x}}"), "imagee"},
		{"standard input", Source{Files: []string{"-"}}, "standard input"},
		{"an override", ours, "was written by `berth compose`"},
		{"an override, by the environment", empty, "was written by `berth compose`"},
		{"project name", changed(func(s *Source) { s.Project = "A b" }), "project name"},
		{"scale of none", changed(func(s *Source) { s.Scale = map[string]int{"wbe": 2} }),
			`no service "wbe" to scale; it has db, web`},
		{"scale below nothing", changed(func(s *Source) { s.Scale = map[string]int{"db": -1} }),
			"cannot have -1 replicas"},
		{"scale of a container", changed(func(s *Source) { s.Scale = map[string]int{"web": 2} }),
			"container_name box, which only one replica can have"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Load(context.Background(), c.source)
			if err == nil || !strings.Contains(err.Error(), c.word) {
				t.Errorf("got %v, and %q was to be said", err, c.word)
			}
		})
	}
}

// The project's name, files and profiles come from the same places as in Compose.
func TestLoadAsCompose(t *testing.T) {
	const text = "services: {web: {image: x, networks: [front]}, debug: {image: x, profiles: [debug], networks: " +
		"[front]}}\nnetworks: {front: {ipam: {driver: berth, options: {network: front}}}}"
	dir := filepath.Join(t.TempDir(), "Shop.1")
	write(t, filepath.Join(dir, "docker-compose.yml"), []byte(text))
	write(t, filepath.Join(dir, "named.yaml"), []byte("name: named\n"+text))
	write(t, filepath.Join(dir, ".env"), []byte("COMPOSE_PROFILES=debug\n"))
	for _, c := range []struct {
		name   string
		source Source
		owners string
	}{
		{"found", Source{Directory: dir}, "shop1/debug/1 shop1/web/1"},
		{"by the environment", Source{Directory: dir,
			Environment: []string{"COMPOSE_PROJECT_NAME=env", "COMPOSE_FILE=" + filepath.Join(dir, "named.yaml")}},
			"env/debug/1 env/web/1"},
		{"by the file", Source{Files: []string{filepath.Join(dir, "named.yaml")}}, "named/debug/1 named/web/1"},
		{"by the flag", Source{Files: []string{filepath.Join(dir, "named.yaml")}, Project: "flag",
			Profiles: []string{"none"}}, "flag/web/1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			plan, err := load(t, c.source).Plan(Mapping{}, planned())
			fine(t, err)
			if got := strings.Join(owners(plan.Edits()), " "); got != c.owners {
				t.Errorf("the owners are %s, not %s", got, c.owners)
			}
		})
	}
}

func owners(edits []ipam.Edit) (all []string) {
	for _, e := range edits {
		all = append(all, e.(*ipam.AddReservation).Owner)
	}
	return all
}

// BO-10: the plan asks for the addresses that a file gives before Berth chooses any; each owner is named after its
// service (BO-5).
func TestGivenFirst(t *testing.T) {
	source := file(t, `
services:
  a: {image: x, networks: [front]}
  b: {image: x, networks: {front: {ipv4_address: 10.8.0.10}}}
networks: {front: {ipam: {driver: berth, options: {network: front, pool: web}}}}
`)
	plan, err := load(t, source).Plan(Mapping{}, planned())
	fine(t, err)
	network := planned()[0].ID.String()
	want := []ipam.Edit{
		&ipam.AddReservation{Network: network, Owner: "shop/b/1",
			Wishes: []ipam.Wish{{Address: netip.MustParseAddr("10.8.0.10")}}, Replace: true, Only: []string{network}},
		&ipam.AddReservation{Network: network, Owner: "shop/a/1",
			Wishes: []ipam.Wish{{Subnet: "10.8.0.0/24", Pool: "web"}}, Replace: true, Only: []string{network}},
	}
	if d := cmp.Diff(want, plan.Edits(), cmp.Comparer(func(a, b ipam.Wish) bool { return a == b })); d != "" {
		t.Errorf("what is asked for differs:\n%s", d)
	}
	if got := plan.Where(0); got != source.Files[0]+":4: service b, network front" {
		t.Errorf("the first edit is for %s", got)
	}
	if err := plan.Grant(nil); err == nil {
		t.Error("nothing was granted, and taken")
	}
	if err := plan.Grant(make([]ipam.Result, 2)); err == nil ||
		!strings.Contains(err.Error(), "shop/b/1 should have 1 addresses") {
		t.Errorf("no addresses were granted, and taken: %v", err)
	}
}

// BO-3: a release covers the owners under the project's name and the containers with names of their own.
func TestRelease(t *testing.T) {
	p := load(t, file(t, "services: {web: {image: x, container_name: box}, db: {image: x}}"))
	want := []ipam.Edit{&ipam.ReleaseOwner{Owner: "shop", Under: true}, &ipam.ReleaseOwner{Owner: "box"}}
	if d := cmp.Diff(want, p.Release()); d != "" {
		t.Error(d)
	}
}

func TestIsBerth(t *testing.T) {
	for driver, want := range map[string]bool{
		"berth": true, "berth:latest": true, "net/berth": true, "registry.example:5000/net/berth:1.0": true,
		"": false, "default": false, "berth2": false, "berth/other": false, "my-berth": false, "host:5000/x": false,
	} {
		if got := (Mapping{}).IsBerth(driver); got != want {
			t.Errorf("%q is Berth: %t", driver, got)
		}
	}
	if m := (Mapping{Driver: "ship"}); !m.IsBerth("ship") || m.IsBerth("berth") {
		t.Error("the driver that was given is not the only one")
	}
}

// A MAC belongs to an owner on a network, has the network's prefix, and is a single interface's: not a group's,
// and not one assigned to a maker of cards. Two owners of a file never share one.
func TestMAC(t *testing.T) {
	dual, front := &network{planned: &planned()[1]}, &network{planned: &planned()[0]}
	a := macOf(&claim{owner: "shop/a/1", on: front}, map[string]bool{})
	if a != macOf(&claim{owner: "shop/a/1", on: front}, map[string]bool{}) || !strings.HasPrefix(a, "02:") ||
		len(a) != 17 {
		t.Errorf("the MAC is %s", a)
	}
	if b := macOf(&claim{owner: "shop/a/1", on: dual}, map[string]bool{}); !strings.HasPrefix(b, "aa:00:01:") ||
		len(b) != 17 {
		t.Errorf("with the prefix it is %s", b)
	}
	again, taken := map[string]int{}, map[string]bool{}
	for i := range 20000 { // 24 bits, in which a dozen owners collide
		c := &claim{owner: "shop/a/" + strings.Repeat("x", i%50) + string(rune('a'+i/50%26)) +
			strings.Repeat("y", i/1300), on: dual}
		again[macOf(c, map[string]bool{})]++
		macOf(c, taken)
	}
	if len(again) == 20000 || len(taken) != 20000 {
		t.Errorf("20000 owners have %d MACs, %d without regard to each other", len(taken), len(again))
	}
}

// The MAC of a service goes to its first network. It is written only if all versions of Compose agree on that.
func TestFirstNetwork(t *testing.T) {
	networks := types.Networks{"a": {Name: "shop_a"}, "b": {Name: "shop_b"}, "c": {Name: "aaa"}}
	for _, c := range []struct {
		priorities map[string]int
		want       string
	}{
		{map[string]int{}, ""},
		{map[string]int{"b": 0}, "b"},
		{map[string]int{"a": 0, "b": 0}, "a"},
		{map[string]int{"a": 0, "c": 0}, ""}, // a by its key, c by its name
		{map[string]int{"a": 0, "c": 1}, "c"},
		{map[string]int{"a": 1, "b": 2, "c": 1}, "b"},
		{map[string]int{"a": 1, "b": 1}, ""},
		{map[string]int{"a": 0, "b": -1}, "a"},
	} {
		var service types.ServiceConfig
		service.Networks = map[string]*types.ServiceNetworkConfig{}
		for key, priority := range c.priorities {
			service.Networks[key] = &types.ServiceNetworkConfig{Priority: priority}
			if priority == 0 {
				service.Networks[key] = nil
			}
		}
		if got := firstNetwork(service, networks); got != c.want {
			t.Errorf("of %v the first is %q, not %q", slices.Sorted(maps.Keys(c.priorities)), got, c.want)
		}
	}
}

func TestIsOverride(t *testing.T) {
	dir := t.TempDir()
	for text, want := range map[string]bool{"": false, "#": false, marker: true, marker + " for x\n": true,
		"services: {}\n" + marker: false} {
		name := filepath.Join(dir, "file")
		write(t, name, []byte(text))
		if got, err := IsOverride(name); got != want || err != nil {
			t.Errorf("%q is an override: %t (%v)", text, got, err)
		}
	}
	if got, err := IsOverride(filepath.Join(dir, "none")); got || err != nil {
		t.Errorf("what is not there: %t (%v)", got, err)
	}
	if _, err := IsOverride(dir); err == nil {
		t.Error("a directory was read")
	}
}
