package admin

import (
	"net/http"

	"berth/internal/ipam"
)

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
