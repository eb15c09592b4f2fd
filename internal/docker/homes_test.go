package docker

import (
	"net/netip"
	"testing"
	"time"

	"berth/internal/ipam"
)

// TestHomes: a container that just started on another address than its last is reported. After a while the new
// address is its home. An address that was requested, or that belongs to an owner, moves no container.
func TestHomes(t *testing.T) {
	for name, c := range map[string]struct {
		had   string // its last address; empty: unknown
		age   time.Duration
		late  bool // its start time is unknown
		set   func(*scene)
		told  bool
		taken string
		home  string // its home afterwards
	}{
		"elsewhere":             {had: "10.8.0.9", told: true, home: "10.8.0.9"},
		"where another runs":    {had: "10.8.0.3", set: runsDB, told: true, taken: "db", home: "10.8.0.3"},
		"where it was":          {had: "10.8.0.2", home: "10.8.0.2"},
		"for the first time":    {home: "10.8.0.2"},
		"a while ago":           {had: "10.8.0.9", age: StartFor + time.Second, home: "10.8.0.2"},
		"at an unknown time":    {had: "10.8.0.9", late: true, home: "10.8.0.9"},
		"on another's":          {had: "10.8.0.9", set: func(s *scene) { s.reserve("odb", "10.8.0.9") }, home: "10.8.0.9"},
		"with one of its own":   {had: "10.8.0.9", set: func(s *scene) { s.reserve("web", "10.8.0.30") }, home: "10.8.0.9"},
		"by its own address":    {had: "10.8.0.9", set: asks, home: "10.8.0.9"},
		"by a static address":   {had: "10.8.0.9", set: static, home: "10.8.0.9"},
		"by DHCP":               {had: "10.8.0.9", set: fromDHCP, home: "10.8.0.9"},
		"on a swarm's network":  {had: "10.8.0.9", set: func(s *scene) { s.view.Networks[0].Swarm = true }, home: "10.8.0.9"},
		"as no container's":     {had: "10.8.0.9", set: func(s *scene) { s.view.Containers[0].ID = "" }, home: "10.8.0.9"},
		"with an uncertain one": {had: "10.8.0.9", set: uncertain, home: "10.8.0.9"},
	} {
		s := newScene()
		if c.set != nil {
			c.set(s)
		}
		key, h := home{"web", segment{"local", prefix("10.8.0.0/24")}}, homes{}
		if c.had != "" {
			h[key] = addr(c.had)
		}
		all := h.judge(s.compare(), func(string) (time.Time, bool) { return now.Add(-c.age), !c.late })
		if len(all) > 1 || (len(all) == 1) != c.told || h[key] != addr(c.home) {
			t.Errorf("%s: told is %+v, and its home is %s", name, all, h[key])
		}
		for _, a := range all {
			if a.Container != "web" || a.Has != addr("10.8.0.2") || a.Home != addr(c.had) || a.Taken != c.taken ||
				a.Reserved {
				t.Errorf("%s: told is %+v", name, a)
			}
		}
	}
}

// runsDB runs the container db at .3, the last address of web.
func runsDB(s *scene) {
	s.run("db", 1, "10.8.0.3", 3)
}

// static makes the lease of web's address static.
func static(s *scene) { s.leases[1].Kind = ipam.Static }

// fromDHCP makes web's address a lease of a DHCP server.
func fromDHCP(s *scene) { s.leases[1].DHCP = &ipam.DHCPInfo{} }

// asks makes web ask for the address that it has.
func asks(s *scene) {
	s.view.Containers[0].Endpoints[0].Wanted = []netip.Addr{addr("10.8.0.2")}
}

// uncertain removes the MACs of web and of its lease, and makes the lease newer than the view.
func uncertain(s *scene) {
	s.view.Containers[0].Endpoints[0].MAC, s.leases[1].MAC, s.leases[1].Since = ipam.MAC{}, ipam.MAC{}, took
}
