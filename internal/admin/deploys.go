package admin

import (
	"net/http"
	"strconv"
)

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

// orphans lists the volumes of this host's projects that no service uses any more. What becomes of one is an edit.
func (s *Server) orphans(w http.ResponseWriter, r *http.Request) error {
	if _, err := query(r); err != nil {
		return err
	}
	all, err := s.cfg.Service.Orphans(r.Context())
	if err != nil {
		return err
	}
	return replyList(w, "orphans", all)
}

// mostRuns is how many deploys of a project are listed at most, and where nobody says how many.
const mostRuns = 1000

// deployRuns lists the deploys of a project, the latest first.
func (s *Server) deployRuns(w http.ResponseWriter, r *http.Request) error {
	q, err := query(r, "last")
	if err != nil {
		return err
	}
	last := mostRuns
	if text := q.Get("last"); text != "" {
		if last, err = strconv.Atoi(text); err != nil || last < 1 || last > mostRuns {
			return invalid("last is %q; it is a number from 1 to %d", text, mostRuns)
		}
	}
	all, err := s.cfg.Service.DeployRuns(r.Context(), r.PathValue("project"), last)
	if err != nil {
		return err
	}
	return replyList(w, "deploys", all)
}

// workers lists of what the workers of this host's projects were made when they ran last.
func (s *Server) workers(w http.ResponseWriter, r *http.Request) error {
	if _, err := query(r); err != nil {
		return err
	}
	all, err := s.cfg.Service.Workers(r.Context())
	if err != nil {
		return err
	}
	return replyList(w, "workers", all)
}
