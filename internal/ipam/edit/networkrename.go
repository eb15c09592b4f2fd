package edit

import (
	"cmp"
	"fmt"
	"slices"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// formerFacts is the event data of a network that loses a former name.
type formerFacts struct {
	FormerNames []string `json:"former_names"`
}

// rename gives n, a copy of the network's record, another name. It warns of the Docker networks that use the present
// one. Docker's requests may use it until another network gets it.
func (p *Plan) rename(n *ipam.Network, name string) error {
	if err := p.run.takeName(name, p.N.ID); err != nil {
		return err
	}
	was := n.Name
	users := p.askedBy(was)
	if !n.Planned && len(users) == 0 {
		n.Name = name // nobody has asked for a name that Berth chose
		return nil
	}
	n.Rename(name)
	result := &p.run.result
	for _, user := range users[:min(len(users), maxKeepers)] {
		result.Warnings = append(result.Warnings, fmt.Sprintf("%s was created with --ipam-opt network=%s; use "+
			"network=%s when you create it again", user, was, name))
	}
	if more := len(users) - maxKeepers; more > 0 {
		result.Warnings = append(result.Warnings, fmt.Sprintf("%d more Docker networks have the same option", more))
	}
	result.Warnings = append(result.Warnings, fmt.Sprintf("Docker commands can still use network=%s for this network "+
		"until another network gets that name", was))
	return nil
}

// askedBy describes the Docker networks on the network that named it so when they were created.
func (p *Plan) askedBy(name string) (users []string) {
	for _, at := range p.Index().Attachments() {
		sx := p.Index().Subnet(at.Subnet)
		if at.Ended || at.AskedNetwork != name || sx == nil || sx.Record().Network != p.N.ID {
			continue
		}
		users = append(users, dockerNetworkText(p.Change, at))
	}
	slices.Sort(users)
	return slices.Compact(users)
}

// dockerNetworkText describes the Docker network of an attachment: by its name if the witness of this host knows it.
func dockerNetworkText(c *ledger.Change, at *ipam.Attachment) string {
	known := ""
	if at.Host == c.Host() && c.Known().DockerNetwork != nil {
		known = c.Known().DockerNetwork(at.Space, at.CIDR)
	}
	text := "the Docker network " + cmp.Or(known, "on "+at.CIDR.String())
	if at.Host != c.Host() {
		text += " of host " + at.Host
	}
	return text
}

// takeFormerNames makes the former names of n those of no other network. A name that another network has now is
// refused.
func (c *run) takeFormerNames(n *ipam.Network) error {
	for _, name := range n.FormerNames {
		taken, err := c.Tx().Get(ledger.NameKey(nil, name))
		if err != nil {
			return err
		}
		if taken != nil && !slices.Equal(taken, n.ID[:]) {
			return ipam.Refuse(ipam.ErrInUse, "%s cannot be a former name of network %s, because another network has "+
				"that name; leave it out", name, n.Name)
		}
		if err := c.dropFormerName(name, n.ID); err != nil {
			return err
		}
	}
	return nil
}

// dropFormerName takes a name from the former names of another network than keeper.
func (c *run) dropFormerName(name string, keeper ipam.ID) error {
	id := c.Index().FormerlyNamed(name)
	if id == (ipam.ID{}) || id == keeper {
		return nil
	}
	n, err := c.ReadNetwork(id)
	if err != nil || n == nil {
		return err
	}
	p := c.plan(n)
	users := p.askedBy(name)
	edited := *n
	edited.FormerNames = ipam.Less(n.FormerNames, name)
	p.N = &edited
	before, after := formerFacts{n.FormerNames}, formerFacts{edited.FormerNames}
	if err := p.Note(&ipam.Event{Verb: ipam.NetworkModified}, before, after); err != nil {
		return err
	}
	c.result.Warnings = append(c.result.Warnings, fmt.Sprintf("network %s had the name %s before; from now on, "+
		"--ipam-opt network=%s means another network", n.Name, name, name))
	for _, user := range users[:min(len(users), maxKeepers)] {
		c.result.Warnings = append(c.result.Warnings, fmt.Sprintf("%s was created with network=%s, and is on network "+
			"%s",
			user, name, n.Name))
	}
	return nil
}
