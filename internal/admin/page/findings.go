package page

import "net/http"

// findings shows the differences between the records and the engine, as they were found last.
func (p *Page) findings(r *http.Request) (*shown, error) {
	q, err := query(r, "from")
	if err != nil {
		return nil, err
	}
	s := &shown{Title: "Findings", File: "findings", Here: "findings"}
	if p.cfg.Findings == nil {
		s.note("Berth does not compare its records with what runs here: the daemon was started without an engine.")
		return s, nil
	}
	report, err := p.cfg.Findings(r.Context())
	if err != nil {
		return nil, err
	}
	state := s.table(&table{Name: "check", One: true, Columns: columns("host", "Host", "engine", "Engine", "taken",
		"Checked", "findings", "Findings")})
	p.add(state, report.Host, report.Engine, report.Taken, len(report.Findings))
	if report.Trouble != "" {
		s.alert(report.Trouble)
	}
	part, next, err := partFrom(r, q.Get("from"), report.Findings)
	if err != nil {
		return nil, err
	}
	t := s.table(&table{Name: "findings", Title: "What is wrong", Next: next, None: "No problems were found.",
		Columns: columns("kind", "Kind", "address", "Address", "network", "Network", "host", "-Host", "owner", "-Owner",
			"detail", "What it is, and what to do", "seen", "Seen since", "repairable", "-Can be repaired",
			"mac", "-MAC",
			"subnet", "-Subnet", "space", "-Space")})
	if report.Taken.IsZero() {
		t.None = "Nothing was checked yet."
	}
	root := rootOf(r)
	for i := range part {
		f := &part[i]
		p.add(t, string(f.Kind), p.of(f.Address).to(addressLink(root, f.Space, f.Address)), f.Network, f.Host,
			f.Owner, f.Detail, f.Seen, f.Repairable, f.MAC, f.Subnet, f.Space)
	}
	return s, nil
}
