package pin

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"berth/internal/ipam"
)

// pinScene is a Docker network front on a planned network of that name, and records that a test adds to.
type pinScene struct {
	view ipam.EngineView
	rec  Records
	pool ipam.ID
}

var (
	pinCIDR  = netip.MustParsePrefix("10.9.0.0/24")
	pinCIDR6 = netip.MustParsePrefix("fd00:9::/64")
)

func newPinScene(t *testing.T) *pinScene {
	t.Helper()
	id := func(n int) (id ipam.ID) {
		must(t, id.UnmarshalText(fmt.Appendf(nil, "00000000-0000-4000-8000-%012d", n)))
		return id
	}
	sub := func(cidr netip.Prefix) ipam.SubnetInfo {
		return ipam.SubnetInfo{Network: "front", NetworkID: id(1),
			Subnet: ipam.Subnet{Network: id(1), Space: "local", CIDR: cidr, Attachments: []ipam.ID{id(9)}}}
	}
	return &pinScene{pool: id(9),
		view: ipam.EngineView{Host: "alpha",
			Networks: []ipam.EngineNetwork{{ID: "n1", Name: "shop_front", Driver: "berth",
				Options: map[string]string{"network": "front"}, Subnets: []ipam.EngineSubnet{{CIDR: pinCIDR}}}}},
		rec: Records{Subnets: []ipam.SubnetInfo{sub(pinCIDR), sub(pinCIDR6)},
			Networks: []ipam.NetworkInfo{{ID: id(1), Name: "front", Space: "local",
				OwnerRules: []ipam.OwnerRule{{Pattern: "mail-*", Owner: "post/*"}}}}},
	}
}

// run adds a running container, and the leases that it has, without a name as engines before v29 have it.
func (s *pinScene) run(name string, has ...string) *ipam.EngineEndpoint {
	s.stopped(name)
	c := &s.view.Containers[len(s.view.Containers)-1]
	c.State, c.Endpoints[0].ID, c.Endpoints[0].Addresses = "running", "e-"+name, addrs(has...)
	for _, addr := range addrs(has...) {
		s.lease(addr.String(), "")
	}
	return &c.Endpoints[0]
}

func (s *pinScene) stopped(name string) *ipam.EngineEndpoint {
	s.view.Containers = append(s.view.Containers, ipam.EngineContainer{ID: "id-" + name, Name: name, State: "exited",
		Endpoints: []ipam.EngineEndpoint{{Network: "n1"}}})
	return &s.view.Containers[len(s.view.Containers)-1].Endpoints[0]
}

func (s *pinScene) lease(addr, name string) *ipam.LeaseInfo {
	a := netip.MustParseAddr(addr)
	cidr := pinCIDR
	if a.Is6() {
		cidr = pinCIDR6
	}
	s.rec.Leases = append(s.rec.Leases,
		ipam.LeaseInfo{Address: a, Subnet: cidr, Space: "local", Network: "front", Name: name, Host: "alpha",
			Pool: s.pool})
	return &s.rec.Leases[len(s.rec.Leases)-1]
}

func (s *pinScene) remembered(addr, name string, at int) {
	s.lease(addr, name).Released = time.Unix(int64(at), 0)
}

func (s *pinScene) reserved(addr, owner string) *ipam.ReservationInfo {
	a := netip.MustParseAddr(addr)
	cidr := pinCIDR
	if a.Is6() {
		cidr = pinCIDR6
	}
	s.rec.Reservations = append(s.rec.Reservations,
		ipam.ReservationInfo{Owner: owner, Address: a, Space: "local", Network: "front",
			NetworkID: s.rec.Subnets[0].NetworkID, Subnet: cidr})
	return &s.rec.Reservations[len(s.rec.Reservations)-1]
}

// web is what is found of the container web.
func (s *pinScene) web(t *testing.T) Pin {
	t.Helper()
	all := Find(&s.view, &s.rec)
	i := slices.IndexFunc(all, func(p Pin) bool { return p.Container == "web" })
	if i < 0 {
		t.Fatalf("web is not among %+v", all)
	}
	return all[i]
}

func TestFindPins(t *testing.T) {
	for _, c := range []struct {
		name    string
		scene   func(*pinScene)
		has     string // the addresses
		reserve string // owner=address/slot of what is to be reserved
		connect bool
		refused string // a part of why
	}{
		{name: "runs", scene: func(s *pinScene) { s.run("web", "10.9.0.5") }, has: "10.9.0.5",
			reserve: "web=10.9.0.5/0", connect: true},
		{name: "is paused",
			scene: func(s *pinScene) { s.run("web", "10.9.0.5"); s.view.Containers[0].State = "paused" },
			has:   "10.9.0.5", reserve: "web=10.9.0.5/0", connect: true},
		{name: "is pinned",
			scene: func(s *pinScene) {
				s.run("web", "10.9.0.5").Wanted = addrs("10.9.0.5")
				s.reserved("10.9.0.5",
					"web")
			}, has: "10.9.0.5"},
		{name: "has --ip", scene: func(s *pinScene) { s.run("web", "10.9.0.5").Wanted = addrs("10.9.0.5") },
			has: "10.9.0.5", reserve: "web=10.9.0.5/0"},
		{name: "is reserved for it",
			scene: func(s *pinScene) { s.run("web", "10.9.0.5"); s.reserved("10.9.0.5", "web") }, has: "10.9.0.5",
			connect: true},
		{name: "is reserved by a rule", scene: func(s *pinScene) {
			s.run("web", "10.9.0.5")
			s.rec.Networks[0].OwnerRules[0].Pattern, s.rec.Networks[0].OwnerRules[0].Owner = "web", "post/a"
			s.reserved("10.9.0.5", "post/a")
		}, has: "10.9.0.5", connect: true},
		{name: "of Compose", scene: func(s *pinScene) {
			s.run("web", "10.9.0.5")
			s.view.Containers[0].Project, s.view.Containers[0].Service, s.view.Containers[0].Number = "shop", "front", 1
		}, has: "10.9.0.5", reserve: "web=10.9.0.5/0", connect: true}, // by its container_name
		{name: "of both families", scene: func(s *pinScene) {
			s.view.Networks[0].Subnets = append(s.view.Networks[0].Subnets, ipam.EngineSubnet{CIDR: pinCIDR6})
			s.run("web", "10.9.0.5", "fd00:9::5")
		}, has: "10.9.0.5 and fd00:9::5", reserve: "web=10.9.0.5/0 web=10.9.0.5/0 web=fd00:9::5/1", connect: true},
		{name: "of both families, one reserved", scene: func(s *pinScene) {
			s.view.Networks[0].Subnets = append(s.view.Networks[0].Subnets, ipam.EngineSubnet{CIDR: pinCIDR6})
			s.run("web", "10.9.0.5", "fd00:9::5")
			s.reserved("fd00:9::5", "web")
		}, has: "10.9.0.5 and fd00:9::5", reserve: "web=fd00:9::5/0 web=10.9.0.5/1", connect: true},
		{name: "stopped, reserved",
			scene: func(s *pinScene) {
				s.stopped("web")
				s.reserved("10.9.0.7", "web")
				s.remembered("10.9.0.5", "web",
					1)
			},
			has: "10.9.0.7", connect: true},
		{name: "stopped, remembered", scene: func(s *pinScene) {
			s.stopped("web")
			s.remembered("10.9.0.5", "web", 1)
			s.remembered("10.9.0.6", "web", 9)
			s.remembered("10.9.0.7", "db", 11)
		}, has: "10.9.0.6", reserve: "web=10.9.0.6/0", connect: true},

		{name: "stopped, unknown", scene: func(s *pinScene) { s.stopped("web") }, refused: "start it, and pin it then"},
		{name: "stopped, lent to another",
			scene:   func(s *pinScene) { s.stopped("web").Wanted = addrs("10.9.0.5"); s.lease("10.9.0.5", "db") },
			refused: "is held by db"},
		{name: "reserved for another",
			scene:   func(s *pinScene) { s.run("web", "10.9.0.5"); s.reserved("10.9.0.5", "db") },
			refused: "is reserved for db"},
		{name: "reserved otherwise",
			scene:   func(s *pinScene) { s.run("web", "10.9.0.5"); s.reserved("10.9.0.9", "web") },
			refused: "10.9.0.9 is reserved for web"},
		{name: "replaced",
			scene: func(s *pinScene) { s.run("web", "10.9.0.5"); s.reserved("10.9.0.9", "web").Replaced = true },
			has:   "10.9.0.5", reserve: "web=10.9.0.5/0", connect: true},
		{name: "without a lease", scene: func(s *pinScene) { s.run("web", "10.9.0.5"); s.rec.Leases = nil },
			refused: "berth check --repair"},
		{name: "another's lease", scene: func(s *pinScene) {
			s.run("web", "10.9.0.5").MAC = ipam.MAC{2, 1}
			s.rec.Leases[0].MAC, s.rec.Leases[0].Name = ipam.MAC{2, 2}, "db"
		}, refused: "is held by db"},
		{name: "another host's", scene: func(s *pinScene) { s.run("web", "10.9.0.5"); s.rec.Leases[0].Host = "beta" },
			refused: "on host beta"},
		{name: "twice", scene: func(s *pinScene) { s.run("db", "10.9.0.5"); s.run("web", "10.9.0.5") },
			refused: "of another container"},
		{name: "restarting",
			scene:   func(s *pinScene) { s.run("web", "10.9.0.5"); s.view.Containers[0].State = "restarting" },
			refused: "web is restarting"},
		{name: "an unknown subnet", scene: func(s *pinScene) { s.run("web", "10.9.0.5"); s.rec.Subnets = nil },
			refused: "does not know the subnet"},
		{name: "a chosen subnet",
			scene: func(s *pinScene) { s.run("web", "10.9.0.5"); s.rec.Subnets[0].Chosen = []ipam.ID{s.pool} },
			refused: "docker network create --ipam-driver berth --subnet 10.9.0.0/24 --ipam-opt network=front " +
				"shop_front"},
		{name: "a chosen subnet, v29", scene: func(s *pinScene) {
			s.run("web", "10.9.0.5")
			s.rec.Subnets[0].Chosen, s.rec.TakesAny = []ipam.ID{s.pool}, true
		}, has: "10.9.0.5", reserve: "web=10.9.0.5/0", connect: true},
		{name: "a chosen subnet, and this one named it", scene: func(s *pinScene) {
			s.run("web", "10.9.0.5")
			s.rec.Subnets[0].Chosen = []ipam.ID{{1}}
			s.rec.Subnets[0].Attachments = append(s.rec.Subnets[0].Attachments, ipam.ID{1})
		}, has: "10.9.0.5", reserve: "web=10.9.0.5/0", connect: true},
		{name: "a named subnet, and this one did not", scene: func(s *pinScene) {
			s.stopped("web")
			s.run("db", "10.9.0.5")
			s.rec.Subnets[0].Chosen = []ipam.ID{s.pool}
			s.rec.Subnets[0].Attachments = append(s.rec.Subnets[0].Attachments, ipam.ID{1})
		}, refused: "without --subnet"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newPinScene(t)
			c.scene(s)
			pin := s.web(t)
			if c.refused != "" {
				if !strings.Contains(pin.Refusal, c.refused) || pin.Pinned || pin.Connect || len(pin.Reserve) > 0 {
					t.Errorf("%+v", pin)
				}
				return
			}
			var reserve []string
			for _, edit := range pin.Reserve {
				for _, w := range edit.Wishes {
					reserve = append(reserve, fmt.Sprintf("%s=%s/%d", edit.Owner, w.Address, w.Slot))
				}
			}
			pinned := c.reserve == "" && !c.connect
			if pin.Refusal != "" || listed(pin.Addresses) != c.has || strings.Join(reserve, " ") != c.reserve ||
				pin.Connect != c.connect || pin.Pinned != pinned {
				t.Errorf("to reserve is %q; %+v", reserve, pin)
			}
			if pin.Pinned == (pin.Missing != "") {
				t.Errorf("missing is %q; %+v", pin.Missing, pin)
			}
		})
	}
}

// A replica of Compose is the owner that its name means to Berth.
func TestFindPinsOfCompose(t *testing.T) {
	for _, name := range []string{"shop-web-2", "shop_web_2", "0123456789ab_shop-web-2"} {
		s := newPinScene(t)
		s.run(name, "10.9.0.5")
		c := &s.view.Containers[0]
		c.Project, c.Service, c.Number = "shop", "web", 2
		pin := Find(&s.view, &s.rec)[0]
		if pin.Owner != "shop/web/2" || len(pin.Reserve) != 1 || pin.Reserve[0].Owner != "shop/web/2" {
			t.Errorf("%s: %+v", name, pin)
		}
	}
}

// A swarm's networks, and what is no container, are left out.
func TestFindPinsLeavesOut(t *testing.T) {
	s := newPinScene(t)
	s.run("web", "10.9.0.5")
	s.view.Containers[0].ID = ""
	if all := Find(&s.view, &s.rec); len(all) > 0 {
		t.Errorf("%+v", all)
	}
	s.view.Containers[0].ID, s.view.Networks[0].Swarm = "id", true
	if all := Find(&s.view, &s.rec); len(all) > 0 {
		t.Errorf("%+v", all)
	}
}
