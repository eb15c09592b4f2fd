//go:build engine

package engine

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"berth/test/lab"
)

// away is what the tests read of `berth status --format json` about the shared store.
type away struct {
	Away    string
	Waiting int
	Age     float64
}

func (h *Host) away() (away, error) {
	st, err := asked[struct{ Cluster *away }](h.Berth, "status")
	if err == nil && st.Cluster == nil {
		err = errors.New("berth status says nothing of the shared store")
	}
	if err != nil {
		return away{}, err
	}
	return *st.Cluster, nil
}

// reaches waits until the host reaches the shared store and has sent it everything that it kept.
func (h *Host) reaches() error {
	return lab.Eventually(time.Minute, func() error {
		st, err := h.away()
		if err == nil && (st.Away != "" || st.Waiting > 0) {
			err = fmt.Errorf("%v says %+v", h, st)
		}
		return err
	})
}

// lanSubnet is the subnet of the network lan, on which each host of a cluster has its bridge brl2.
const lanSubnet = "10.77.0.0/22"

// planLAN plans lan on one host, with a router that belongs to no host.
func (h *Host) planLAN(options ...string) {
	h.Helper()
	h.berth(append([]string{"network", "create", "lan", "--space", "global", "--subnet", lanSubnet +
		",gateway=10.77.0.1,pool"}, options...)...)
}

// gateway returns the address of the host's bridge on lan.
func (h *Host) gateway() string {
	return "10.77.3." + h.address[strings.LastIndex(h.address, ".")+1:]
}

// joinLAN creates the host's Docker network on lan.
func (h *Host) joinLAN() error {
	return h.joinLANBy(append(letsIn(), "--subnet", lanSubnet, "--gateway", h.gateway())...)
}

// joinLANBy does so with other options. The subnet is optional if the host has no route to it.
func (h *Host) joinLANBy(options ...string) error {
	args := append([]string{"network", "create", "--driver", "bridge", "--opt", "com.docker.network.bridge.name=brl2",
		"--ipam-driver", "berth", "--ipam-opt", "network=lan"}, options...)
	if _, err := h.Engine.Docker(append(args, "lan")...); err != nil {
		return err
	}
	subnets, err := h.Engine.Subnets("lan")
	if err == nil && (len(subnets) != 1 || subnets[0].Subnet != lanSubnet ||
		strings.TrimSuffix(subnets[0].Gateway, "/22") != h.gateway()) {
		err = fmt.Errorf("docker network inspect says %+v", subnets)
	}
	return err
}

// leave removes the host's containers on a Docker network, and the network. If many containers start or end at once,
// the engine sometimes miscounts them, with any IPAM driver. A restart counts them anew.
func (h *Host) leave(network string) error {
	if err := h.removeAll(network); err != nil {
		return err
	}
	err := removeNetwork(h.Engine, network)
	if !errors.Is(err, errMiscounted) {
		return err
	}
	h.Logf("%v: %v", h, err)
	if err := errors.Join(h.engine.StopEngine(), h.engine.Start()); err != nil {
		return err
	}
	_, err = h.Engine.Docker("network", "rm", network)
	return err
}

// removeAll removes the host's containers on a Docker network.
func (h *Host) removeAll(network string) error {
	ids, err := h.Engine.Docker("ps", "--all", "--quiet", "--filter", "network="+network)
	if err != nil {
		return err
	}
	if ids == "" {
		return nil
	}
	_, err = h.Engine.Docker(append([]string{"rm", "--force"}, strings.Fields(ids)...)...)
	return err
}

// holders returns what all hosts' containers have on a network, by address. Two holders of an address are an error.
func (c *Cluster) holders(network string) (map[string]Held, error) {
	all := map[string]Held{}
	for _, h := range c.hosts {
		held, err := h.held(network)
		if err != nil {
			return nil, err
		}
		for _, x := range held {
			if y, ok := all[x.Address]; ok {
				return nil, fmt.Errorf("%s is twice: %s on host %s and %s on host %s have it", x.Address, x.Container,
					x.Host, y.Container, y.Host)
			}
			all[x.Address] = x
		}
	}
	return all, nil
}

// agree checks that each host has the given number of containers on a network, that no address is used twice, and that
// every Berth has exactly these leases on record: address, host and MAC. It returns the containers by address, and all
// other records.
func (c *Cluster) agree(network, subnet string, each ...int) (map[string]Held, []Lease) {
	c.Helper()
	all, err := c.holders(network)
	lab.Must(c, err)
	for i, h := range c.hosts {
		n := 0
		for _, x := range all {
			if x.Host == h.name {
				n++
			}
		}
		if n != each[i] {
			c.Fatalf("%v has %d containers on %s, not %d", h, n, network, each[i])
		}
	}
	var rest []Lease
	for i, h := range c.hosts {
		others, err := recordsOf(h.Berth, subnet, all)
		if err != nil {
			c.Fatalf("the records, as %v shows them: %v", h, err)
		}
		if i > 0 && !slices.EqualFunc(rest, others,
			func(a, b Lease) bool { return a.ID == b.ID && a.Address == b.Address }) {
			c.Fatalf("%v shows %+v, another host %+v", h, others, rest)
		}
		rest = others
	}
	return all, rest
}

// recordsOf compares a Berth's records within a subnet with the containers' addresses, and returns its other records,
// the lowest first.
func recordsOf(b Berth, subnet string, holders map[string]Held) (rest []Lease, err error) {
	records, err := leases(b, subnet)
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for _, l := range records {
		if seen[l.Address] {
			return nil, fmt.Errorf("%s is on record twice", l.Address)
		}
		seen[l.Address] = true
		x, ok := holders[l.Address]
		if !ok {
			rest = append(rest, l)
			continue
		}
		if l.Host != x.Host || !macFits(b, l.MAC, x.MAC) || l.Kind != "automatic" && l.Kind != "static" {
			return nil, fmt.Errorf("%+v has it; on record is %+v", x, l)
		}
	}
	for a, x := range holders {
		if !seen[a] {
			return nil, fmt.Errorf("%s on host %s has %s, which is not on record", x.Container, x.Host, a)
		}
	}
	slices.SortFunc(rest, func(a, b Lease) int {
		return cmp.Or(netip.MustParseAddr(a.Address).Compare(netip.MustParseAddr(b.Address)), cmp.Compare(a.ID, b.ID))
	})
	return rest, nil
}

// onlyGateways checks that the records beside the containers are exactly the router's address and those of the given
// hosts' bridges.
func (c *Cluster) onlyGateways(rest []Lease, hosts ...*Host) {
	c.Helper()
	want := map[string]string{"10.77.0.1": ""}
	for _, h := range hosts {
		want[h.gateway()] = h.name
	}
	for _, l := range rest {
		if host, ok := want[l.Address]; !ok || l.Kind != "gateway" || host != "" && l.Host != host {
			c.Errorf("beside the containers this is on record: %+v", l)
		}
		delete(want, l.Address)
	}
	if len(want) > 0 {
		c.Errorf("these gateways are not on record: %v", want)
	}
}

// settles waits until all containers run as expected and `berth check` of each host finds nothing.
func (c *Cluster) settles(network string, each ...int) {
	c.Helper()
	err := lab.Eventually(3*time.Minute, func() error {
		for i, h := range c.hosts {
			held, err := h.held(network)
			if err == nil && len(held) != each[i] {
				err = fmt.Errorf("%v has %d containers on %s, not %d", h, len(held), network, each[i])
			}
			if err != nil {
				return err
			}
		}
		return c.each((*Host).clean)
	})
	lab.Must(c, err)
}

// clean returns an error if `berth check` of the host finds something.
func (h *Host) clean() error {
	r, out, err := check(h.Berth)
	if err != nil || r.Engine != "reachable" || len(r.Findings) > 0 {
		return fmt.Errorf("berth check: %s (%w)", out, err)
	}
	return nil
}
