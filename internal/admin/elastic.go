package admin

import (
	"encoding/json"
	"net/http"
	"net/netip"
	"time"

	"berth/internal/admin/api"
	"berth/internal/ipam"
)

// elasticRoutes lists the operations of elastic addresses. All that changes them is an edit.
func (s *Server) elasticRoutes() []route {
	return []route{
		{http.MethodGet, api.AccountsPath, s.accounts, true},
		{http.MethodGet, api.ElasticPath, s.elastics, true},
		{http.MethodGet, api.RangesPath, s.elasticRanges, true},
		{http.MethodGet, api.ElasticCheck, s.checkElastic, true},
		{http.MethodGet, api.UsagePath, s.elasticUsage, true},
		{http.MethodGet, api.ElasticPath + "/{address}", s.elastic, true},
		{http.MethodGet, api.EdgePath, s.edgeNews, false},
		{http.MethodPost, api.EdgePath, s.edgeReport, false},
		{http.MethodGet, api.EdgeState, s.edgeStatus, true},
		{http.MethodGet, api.EdgeLAN, s.lanAsks, false},
		{http.MethodPost, api.EdgeLAN, s.lanAnswer, false},
	}
}

func (s *Server) accounts(w http.ResponseWriter, r *http.Request) error {
	if _, err := query(r); err != nil {
		return err
	}
	all, err := s.cfg.Service.Accounts(r.Context())
	if err != nil {
		return err
	}
	return replyList(w, "accounts", all)
}

func (s *Server) elasticRanges(w http.ResponseWriter, r *http.Request) error {
	if _, err := query(r); err != nil {
		return err
	}
	all, err := s.cfg.Service.ElasticRanges(r.Context())
	if err != nil {
		return err
	}
	return replyList(w, "ranges", all)
}

func (s *Server) elastics(w http.ResponseWriter, r *http.Request) error {
	q, err := query(r, "account", "limit", "after")
	if err != nil {
		return err
	}
	p, err := pageOf(r, q, 1)
	if err != nil {
		return err
	}
	after, err := p.addrOf()
	if err != nil {
		return err
	}
	all, err := s.cfg.Service.Elastics(r.Context(), q.Get("account"), after, p.limit+1)
	if err != nil {
		return err
	}
	var list api.ElasticList
	addr := func(e *ipam.ElasticInfo) netip.Addr { return e.Address }
	list.Addresses, list.Next, err = take(p, behind(all, after, addr),
		func(e *ipam.ElasticInfo) string { return cursor(e.Address.String()) })
	if err != nil {
		return err
	}
	link(w, r, list.Next)
	return reply(w, list)
}

func (s *Server) elastic(w http.ResponseWriter, r *http.Request) error {
	if _, err := query(r); err != nil {
		return err
	}
	addr, err := netip.ParseAddr(r.PathValue("address"))
	if err != nil {
		return invalid("%q is no address", r.PathValue("address"))
	}
	info, err := s.cfg.Service.Elastic(r.Context(), addr.Unmap())
	if err != nil {
		return err
	}
	return replyShown(w, r, info.Revision, info)
}

// edgeNews tells the edge of this host what it is to map, a line for the whole and then one for each change, until it
// goes or the server ends.
func (s *Server) edgeNews(w http.ResponseWriter, r *http.Request) error {
	q, err := query(r, "looks")
	if err != nil {
		return err
	}
	looks, err := boolOf(q, "looks")
	if err != nil {
		return err
	}
	ctx, end := s.whileServing(r.Context())
	defer end()
	control, err := untimed(w)
	if err != nil {
		return err
	}
	begun := false
	for news, err := range s.cfg.Service.EdgeNews(ctx, looks) {
		if err != nil && !begun {
			return err
		}
		if err != nil {
			return nil // the edge comes again, and is told then
		}
		if !begun {
			begun = true
			if !looks {
				s.edges.Add(1)
				defer s.edges.Add(-1)
			}
			begin(w, "application/x-ndjson")
		}
		if err := sendLine(w, control, &news); err != nil {
			return nil // the edge is gone, or does not read
		}
	}
	return nil
}

// sendLine sends one line of a stream.
func sendLine(w http.ResponseWriter, control *http.ResponseController, line any) error {
	if err := control.SetWriteDeadline(time.Now().Add(stallTimeout)); err != nil {
		return err
	}
	if err := json.NewEncoder(w).Encode(line); err != nil {
		return err
	}
	return control.Flush()
}

func (s *Server) edgeReport(w http.ResponseWriter, r *http.Request) error {
	report, err := asked[ipam.EdgeReport](r)
	if err != nil {
		return err
	}
	if err := s.cfg.Service.ReportEdge(r.Context(), report); err != nil {
		return err
	}
	return reply(w, map[string]string{"status": "ok"})
}

func (s *Server) edgeStatus(w http.ResponseWriter, r *http.Request) error {
	if _, err := query(r); err != nil {
		return err
	}
	return reply(w, ipam.EdgeStatus{Host: s.cfg.Host, Connected: int(s.edges.Load()), Enabled: !s.cfg.NoElastic,
		Hosts: s.cfg.Service.EdgeHosts()})
}

// lanAsks tells the edge of this host what it is to do on a LAN, a line for each question, until it goes or the server
// ends.
func (s *Server) lanAsks(w http.ResponseWriter, r *http.Request) error {
	if _, err := query(r); err != nil {
		return err
	}
	ctx, end := s.whileServing(r.Context())
	defer end()
	control, err := untimed(w)
	if err != nil {
		return err
	}
	begin(w, "application/x-ndjson")
	if err := control.Flush(); err != nil { // whoever asks knows that it is heard before there is anything to do
		return nil
	}
	for ask := range s.cfg.LAN.Asks(ctx) {
		if err := sendLine(w, control, &ask); err != nil {
			return nil // the edge is gone, or does not read
		}
	}
	return nil
}

// lanAnswer takes what came of a question. Whoever asked may have gone meanwhile, which is no fault of the edge's.
func (s *Server) lanAnswer(w http.ResponseWriter, r *http.Request) error {
	answer, err := asked[ipam.LANAnswer](r)
	if err != nil {
		return err
	}
	s.cfg.LAN.Answer(answer)
	return reply(w, map[string]string{"status": "ok"})
}

// elasticUsage answers how long accounts had addresses. The events of a long time may be very many.
func (s *Server) elasticUsage(w http.ResponseWriter, r *http.Request) error {
	q, err := query(r, "since", "until")
	if err != nil {
		return err
	}
	var f ipam.UsageFilter
	if f.Since, err = timeOf(q, "since"); err != nil {
		return err
	}
	if f.Until, err = timeOf(q, "until"); err != nil {
		return err
	}
	if _, err := untimed(w); err != nil {
		return err
	}
	report, err := s.cfg.Service.Usage(r.Context(), f)
	if err != nil {
		return err
	}
	return reply(w, report)
}
