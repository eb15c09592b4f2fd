package page

import (
	"net/http"
	"strconv"
	"strings"

	"berth/internal/ipam"
	"berth/internal/shorten"
)

// find shows what a word matches: addresses, names, owners, MACs, projects, tags and notes.
func (p *Page) find(r *http.Request) (*shown, error) {
	q, err := query(r, "q", "from")
	if err != nil {
		return nil, err
	}
	from, err := fromOf(q.Get("from"))
	if err != nil {
		return nil, err
	}
	word := strings.TrimSpace(q.Get("q"))
	s := &shown{Title: "Find", File: "find", Here: "find", Still: true}
	t := &table{Name: "found", Title: "Found", None: "Nothing matches in any address, name, owner, MAC, tag or note.",
		Columns: columns("what", "What", "kind", "Kind", "network", "Network", "name", "Name", "state", "State", "mac", "MAC",
			"host", "Host", "found_in", "Found in", "address", "-Address", "subnet", "-Subnet", "space", "-Space", "network_id",
			"-Id of the network", "id", "-Id")}
	if word == "" {
		s.note("Give an address, or a part of a name, an owner, a MAC, a project, a tag or a note.")
		return s, nil
	}
	s.Title = "Find " + shorten.To(word, shorten.Most)
	s.table(t)
	n := 0
	for one, err := range p.cfg.Service.Find(r.Context(), ipam.FindFilter{Word: word}) {
		if err != nil {
			return nil, err
		}
		if n++; n <= from {
			continue
		}
		if len(t.Rows) == perPage {
			t.Next = with(r, "from", strconv.Itoa(from+perPage))
			break
		}
		p.found(t, &one, rootOf(r))
	}
	return s, nil
}

func (p *Page) found(t *table, f *ipam.Found, root string) {
	to := ""
	switch {
	case f.Address.IsValid():
		to = addressLink(root, f.Space, f.Address)
	case f.Kind == ipam.FoundNetwork, f.NetworkID != (ipam.ID{}) && f.Kind != ipam.FoundSubnet:
		to = networkLink(root, firstID(f.NetworkID, f.ID))
	case f.Kind == ipam.FoundSubnet:
		to = link(root, []string{"subnet", f.ID.String()})
	case f.Kind == ipam.FoundHost:
		to = link(root, []string{"hosts"})
	case f.Kind == ipam.FoundAccount, f.Kind == ipam.FoundRange:
		to = link(root, []string{"elastic"})
	}
	why := texts(f.Why, func(m ipam.Match) string { return m.Field + " " + m.Text })
	p.add(t, p.of(f.What).to(to), f.Kind, f.Network, f.Name, f.State, f.MAC, f.Host,
		strings.Join(why, ", "), f.Address, f.Subnet, f.Space, f.NetworkID, f.ID)
}

func firstID(ids ...ipam.ID) ipam.ID {
	for _, id := range ids {
		if id != (ipam.ID{}) {
			return id
		}
	}
	return ipam.ID{}
}
