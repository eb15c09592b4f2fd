package admin

import (
	"context"
	"encoding/json"
	"net/http"
	"net/netip"
	"time"

	"berth/internal/admin/api"
	"berth/internal/ipam"
)

// elasticRoutes lists the operations of elastic addresses. Edits make all changes.
func (s *Server) elasticRoutes() []route {
	return []route{
		listed(s, api.GetAccounts, Service.Accounts),
		bind(api.GetElastics, s.elastics),
		listed(s, api.GetRanges, Service.ElasticRanges),
		bind(api.GetElasticCheck, s.checkElastic),
		bind(api.GetUsage, s.elasticUsage),
		shown(api.GetElastic, s.elastic),
		raw(api.GetEdge, s.edgeNews),
		bind(api.PostEdge, s.edgeReport),
		bind(api.GetEdgeStatus, s.edgeStatus),
		raw(api.GetLAN, s.lanAsks),
		bind(api.PostLAN, s.lanAnswer),
	}
}

func (s *Server) elastics(ctx context.Context, req api.ElasticsRequest) (list api.ElasticList, err error) {
	after, err := addressAt(req.Cursor)
	if err != nil {
		return list, err
	}
	all, err := s.cfg.Service.Elastics(ctx, req.Account, after, req.Most+1)
	if err != nil {
		return list, err
	}
	list.Addresses, list.Next, err = pageOf(req.Page, all, func(e *ipam.ElasticInfo) netip.Addr { return e.Address })
	return list, err
}

func (s *Server) elastic(ctx context.Context, req api.ElasticRequest) (ipam.ElasticInfo, uint64, error) {
	info, err := s.cfg.Service.Elastic(ctx, req.Address.Unmap())
	return info, info.Revision, err
}

// edgeNews streams to this host's edge what it must map: first a line with everything, then one line for each change.
// It ends with the edge or the server.
func (s *Server) edgeNews(w http.ResponseWriter, r *http.Request, req api.EdgeNewsRequest) error {
	ctx, end := s.whileServing(r.Context())
	defer end()
	control := http.NewResponseController(w)
	begun := false
	for news, err := range s.cfg.Service.EdgeNews(ctx, req.Looks) {
		if err != nil && !begun {
			return err
		}
		if err != nil {
			return nil // the edge connects again and gets the change then
		}
		if !begun {
			begun = true
			if !req.Looks {
				s.edges.add(1, s.now())
				defer func() { s.edges.add(-1, s.now()) }()
			}
			begin(w, api.LinesType)
		}
		if err := sendLine(w, control, &news); err != nil {
			return nil // the edge is gone or does not read
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

func (s *Server) edgeReport(ctx context.Context, req api.Body[ipam.EdgeReport]) (api.Done, error) {
	return api.OK(), s.cfg.Service.ReportEdge(ctx, req.Body)
}

func (s *Server) edgeStatus(context.Context, api.None) (ipam.EdgeStatus, error) {
	return ipam.EdgeStatus{Host: s.cfg.Host, Connected: s.edges.count(), Enabled: !s.cfg.NoElastic,
		Hosts: s.cfg.Service.EdgeHosts()}, nil
}

// lanAsks streams to this host's edge what it must do on a LAN, a line for each question. It ends with the edge or the
// server.
func (s *Server) lanAsks(w http.ResponseWriter, r *http.Request, _ api.None) error {
	ctx, end := s.whileServing(r.Context())
	defer end()
	control := http.NewResponseController(w)
	begin(w, api.LinesType)
	if err := control.Flush(); err != nil { // the edge learns that it is connected before the first question
		return nil
	}
	for ask := range s.cfg.LAN.Asks(ctx) {
		if err := sendLine(w, control, &ask); err != nil {
			return nil // the edge is gone or does not read
		}
	}
	return nil
}

// lanAnswer passes on the answer to a question. If the asker is gone by now, that is no error of the edge.
func (s *Server) lanAnswer(_ context.Context, req api.Body[ipam.LANAnswer]) (api.Done, error) {
	s.cfg.LAN.Answer(req.Body)
	return api.OK(), nil
}

// elasticUsage returns how long accounts had addresses. A long period can have very many events.
func (s *Server) elasticUsage(ctx context.Context, f ipam.UsageFilter) (ipam.UsageReport, error) {
	return s.cfg.Service.Usage(ctx, f)
}
