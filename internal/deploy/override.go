package deploy

import (
	"bytes"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// Override returns the Compose file that sets the granted addresses. It follows the project's own files.
func (p *Plan) Override() ([]byte, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s: the reserved addresses of its services. Write it again when\n"+
		"# the Compose file changes. If Docker created a network without it, run `down` and `up` of the project.\n",
		marked(p.project.Name()))
	macs := p.macs()
	if len(macs) > 0 {
		fmt.Fprint(&b, "# mac_address matters only on networks whose driver asks for MACs (berth-mac).\n")
	}
	for _, note := range p.notes() {
		fmt.Fprintf(&b, "# %s\n", note)
	}
	root := mapping()
	if p.project.version != "" {
		put(root, "version", text(p.project.version))
	}
	put(root, "services", p.services(macs))
	networks, err := p.described()
	if err != nil {
		return nil, err
	}
	if len(networks.Content) > 0 {
		put(root, "networks", networks)
	}
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := e.Encode(root); err != nil {
		return nil, err
	}
	return b.Bytes(), e.Close()
}

// services describes the services with their MACs. A service with several replicas gets only a comment.
func (p *Plan) services(macs map[string]string) *yaml.Node {
	all := mapping()
	byService := map[string][]*claim{}
	for _, c := range p.claims {
		byService[c.service] = append(byService[c.service], c)
	}
	for _, name := range slices.Sorted(maps.Keys(byService)) {
		claims := byService[name]
		slices.SortStableFunc(claims, func(a, b *claim) int { return strings.Compare(a.on.key, b.on.key) })
		if claims[0].shared {
			put(all, name, mapping()).HeadComment = sharedComment(claims)
			continue
		}
		service, networks := mapping(), mapping()
		if mac := macs[name]; mac != "" {
			put(service, "mac_address", text(mac))
		}
		for _, c := range claims {
			on := mapping()
			for _, a := range c.has {
				put(on, fmt.Sprintf("ipv%d_address", familyOf(a)), text(a.String()))
			}
			put(networks, c.on.key, on)
		}
		put(service, "networks", networks)
		key := put(all, name, service)
		if container := p.project.compose.Services[name].ContainerName; container != "" {
			key.HeadComment = containerComment + container
		}
	}
	return all
}

// sharedComment explains why the file sets nothing for a service, and lists the addresses of its replicas.
func sharedComment(claims []*claim) string {
	replicas := map[string]bool{}
	lines := []string{"", "If the engine sends container names (v29 and later), each gets its own, otherwise one of " +
		"the pool:"}
	for _, c := range claims {
		replicas[c.owner] = true
		lines = append(lines, fmt.Sprintf("  %s on %s: %s", c.owner, c.on.key, Listed(c.has, ", ")))
	}
	lines[0] = fmt.Sprintf("Its %d replicas share one Compose entry, so nothing is fixed here.",
		len(replicas))
	return "# " + strings.Join(lines, "\n# ")
}

// Listed joins addresses to a text.
func Listed(addrs []netip.Addr, between string) string {
	all := make([]string, len(addrs))
	for i, a := range addrs {
		all[i] = a.String()
	}
	return strings.Join(all, between)
}

// described returns the networks whose subnets the files do not name.
func (p *Plan) described() (*yaml.Node, error) {
	all := mapping()
	for _, key := range slices.Sorted(maps.Keys(p.networks)) {
		config, needed := p.networks[key].complete(p.project.Name())
		if !needed {
			continue
		}
		n := &yaml.Node{}
		if err := n.Encode(config); err != nil {
			return nil, fmt.Errorf("networks.%s: %w", key, err)
		}
		plain(n)
		put(all, key, n)
	}
	return all, nil
}

// plain makes all parsers read a value alike. It quotes texts, because older parsers take some for numbers or booleans.
// It doubles each $, because Compose substitutes variables.
func plain(n *yaml.Node) {
	switch n.Kind {
	case yaml.ScalarNode:
		if n.Tag == "!!str" {
			*n = *text(strings.ReplaceAll(n.Value, "$", "$$"))
		}
	case yaml.MappingNode:
		for i := 1; i < len(n.Content); i += 2 {
			plain(n.Content[i])
		}
	default:
		for _, below := range n.Content {
			plain(below)
		}
	}
}

func mapping() *yaml.Node { return &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"} }

func text(s string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Style: yaml.DoubleQuotedStyle, Value: s}
}

// put adds a key with its value to a mapping, and returns the key.
func put(m *yaml.Node, key string, value *yaml.Node) *yaml.Node {
	k := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: key}
	m.Content = append(m.Content, k, value)
	return k
}
