package admin

import "net/http"

// deploys lists the projects that are locked for a deploy. Locking one, and ending that, is an edit.
func (s *Server) deploys(w http.ResponseWriter, r *http.Request) error {
	if _, err := query(r); err != nil {
		return err
	}
	all, err := s.cfg.Service.Deploys(r.Context())
	if err != nil {
		return err
	}
	return replyList(w, "deploys", all)
}
