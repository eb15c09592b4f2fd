package docker

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"berth/internal/ipam"
)

// now is the time of the comparisons in these tests, and took the time of their views.
var (
	now  = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	took = now.Add(-time.Second)
	old  = now.Add(-time.Hour)
)

func addr(text string) netip.Addr     { return netip.MustParseAddr(text) }
func prefix(text string) netip.Prefix { return netip.MustParsePrefix(text) }

func macN(n int) ipam.MAC    { return ipam.MAC{2, 0, 0, byte(n >> 16), byte(n >> 8), byte(n)} }
func idN(n int) (id ipam.ID) { id[0], id[15] = byte(n), 1; return id }

// scene is the input of a comparison.
type scene struct {
	view         ipam.EngineView
	attachments  []ipam.AttachmentInfo
	leases       []ipam.LeaseInfo
	reservations []ipam.ReservationInfo
	networks     map[string]string
	rules        map[planned]*ipam.Network
	elastic      map[planned]bool
	mapped       []ipam.ElasticGuest
	gaps         []ipam.SystemGap
	cluster      bool
	partial      error
}

// newScene returns the Docker network n1 of 10.8.0.0/24 with the container web at .2. A comparison finds nothing.
func newScene() *scene {
	s := &scene{view: ipam.EngineView{Host: "h1", Taken: took}, networks: map[string]string{},
		rules: map[planned]*ipam.Network{}}
	s.attach(1, "10.8.0.0/24")
	s.gateway("10.8.0.1")
	s.network(1, "10.8.0.0/24", "10.8.0.1")
	s.run("web", 1, "10.8.0.2", 1)
	s.lease("10.8.0.2", 1, 1)
	return s
}

func (s *scene) network(n int, cidr, gateway string) *ipam.EngineNetwork {
	sub := ipam.EngineSubnet{CIDR: prefix(cidr)}
	if gateway != "" {
		sub.Gateway = addr(gateway)
	}
	s.view.Networks = append(s.view.Networks,
		ipam.EngineNetwork{ID: fmt.Sprintf("n%d", n), Name: fmt.Sprintf("docker%d", n), Driver: "berth",
			Subnets: []ipam.EngineSubnet{sub}})
	return &s.view.Networks[len(s.view.Networks)-1]
}

func (s *scene) attach(n int, cidr string) *ipam.AttachmentInfo {
	s.attachments = append(s.attachments,
		ipam.AttachmentInfo{ID: idN(n), Space: "local", CIDR: prefix(cidr), Network: "front", Host: "h1", Created: old,
			Gateway: prefix(cidr).Addr().Next()})
	return &s.attachments[len(s.attachments)-1]
}

// run adds a container with one endpoint. n determines its MAC and id.
func (s *scene) run(name string, network int, address string, n int) *ipam.EngineContainer {
	s.view.Containers = append(s.view.Containers,
		ipam.EngineContainer{ID: "c-" + name, Name: name, State: "running", Endpoints: []ipam.EngineEndpoint{
			{Network: fmt.Sprintf("n%d", network), ID: fmt.Sprintf("e%d", n), MAC: macN(n),
				Addresses: []netip.Addr{addr(address)}}}})
	return &s.view.Containers[len(s.view.Containers)-1]
}

// lease adds a lease of MAC n through an attachment.
func (s *scene) lease(address string, n, attachment int) *ipam.LeaseInfo {
	s.leases = append(s.leases,
		ipam.LeaseInfo{ID: uint64(100 + len(s.leases)), Address: addr(address),
			Subnet: netip.PrefixFrom(addr(address), 24).Masked(), Space: "local", Network: "front",
			Kind: ipam.Automatic, State: "held", MAC: macN(n), Host: "h1", Pool: idN(attachment), Since: old})
	return &s.leases[len(s.leases)-1]
}

func (s *scene) gateway(address string) *ipam.LeaseInfo {
	l := s.lease(address, 0, 0)
	l.MAC, l.Pool, l.Kind = ipam.MAC{}, ipam.ID{}, ipam.Gateway
	return l
}

func (s *scene) reserve(owner, address string) *ipam.ReservationInfo {
	s.reservations = append(s.reservations,
		ipam.ReservationInfo{Owner: owner, Address: addr(address), Kind: ipam.Static, Space: "local", Network: "front",
			Subnet: prefix("10.8.0.0/24"), Since: old})
	return &s.reservations[len(s.reservations)-1]
}

// rule adds an owner rule to the network front of a space.
func (s *scene) rule(pattern, owner, space string) {
	s.rules[planned{space, "front"}] = &ipam.Network{Name: "front",
		Rules: []ipam.OwnerRule{{Pattern: pattern, Owner: owner}}}
}

// nftables sets the firewall's backend to nftables, and turns elastic addresses on for the network front.
func (s *scene) nftables() {
	s.view.Firewall = "nftables"
	s.view.Networks[0].Kind = "bridge"
	s.elastic = map[planned]bool{{"local", "front"}: true}
}

// maps maps an elastic address to the container web, which publishes ports.
func (s *scene) maps(ports ...string) {
	s.view.Containers[0].Published = ports
	s.mapped = []ipam.ElasticGuest{{Space: "local", Network: "front", Guest: addr("10.8.0.2"),
		Elastic: addr("203.0.113.1")}}
}

// lacks takes the system address from the container web.
func (s *scene) lacks(ports ...string) {
	s.gaps = []ipam.SystemGap{{Space: "local", Network: "front", Subnet: prefix("10.8.0.0/24"), Guest: addr("10.8.0.2"),
		Instance: "web", Published: ports}}
}

func (s *scene) compare() *comparison {
	rec := &records{leases: s.leases, reservations: s.reservations, networks: s.networks, rules: s.rules,
		elastic: s.elastic, mapped: s.mapped, gaps: s.gaps, cluster: s.cluster, partial: s.partial}
	rec.index(s.attachments, s.view.Host)
	return compare(&s.view, rec, now)
}

// brief lists findings: kind, subject, and whether they are certain.
func brief(found []finding) []string {
	all := []string{}
	for _, f := range found {
		text := string(f.Kind) + " "
		if f.Address.IsValid() {
			text += f.Address.String()
		} else {
			text += f.Subnet.String()
		}
		if f.Space != "local" {
			text += " in " + f.Space
		}
		if f.Pool != (ipam.ID{}) && f.Kind != ipam.UnusedLease {
			text += fmt.Sprintf(" pool%d", f.Pool[0])
		}
		if f.sure {
			text += " sure"
		}
		if f.slow {
			text += "ly" // surely: certain only after a wait
		}
		all = append(all, text)
	}
	slices.Sort(all)
	return all
}
