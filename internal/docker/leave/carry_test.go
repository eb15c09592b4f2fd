package leave

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"berth/internal/docker"
	"berth/internal/docker/pin"
	"berth/internal/ipam"

	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
	"go4.org/netipx"
	"pgregory.net/rapid"
)

// drawn is a planned subnet with one Docker network on it, and what Berth's records say.
type drawn struct {
	cidr netip.Prefix
	rec  *pin.Records
	note *Note
}

// drawPlan draws a /24 with pools, exclusions, devices, reservations and containers.
func drawPlan(t *rapid.T) *drawn {
	d := &drawn{cidr: netip.MustParsePrefix("10.9.0.0/24"), rec: &pin.Records{}}
	id := ipam.ID{1}
	sub := ipam.SubnetInfo{Network: "lan", NetworkID: id}
	sub.Space, sub.CIDR, sub.Gateway = ipam.LocalSpace, d.cidr, d.at(1)
	free := map[int]bool{}
	for i := 2; i < 255; i++ {
		free[i] = true
	}
	pick := func(label string) netip.Addr {
		i := rapid.IntRange(2, 254).Filter(func(i int) bool { return free[i] }).Draw(t, label)
		delete(free, i)
		return d.at(i)
	}
	span := func(label string) ipam.Range {
		from := rapid.IntRange(2, 250).Draw(t, label+" from")
		most := from + rapid.SampledFrom([]int{0, 3, 40, 200}).Draw(t, label+" size")
		to := rapid.IntRange(from, min(254, most)).Draw(t, label+" to")
		return ipam.Range{IPRange: netipx.IPRangeFrom(d.at(from), d.at(to))}
	}
	switch rapid.SampledFrom([]string{"whole", "aligned", "none", "some"}).Draw(t, "pools") {
	case "whole":
		sub.Pools = []ipam.Pool{{Range: ipam.Range{IPRange: netipx.RangeOfPrefix(d.cidr)}}}
	case "aligned":
		first, bits := d.at(rapid.IntRange(0, 255).Draw(t, "block")), rapid.IntRange(25, 30).Draw(t, "bits")
		block := netip.PrefixFrom(first, bits).Masked()
		sub.Pools = []ipam.Pool{{Range: ipam.Range{IPRange: netipx.RangeOfPrefix(block)}}}
	case "some":
		for range rapid.IntRange(1, 3).Draw(t, "number of pools") {
			sub.Pools = append(sub.Pools, ipam.Pool{Range: span("pool")})
		}
	}
	for range rapid.IntRange(0, 2).Draw(t, "exclusions") {
		sub.Exclusions = append(sub.Exclusions, ipam.Exclusion{Range: span("exclusion")})
	}
	d.note = &Note{Network: "lan", Planned: []string{id.String()}, Old: client.NetworkCreateOptions{IPAM: &network.IPAM{}}}
	d.note.New.IPAM = &network.IPAM{Config: []network.IPAMConfig{{Subnet: d.cidr, Gateway: sub.Gateway}}}
	lease := func(kind ipam.Kind, name, host string) {
		d.rec.Leases = append(d.rec.Leases, ipam.LeaseInfo{Address: pick(name), Subnet: d.cidr, Space: sub.Space,
			Kind: kind, State: "held", Name: name, Host: host})
	}
	for i := range rapid.IntRange(0, 40).Draw(t, "devices") {
		lease(ipam.External, fmt.Sprint("device", i%30), "a") // some have several addresses
	}
	for i := range rapid.IntRange(0, 3).Draw(t, "leases of another host") {
		lease(ipam.Automatic, fmt.Sprint("other", i), "b")
	}
	for i := range rapid.IntRange(0, 10).Draw(t, "reservations") {
		d.rec.Reservations = append(d.rec.Reservations, ipam.ReservationInfo{Owner: fmt.Sprint("owner", i),
			Address: pick("reserved"), Space: sub.Space, Subnet: d.cidr})
	}
	for i := range rapid.IntRange(0, 5).Draw(t, "containers") {
		one := Endpoint{Container: fmt.Sprint("c", i), Addresses: []netip.Addr{pick("container")}}
		d.note.Endpoints = append(d.note.Endpoints, one)
	}
	d.rec.Subnets = []ipam.SubnetInfo{sub}
	return d
}

func (d *drawn) at(i int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, 9, 0, byte(i)})
}

// chosenByBerth reports whether Berth may choose an address for a container that is new.
func (d *drawn) chosenByBerth(addr netip.Addr) bool {
	sub := &d.rec.Subnets[0]
	free := addr != sub.Gateway && addr != d.at(0) && addr != d.at(255) && !d.hasContainer(addr)
	in := false
	for _, p := range sub.Pools {
		in = in || p.Range.Contains(addr)
	}
	for _, x := range sub.Exclusions {
		free = free && !x.Range.Contains(addr)
	}
	for _, l := range d.rec.Leases {
		free = free && l.Address != addr
	}
	for _, r := range d.rec.Reservations {
		free = free && r.Address != addr
	}
	return free && in
}

// chosenByDocker reports whether the engine's own IPAM may choose it afterwards.
func (d *drawn) chosenByDocker(addr netip.Addr) bool {
	config := &d.note.New.IPAM.Config[0]
	for _, aux := range config.AuxAddress {
		if aux == addr {
			return false
		}
	}
	return (!config.IPRange.IsValid() || config.IPRange.Contains(addr)) && addr != config.Gateway && addr != d.at(0) &&
		addr != d.at(255) && !d.hasContainer(addr)
}

func (d *drawn) hasContainer(addr netip.Addr) bool {
	for i := range d.note.Endpoints {
		if d.note.Endpoints[i].Addresses[0] == addr {
			return true
		}
	}
	return false
}

// TestCarry: after `leave`, Docker chooses the addresses that Berth would have chosen, and no others. What differs is
// said. `berth adopt` reads back the same.
func TestCarry(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := drawPlan(t)
		d.note.Carry(d.rec, "a")
		said := strings.Join(d.note.Lost, "\n")
		config := &d.note.New.IPAM.Config[0]
		if len(config.AuxAddress) > maxAux {
			t.Fatalf("%d auxiliary addresses", len(config.AuxAddress))
		}
		for i := range 256 {
			addr := d.at(i)
			berth, own := d.chosenByBerth(addr), d.chosenByDocker(addr)
			if own && !berth && said == "" {
				t.Fatalf("Docker may choose %s, Berth did not, and nothing is said: %+v", addr, config)
			}
			if berth && !own && !strings.Contains(said, "aligned") {
				t.Fatalf("Berth chose %s, Docker does not, and nothing is said: %+v, %q", addr, config, said)
			}
		}
		aux := map[netip.Addr]bool{}
		for _, addr := range config.AuxAddress {
			if aux[addr] = true; d.hasContainer(addr) {
				t.Fatalf("the container with %s cannot start", addr)
			}
		}
		for k := range keptBy(d.rec, &d.rec.Subnets[0], "a") {
			for addr := k.ips.From(); addr.Compare(k.ips.To()) <= 0; addr = addr.Next() {
				if !aux[addr] && !d.hasContainer(addr) && addr != config.Gateway && !strings.Contains(said, k.what+":") {
					t.Fatalf("%s of %s is not kept, and not named: %+v, %q", addr, k.what, config, said)
				}
			}
		}
		plan, err := docker.AdoptPlan(ipam.EngineView{Networks: []ipam.EngineNetwork{{ID: "1", Name: "lan",
			Subnets: []ipam.EngineSubnet{{CIDR: config.Subnet, Gateway: config.Gateway, Range: config.IPRange,
				Aux: config.AuxAddress}}}}}, "lan")
		if err != nil {
			t.Fatal(err)
		}
		adopted := map[netip.Addr]bool{}
		for _, one := range plan.Networks[0].Addresses {
			adopted[one.Address] = true
		}
		for _, aux := range config.AuxAddress {
			if !adopted[aux] {
				t.Fatalf("%s of %v is not adopted: %v", aux, config.AuxAddress, plan.Networks[0].Addresses)
			}
		}
	})
}

func rangeOf(text string) ipam.Range { return ipam.Range{IPRange: netipx.MustParseIPRange(text)} }

// TestCarryOne: one of each kind.
func TestCarryOne(t *testing.T) {
	addr := netip.MustParseAddr
	cidr := netip.MustParsePrefix("10.9.0.0/24")
	for _, c := range []struct {
		name    string
		pools   []string
		more    func(*drawn)
		ipRange string
		aux     map[string]string
		lost    []string
	}{
		{name: "the whole subnet", pools: []string{"10.9.0.0-10.9.0.255"}},
		{name: "one aligned pool", pools: []string{"10.9.0.128-10.9.0.255"}, ipRange: "10.9.0.128/25"},
		{name: "no pool",
			lost: []string{"10.9.0.0/24 has no pool, so Berth chose no addresses from it, but Docker will"}},
		{name: "another pool", pools: []string{"10.9.0.100-10.9.0.150"}, ipRange: "10.9.0.112/28",
			lost: []string{"the pools of 10.9.0.0/24 are not one aligned block, which Docker requires; new " +
				"containers get addresses of 10.9.0.112/28"}},
		{name: "a device", pools: []string{"10.9.0.0-10.9.0.255"}, aux: map[string]string{"nas": "10.9.0.2"},
			more: func(d *drawn) {
				d.rec.Leases = append(d.rec.Leases, ipam.LeaseInfo{Address: addr("10.9.0.2"), Subnet: cidr, Space: "local",
					Kind: ipam.External, State: "held", Name: "nas", Host: "a"})
			}},
		{name: "an exclusion", pools: []string{"10.9.0.0-10.9.0.255"},
			aux: map[string]string{"kept-10.9.0.7": "10.9.0.7", "kept-10.9.0.8": "10.9.0.8"}, more: func(d *drawn) {
				d.rec.Subnets[0].Exclusions = []ipam.Exclusion{{Range: rangeOf("10.9.0.7-10.9.0.8")}}
			}},
		{name: "a large exclusion", pools: []string{"10.9.0.0-10.9.0.255"}, more: func(d *drawn) {
			d.rec.Subnets[0].Exclusions = []ipam.Exclusion{{Range: rangeOf("10.9.0.2-10.9.0.99"), Note: "DHCP"}}
		}, lost: []string{"the exclusion 10.9.0.2-10.9.0.99 (DHCP): Docker keeps no more than 64 addresses for Berth, " +
			"so any container may get it"}},
		{name: "outside the pool", pools: []string{"10.9.0.128-10.9.0.255"}, ipRange: "10.9.0.128/25",
			aux: map[string]string{"nas": "10.9.0.20", "later": "10.9.0.30", "kept-10.9.0.5": "10.9.0.5",
				"kept-10.9.0.140": "10.9.0.140"}, more: func(d *drawn) {
				d.rec.Leases = append(d.rec.Leases, ipam.LeaseInfo{Address: addr("10.9.0.20"), Subnet: cidr, Space: "local",
					Kind: ipam.External, State: "held", Name: "nas", Host: "a"})
				d.rec.Reservations = append(d.rec.Reservations, ipam.ReservationInfo{Owner: "later",
					Address: addr("10.9.0.30"), Space: "local", Subnet: cidr})
				d.rec.Subnets[0].Exclusions = []ipam.Exclusion{{Range: rangeOf("10.9.0.5-10.9.0.5")},
					{Range: rangeOf("10.9.0.140-10.9.0.140")}}
				d.rec.Subnets[0].Static = []ipam.Range{rangeOf("10.9.0.40-10.9.0.50")} // --ip goes on taking these
			}},
		{name: "too much outside the pool", pools: []string{"10.9.0.128-10.9.0.255"}, ipRange: "10.9.0.128/25",
			aux: map[string]string{"kept-10.9.0.140": "10.9.0.140"}, more: func(d *drawn) {
				d.rec.Subnets[0].Exclusions = []ipam.Exclusion{{Range: rangeOf("10.9.0.2-10.9.0.99")},
					{Range: rangeOf("10.9.0.140-10.9.0.140")}}
			}, lost: []string{"the exclusion 10.9.0.2-10.9.0.99: Docker keeps no more than 64 addresses for Berth, " +
				"so a container that asks for it gets it"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := &drawn{cidr: cidr, rec: &pin.Records{}}
			sub := ipam.SubnetInfo{NetworkID: ipam.ID{1}}
			sub.Space, sub.CIDR = "local", cidr
			for _, p := range c.pools {
				sub.Pools = append(sub.Pools, ipam.Pool{Range: rangeOf(p)})
			}
			d.rec.Subnets = []ipam.SubnetInfo{sub}
			if c.more != nil {
				c.more(d)
			}
			n := &Note{Planned: []string{ipam.ID{1}.String()}, Old: client.NetworkCreateOptions{IPAM: &network.IPAM{}}}
			n.New.IPAM = &network.IPAM{Config: []network.IPAMConfig{{Subnet: cidr, Gateway: addr("10.9.0.1")}}}
			n.Carry(d.rec, "a")
			got := n.New.IPAM.Config[0]
			aux := map[string]string{}
			for name, a := range got.AuxAddress {
				aux[name] = a.String()
			}
			if got.IPRange.IsValid() != (c.ipRange != "") || got.IPRange.IsValid() && got.IPRange.String() != c.ipRange ||
				fmt.Sprint(aux) != fmt.Sprint(c.aux) || fmt.Sprint(n.Lost) != fmt.Sprint(c.lost) {
				t.Errorf("%+v, lost is %q", got, n.Lost)
			}
		})
	}
}
