package admin

import (
	"net/http"

	"berth/internal/ipam"
)

// mend does this host's part, which takes as long as it takes.
func (s *Server) mend(w http.ResponseWriter, r *http.Request) error {
	opt, err := asked[ipam.MendOptions](r)
	if err != nil {
		return err
	}
	if s.cfg.Mend == nil {
		return ipam.ErrNoShared
	}
	if _, err := untimed(w); err != nil {
		return err
	}
	report, err := s.cfg.Mend(r.Context(), opt)
	if err != nil {
		return err
	}
	return reply(w, report)
}
