package ledger

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"berth/internal/ipam"
)

// ShownName is what a network is called to people. A network that was made because Docker asked for a subnet, and that
// nobody has named, planned meanwhile or not, is called what Docker calls its own network there, where the engine has
// said that. Where another network of Berth has this name, or several of Docker's are on it, it keeps its own.
func (s *Ledger) ShownName(ix *Index, n *ipam.Network) string { return shownName(&s.known, ix, n) }

// ShownName is as that of the ledger.
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

// dockerNetwork is the network that is called by a name of Docker's (ShownName); the zero ID where none is, or several.
func (s *Ledger) dockerNetwork(ix *Index, name string) ipam.ID {
	if all := ix.dockerNetworks(&s.known, name); len(all) == 1 {
		return all[0]
	}
	return ipam.ID{}
}

// Several refuses a name of Docker's by which several networks are called: those of a Docker network of both families.
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
	return ipam.Refuse(ipam.ErrInvalid, "what Docker calls %s is on %d networks: %s; name the one that you mean by its id",
		name, len(all), strings.Join(texts, " and "))
}

// having are those of the networks that have a subnet for each thing that is meant; all, where nothing is.
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

// DockerNames tells what networks are called now that events name. It asks once for each network that comes up, so that
// who reads a few events does not look at all networks. It is for one reader.
type DockerNames struct {
	ledger *Ledger
	names  map[ipam.ID]string // empty: the network is called as events have it
}

// DockerNames is what Docker calls the networks that were made for it, as far as the engine has said that.
func (s *Ledger) DockerNames() DockerNames { return DockerNames{s, map[ipam.ID]string{}} }

// Show has an event that was written before the engine said a name tell that.
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
	if e.Name == e.Network { // what happened to the network itself
		e.Name = name
	}
	e.Network = name
}

// dockerName is what Docker calls a network whose record has another name; empty where that is not so.
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

// dockerNetworks are the networks that are called by a name of Docker's (ShownName), by their ids.
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

// madeName tells whether a network is called as one that is made because Docker asks for a subnet.
func madeName(n *ipam.Network) bool {
	id, made := strings.CutPrefix(n.Name, "net-")
	return made && (id == n.ID.Short() || id == n.ID.String())
}
