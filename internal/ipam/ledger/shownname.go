package ledger

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"berth/internal/ipam"
)

// ShownName is the name of a network in output. A network that a Docker request created, and that nobody has named, has
// the name of its Docker network, if the engine has sent that. If another network of Berth has this name, or several
// Docker networks use the subnets, it keeps its own name.
func (s *Ledger) ShownName(ix *Index, n *ipam.Network) string { return shownName(&s.known, ix, n) }

// ShownName is Ledger.ShownName for a change.
func (c *Change) ShownName(n *ipam.Network) string { return shownName(&c.known, c.index, n) }

func shownName(known *ipam.Known, ix *Index, n *ipam.Network) string {
	if known.DockerNetwork == nil || !madeName(n) || ix.networks[n.ID] == nil {
		return n.Name
	}
	shown := ""
	for _, id := range ix.networks[n.ID].Subnets() {
		sub := ix.subnets[id].record.Value
		name := known.DockerNetwork(sub.Space, sub.CIDR)
		switch _, taken := ix.names[name]; {
		case name == "" || name == shown:
		case shown != "" || taken || ipam.CheckName("network", name) != nil:
			return n.Name
		default:
			shown = name
		}
	}
	if shown == "" {
		return n.Name
	}
	return shown
}

// dockerNetwork returns the network with this Docker name (ShownName). It returns the zero ID if none or several have
// it.
func (s *Ledger) dockerNetwork(ix *Index, name string) ipam.ID {
	if all := ix.dockerNetworks(&s.known, name); len(all) == 1 {
		return all[0]
	}
	return ipam.ID{}
}

// Several refuses a Docker name that several networks have, such as those of a Docker network with both families. If
// only one or none has it, it returns nil.
func (s *Ledger) Several(name string) error {
	return Ask(s, func(ix *Index) error { return ix.several(name, ix.dockerNetworks(&s.known, name)) })
}

func (ix *Index) several(name string, all []ipam.ID) error {
	if len(all) < 2 {
		return nil
	}
	var texts []string
	for _, id := range all {
		var subnets []string
		for _, sub := range ix.networks[id].Subnets() {
			subnets = append(subnets, ix.subnets[sub].record.Value.CIDR.String())
		}
		texts = append(texts, fmt.Sprintf("%s (%s)", id, strings.Join(subnets, ", ")))
	}
	return ipam.Refuse(ipam.ErrInvalid, "the Docker name %s is on %d networks: %s; give the id of the network that "+
		"you mean",
		name, len(all), strings.Join(texts, " and "))
}

// having selects the networks that have a matching subnet for each function of meant. Without any it returns all.
func (ix *Index) having(all []ipam.ID, meant []func(*ipam.Subnet) bool) (fit []ipam.ID) {
	for _, id := range all {
		fits := func(one func(*ipam.Subnet) bool) bool {
			return slices.ContainsFunc(ix.networks[id].Subnets(), func(sub ipam.ID) bool {
				return one(ix.subnets[sub].record.Value)
			})
		}
		if !slices.ContainsFunc(meant, func(one func(*ipam.Subnet) bool) bool { return !fits(one) }) {
			fit = append(fit, id)
		}
	}
	return fit
}

// DockerNames translates network names in events into the current names. It looks up each network once, so a few events
// do not cost a search of all networks. It is for one goroutine.
type DockerNames struct {
	ledger *Ledger
	names  map[ipam.ID]string // empty: the name in the event is right
}

// DockerNames returns a translator of the network names in events.
func (s *Ledger) DockerNames() DockerNames { return DockerNames{s, map[ipam.ID]string{}} }

// Show gives an event the network's Docker name, if the engine sent that name only after the event.
func (d DockerNames) Show(e *ipam.Event) {
	if d.ledger.known.DockerNetwork == nil || e.NetworkID == (ipam.ID{}) {
		return
	}
	name, asked := d.names[e.NetworkID]
	if !asked {
		name = Ask(d.ledger, func(ix *Index) string { return ix.dockerName(&d.ledger.known, e.NetworkID) })
		d.names[e.NetworkID] = name
	}
	if name == "" {
		return
	}
	if e.Name == e.Network { // the event is about the network itself
		e.Name = name
	}
	e.Network = name
}

// dockerName is the Docker name of a network, or empty if the network is shown under its own name.
func (ix *Index) dockerName(known *ipam.Known, id ipam.ID) string {
	n := ix.Network(id)
	if n == nil {
		return ""
	}
	if name := shownName(known, ix, n); name != n.Name {
		return name
	}
	return ""
}

// dockerNetworks lists the networks with this Docker name (ShownName), by id.
func (ix *Index) dockerNetworks(known *ipam.Known, name string) (found []ipam.ID) {
	if known.DockerNetwork == nil {
		return nil
	}
	for id, nx := range ix.networks {
		if n := nx.record.Value; n != nil && shownName(known, ix, n) == name {
			found = append(found, id)
		}
	}
	slices.SortFunc(found, func(a, b ipam.ID) int { return bytes.Compare(a[:], b[:]) })
	return found
}

// madeName reports whether a network still has the generated name of one that a Docker request created.
func madeName(n *ipam.Network) bool {
	id, made := strings.CutPrefix(n.Name, "net-")
	return made && (id == n.ID.Short() || id == n.ID.String())
}
