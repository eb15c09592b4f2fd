package pin

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"berth/internal/ipam"
)

// pinScene is a Docker network front on a planned network of that name. Tests add records.
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

// run adds a running container with its leases. They have no name, as with engines before v29.
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

// web returns the pin that Find gives for the container web.
func (s *pinScene) web(t *testing.T) Pin {
	t.Helper()
	all := Find(&s.view, &s.rec)
	i := slices.IndexFunc(all, func(p Pin) bool { return p.Container == "web" })
	if i < 0 {
		t.Fatalf("web is not among %+v", all)
	}
	return all[i]
}

// step runs a step of TestFindPins. A step about one container changes the last one added.
//
//	run NAME ADDRESS... | stopped NAME           a container; one that runs has leases
//	state STATE | wants ADDRESS | compose PROJECT SERVICE
//	lease ADDRESS NAME | remembered ADDRESS NAME AT | reserved ADDRESS OWNER [replaced]
//	rule PATTERN OWNER | six | any               the network's rule and second family; an engine that gives any address
//	no leases|subnets                            the records have none
//	another NAME | host NAME                     the first lease is another's, or another host's
//	chosen | other | named                       the attachment was made without a subnet; there is another one, that was
func (s *pinScene) step(t *testing.T, words []string) {
	t.Helper()
	last := func() *ipam.EngineContainer { return &s.view.Containers[len(s.view.Containers)-1] }
	switch words[0] {
	case "run":
		s.run(words[1], words[2:]...)
	case "stopped":
		s.stopped(words[1])
	case "state":
		last().State = words[1]
	case "wants":
		last().Endpoints[0].Wanted = addrs(words[1])
	case "compose":
		last().Project, last().Service, last().Number = words[1], words[2], 1
	case "another":
		last().Endpoints[0].MAC, s.rec.Leases[0].MAC, s.rec.Leases[0].Name = ipam.MAC{2, 1}, ipam.MAC{2, 2}, words[1]
	case "lease":
		s.lease(words[1], words[2])
	case "remembered":
		at, err := strconv.Atoi(words[3])
		must(t, err)
		s.remembered(words[1], words[2], at)
	case "reserved":
		s.reserved(words[1], words[2]).Replaced = len(words) > 3
	case "rule":
		s.rec.Networks[0].OwnerRules = []ipam.OwnerRule{{Pattern: words[1], Owner: words[2]}}
	case "six":
		s.view.Networks[0].Subnets = append(s.view.Networks[0].Subnets, ipam.EngineSubnet{CIDR: pinCIDR6})
	case "any":
		s.rec.TakesAny = true
	case "no":
		if words[1] == "leases" {
			s.rec.Leases = nil
		} else {
			s.rec.Subnets = nil
		}
	case "host":
		s.rec.Leases[0].Host = words[1]
	case "chosen":
		s.rec.Subnets[0].Chosen = []ipam.ID{s.pool}
	case "other":
		s.rec.Subnets[0].Attachments = append(s.rec.Subnets[0].Attachments, ipam.ID{1})
	case "named":
		s.rec.Subnets[0].Chosen = []ipam.ID{{1}}
	default:
		t.Fatalf("there is no step %q", words)
	}
}

// TestFindPins: each case ends with what Find gives for web. This is its addresses, the reservations that it needs
// (OWNER=ADDRESS/SLOT), and whether it must be reconnected; or, after "!", a part of the refusal.
func TestFindPins(t *testing.T) {
	for c := range strings.SplitSeq(strings.TrimSpace(`
		runs; run web 10.9.0.5 -> 10.9.0.5; web=10.9.0.5/0; connect
		is paused; run web 10.9.0.5; state paused -> 10.9.0.5; web=10.9.0.5/0; connect
		is pinned; run web 10.9.0.5; wants 10.9.0.5; reserved 10.9.0.5 web -> 10.9.0.5; ; pinned
		has --ip; run web 10.9.0.5; wants 10.9.0.5 -> 10.9.0.5; web=10.9.0.5/0;
		is reserved for it; run web 10.9.0.5; reserved 10.9.0.5 web -> 10.9.0.5; ; connect
		is reserved by a rule; run web 10.9.0.5; rule web post/a; reserved 10.9.0.5 post/a -> 10.9.0.5; ; connect
		of Compose, by its container_name; run web 10.9.0.5; compose shop front -> 10.9.0.5; web=10.9.0.5/0; connect
		of both families; six; run web 10.9.0.5 fd00:9::5 -> 10.9.0.5 and fd00:9::5; web=10.9.0.5/0 web=10.9.0.5/0 web=fd00:9::5/1; connect
		of both, one reserved; six; run web 10.9.0.5 fd00:9::5; reserved fd00:9::5 web -> 10.9.0.5 and fd00:9::5; web=fd00:9::5/0 web=10.9.0.5/1; connect
		stopped, reserved; stopped web; reserved 10.9.0.7 web; remembered 10.9.0.5 web 1 -> 10.9.0.7; ; connect
		stopped, remembered; stopped web; remembered 10.9.0.5 web 1; remembered 10.9.0.6 web 9; remembered 10.9.0.7 db 11 -> 10.9.0.6; web=10.9.0.6/0; connect
		replaced; run web 10.9.0.5; reserved 10.9.0.9 web replaced -> 10.9.0.5; web=10.9.0.5/0; connect

		stopped, unknown; stopped web ! start it and then pin it
		stopped, lent to another; stopped web; wants 10.9.0.5; lease 10.9.0.5 db ! is held by db
		reserved for another; run web 10.9.0.5; reserved 10.9.0.5 db ! is reserved for db
		reserved otherwise; run web 10.9.0.5; reserved 10.9.0.9 web ! 10.9.0.9 is reserved for web
		without a lease; run web 10.9.0.5; no leases ! berth check --repair
		another's lease; run web 10.9.0.5; another db ! is held by db
		another host's; run web 10.9.0.5; host beta ! on host beta
		twice; run db 10.9.0.5; run web 10.9.0.5 ! of another container
		restarting; run web 10.9.0.5; state restarting ! web is restarting
		an unknown subnet; run web 10.9.0.5; no subnets ! does not know the subnet

		a chosen subnet; run web 10.9.0.5; chosen ! docker network create --ipam-driver berth --subnet 10.9.0.0/24 --ipam-opt network=front shop_front
		a chosen subnet, v29; run web 10.9.0.5; chosen; any -> 10.9.0.5; web=10.9.0.5/0; connect
		a chosen subnet, and this one named it; run web 10.9.0.5; named; other -> 10.9.0.5; web=10.9.0.5/0; connect
		a named subnet, and this one did not; stopped web; run db 10.9.0.5; chosen; other ! without --subnet
	`), "\n") {
		if strings.TrimSpace(c) == "" {
			continue
		}
		c, refused, _ := strings.Cut(strings.TrimSpace(c), " ! ")
		c, found, _ := strings.Cut(c, " -> ")
		steps := strings.Split(c, "; ")
		t.Run(steps[0], func(t *testing.T) {
			s := newPinScene(t)
			for _, step := range steps[1:] {
				s.step(t, strings.Fields(step))
			}
			pin := s.web(t)
			if refused != "" {
				if !strings.Contains(pin.Refusal, refused) || pin.Pinned || pin.Connect || len(pin.Reserve) > 0 {
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
			does := map[[2]bool]string{{true, false}: "pinned", {false, true}: "connect"}[[2]bool{pin.Pinned, pin.Connect}]
			got := listed(pin.Addresses) + "; " + strings.Join(reserve, " ") + "; " + does
			if pin.Refusal != "" || strings.TrimSpace(got) != found {
				t.Errorf("it is %q; %+v", got, pin)
			}
			if pin.Pinned == (pin.Missing != "") {
				t.Errorf("missing is %q; %+v", pin.Missing, pin)
			}
		})
	}
}

// The owner of a Compose replica is the one that Berth derives from its name.
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

// Find leaves out a swarm's networks and entries that are not containers.
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
