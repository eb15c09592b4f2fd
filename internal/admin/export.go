package admin

import (
	"net/http"
)

// export sends the plan network by network: it need not be in memory as a whole here, nor there.
func (s *Server) export(w http.ResponseWriter, r *http.Request) error {
	q, err := query(r, "network")
	if err != nil {
		return err
	}
	control, err := untimed(w)
	if err != nil {
		return err
	}
	return replyEach(&paced{w, patient{w, control}}, "networks", s.cfg.Service.Export(r.Context(), q.Get("network")))
}

// paced is an answer whose client has time for each piece of it.
type paced struct {
	http.ResponseWriter
	patient patient
}

func (p *paced) Write(b []byte) (int, error) { return p.patient.Write(b) }
