package page

import (
	"cmp"
	"fmt"
	"net/http"
	"net/netip"

	"berth/internal/ipam"
)

// home shows the overview: full networks, findings, and who has what.
func (p *Page) home(r *http.Request) (*shown, error) {
	if _, err := query(r, "from", sortParameter, filterParameter); err != nil {
		return nil, err
	}
	s := &shown{Title: "Networks", File: "networks"}
	if err := p.state(r, s); err != nil {
		return nil, err
	}
	found, err := p.wrong(r, s)
	if err != nil {
		return nil, err
	}
	if err := p.networks(r, s, found); err != nil {
		return nil, err
	}
	return s, p.containers(r, s)
}

// fewFindings is the maximum number of findings on the first view.
const fewFindings = 5

// wrong shows the first findings, and counts the findings of each network.
func (p *Page) wrong(r *http.Request, s *shown) (map[string]int, error) {
	if p.cfg.Findings == nil {
		return nil, nil
	}
	report, err := p.cfg.Findings(r.Context())
	if err != nil {
		return nil, err
	}
	counts := map[string]int{}
	for i := range report.Findings {
		counts[report.Findings[i].Network]++
	}
	if len(report.Findings) == 0 {
		return counts, nil
	}
	root := rootOf(r)
	t := s.table(&table{Name: "findings", Title: "What is wrong", Columns: columns("kind", "Kind", "address", "Address",
		"network", "Network", "detail", "What it is, and what to do")})
	for i := range report.Findings[:min(len(report.Findings), fewFindings)] {
		f := &report.Findings[i]
		p.add(t, string(f.Kind), p.of(f.Address).to(addressLink(root, f.Space, f.Address)),
			f.Network, f.Detail)
	}
	if len(report.Findings) > fewFindings {
		t.Next = link(root, []string{"findings"})
	}
	return counts, nil
}

// networks shows the networks, the fullest first.
func (p *Page) networks(r *http.Request, s *shown, found map[string]int) error {
	all, err := p.cfg.Service.Networks(r.Context(), ipam.NetworkFilter{Brief: true})
	if err != nil {
		return err
	}
	root := rootOf(r)
	t := s.table(&table{Name: "networks", Title: "Networks",
		None: "There is no network yet. Create one with `berth network create`, or let Docker make one:", Begin: "docker network create --ipam-driver berth front",
		Columns: columns("network", "Network", "cidrs", "Subnets", "used", "Used", "trend", "-Last day", "leased", "#Held",
			"reserved", "#Idle", "quarantined", "-#Quarantined", "free", "#Free", "excluded", "-#Excluded", "findings",
			"#Findings", "space", "-Space", "tags", "-Tags", "network_id", "-Id")})
	p.offer(r, s, offered{"Create a network", link(root, []string{"change", creating})})
	return arrange(r, t, "-used", listed[ipam.NetworkInfo]{all, func(n *ipam.NetworkInfo) *ipam.Use { return &n.Use },
		func(n *ipam.NetworkInfo) row {
			wrong := unlessZero(p.of(found[n.Name]))
			if wrong.Text != "" {
				wrong.Sign, wrong.Note = "!", "something is wrong"
			}
			return p.row(p.of(n.Name).to(networkLink(root, n.ID)), texts(n.CIDRs, netip.Prefix.String), usedCell(&n.Use),
				p.trend(n.Space, n.Name), p.use(&n.Use), wrong, n.Space, n.Tags, n.ID)
		}})
}

// fewContainers is the maximum number of leases on the first view.
const fewContainers = 20

// containers shows who has which address.
func (p *Page) containers(r *http.Request, s *shown) error {
	root := rootOf(r)
	t := &table{Name: "leases", Title: "Who has what", Columns: columns("name", "Container", "address", "Address",
		"network", "Network", "owner", "Owner", "mac", "-MAC", "host", "Host", "since", "Since")}
	for l, err := range p.cfg.Service.Leases(r.Context(), ipam.LeaseFilter{}) {
		if err != nil {
			return err
		}
		if l.Kind == ipam.Gateway {
			continue
		}
		if len(t.Rows) == fewContainers {
			t.Title = fmt.Sprintf("Who has what: the first %d; to search all, use Find above", fewContainers)
			break
		}
		p.add(t, cmp.Or(p.containerOf(&l), l.Name), p.of(l.Address).to(addressLink(root, l.Space, l.Address)),
			p.of(l.Network).to(networkLink(root, l.NetworkID)), l.Owner, l.MAC, l.Host, l.Since)
	}
	if len(t.Rows) > 0 {
		s.table(t)
	}
	return nil
}

// use returns the number of addresses in each state.
func (p *Page) use(u *ipam.Use) row {
	return p.row(u.Leased, u.Reserved, u.Quarantined, free(u.Free, u.FreeText()), count(u.Excluded))
}

// levelOf returns the level of a percentage, for its colour.
func levelOf(percent int) string {
	switch {
	case percent >= ipam.FullUse:
		return "full"
	case percent >= ipam.HighUse:
		return "high"
	}
	return "ok"
}

// usedCell returns the use of the pools with a bar.
func usedCell(u *ipam.Use) cell {
	percent, ok := u.Percent()
	if u.Pools == 0 { // it would look full
		return cell{Value: "no pool", Text: "no pool"}
	}
	if !ok {
		return cell{}
	}
	text := fmt.Sprintf("%d%%", percent)
	c := cell{Value: text, Text: text, Bar: &bar{levelOf(percent), percent}}
	switch c.Bar.Level {
	case "full":
		c.Sign, c.Note = "!", "nearly full"
	case "high":
		c.Sign, c.Note = "▲", "filling up"
	}
	return c
}
