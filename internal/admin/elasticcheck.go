package admin

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"berth/internal/admin/api"
	"berth/internal/ipam"
)

// checkElastic returns the findings about elastic addresses: those of the records, of the edge, and of a comparison
// with the engine.
func (s *Server) checkElastic(ctx context.Context, _ api.None) (report ipam.CheckReport, err error) {
	ctx, end := s.whileServing(ctx)
	defer end()
	report = ipam.CheckReport{Host: s.cfg.Host, Taken: time.Now().UTC(), Engine: ipam.NoEngine}
	if s.cfg.Check != nil {
		if report, err = s.cfg.Check(ctx, ipam.CheckRequest{}); err != nil {
			return report, err
		}
	}
	kinds := ipam.ElasticKinds()
	report.Findings = slices.DeleteFunc(slices.Clone(report.Findings), func(f ipam.Finding) bool {
		return !slices.Contains(kinds, f.Kind)
	})
	report.Counts, report.Repaired = map[ipam.FindingKind]int{}, 0
	for _, kind := range kinds {
		report.Counts[kind] = 0
	}
	for i := range report.Findings {
		report.Counts[report.Findings[i].Kind]++
	}
	s.addElastic(ctx, &report)
	return report, nil
}

// lastFindings returns the findings of the last comparison, and the current ones about elastic addresses. It does not
// query the engine.
func (s *Server) lastFindings(ctx context.Context) (ipam.CheckReport, error) {
	report := ipam.CheckReport{Host: s.cfg.Host, Engine: ipam.NoEngine}
	if s.cfg.Report != nil {
		report = s.cfg.Report()
	}
	s.addElastic(ctx, &report)
	s.addHost(ctx, &report)
	report.Waiting = s.cfg.Service.Waiting()
	report.Absent = s.absentHosts(ctx)
	return report, ctx.Err()
}

// addElastic adds the findings of the records and the edge about elastic addresses to a report.
func (s *Server) addElastic(ctx context.Context, report *ipam.CheckReport) {
	report.Findings = append([]ipam.Finding{}, report.Findings...) // a list in JSON, not null
	counts := map[ipam.FindingKind]int{}
	maps.Copy(counts, report.Counts)
	report.Counts = counts
	if s.cfg.NoElastic {
		return
	}
	checked, err := s.cfg.Service.CheckElastic(ctx)
	if err != nil {
		if report.Trouble == "" {
			report.Trouble = "the elastic addresses were not checked: " + err.Error()
		}
		return
	}
	found := slices.Concat(s.edgeFindings(&checked), s.deviceFindings(&checked))
	for i := range found {
		counts[found[i].Kind]++
	}
	report.Findings = append(report.Findings, found...)
}

// addHost adds findings about this host that neither the engine nor the edge reports.
func (s *Server) addHost(ctx context.Context, report *ipam.CheckReport) {
	if s.cfg.Found == nil {
		return
	}
	found := s.cfg.Found(ctx)
	for i := range found {
		report.Counts[found[i].Kind]++
	}
	report.Findings = append(report.Findings, found...)
}

// edgeFindings returns the findings about addresses that are not mapped. If no edge is connected, that is the one cause
// and becomes one finding.
func (s *Server) edgeFindings(c *ipam.ElasticCheck) []ipam.Finding {
	if c.Wanted == 0 || s.edges.count() > 0 {
		return c.Findings
	}
	wanted, unmapped := "1 elastic address is", "it is not"
	if c.Wanted != 1 {
		wanted, unmapped = fmt.Sprintf("%d elastic addresses are", c.Wanted), fmt.Sprintf("%d are not", c.Unmapped)
	} else if c.Unmapped == 0 {
		unmapped = "it is already"
	}
	text := fmt.Sprintf("no edge is connected on host %s; %s needed there, and %s mapped; mappings stay, but nothing "+
		"repairs them: start berth edge (systemctl enable --now berth-edge.service)", c.Host, wanted, unmapped)
	found := []ipam.Finding{{Kind: ipam.EdgeAway, Host: c.Host, Seen: s.edges.gone(), Detail: text}}
	for _, f := range c.Findings {
		if f.Kind != ipam.UnmappedElastic {
			found = append(found, f)
		}
	}
	return found
}

// deviceFindings returns findings for ranges that are announced on a network device that this host lacks.
func (s *Server) deviceFindings(c *ipam.ElasticCheck) (found []ipam.Finding) {
	if s.cfg.Device == nil {
		return nil
	}
	defer func() { s.devices.note(found, s.now().UTC()) }()
	for i := range c.Ranges {
		r := &c.Ranges[i]
		if r.Announce == "" || s.cfg.Device(r.Announce) {
			continue
		}
		found = append(found, ipam.Finding{Kind: ipam.MissingDevice, Host: c.Host, Address: r.Range.From(),
			Detail: fmt.Sprintf("the elastic range %s is announced on the device %s, but host "+
				"%s has no such device, so it does not answer for the range; see `ip link`, then remove the range and "+
				"add it again with another --announce", r.Range, r.Announce, c.Host)})
	}
	return found
}
