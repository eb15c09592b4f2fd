package admin

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"time"

	"berth/internal/ipam"
)

// maxView is the largest body of POST /v1/check and PUT /v1/witness, in which is all that an engine runs.
const maxView = 32 << 20

const (
	checkPath   = "/v1/check"
	witnessPath = "/v1/witness"
)

// check compares the records with what runs, and changes nothing.
func (s *Server) check(w http.ResponseWriter, r *http.Request) error {
	if _, err := query(r); err != nil {
		return err
	}
	return s.compare(w, r, ipam.CheckRequest{})
}

// checkWith is check as the body wants it, which may be with repairs.
func (s *Server) checkWith(w http.ResponseWriter, r *http.Request) error {
	if _, err := query(r); err != nil {
		return err
	}
	if s.cfg.Check == nil {
		return noWitness()
	}
	var req ipam.CheckRequest
	done, err := s.readSeen(w, r, &req)
	if err != nil {
		return err
	}
	defer done()
	return s.compare(w, r, req)
}

func (s *Server) compare(w http.ResponseWriter, r *http.Request, req ipam.CheckRequest) error {
	if s.cfg.Check == nil {
		return noWitness()
	}
	control, err := untimed(w) // it asks an engine, which may take its time
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(r.Context())
	stopped := s.endWith(ctx, cancel)
	defer func() { cancel(); <-stopped }()
	report, err := s.cfg.Check(ctx, req)
	if err != nil {
		return err
	}
	report.Findings = append([]ipam.Finding{}, report.Findings...) // in JSON a list, not null
	if report.Counts == nil {
		report.Counts = map[ipam.FindingKind]int{}
	}
	if err := control.SetWriteDeadline(time.Now().Add(answerTimeout)); err != nil {
		return err
	}
	return reply(w, report)
}

// showEngine takes the word of one who reads an engine for a daemon that may not.
func (s *Server) showEngine(w http.ResponseWriter, r *http.Request) error {
	if _, err := query(r); err != nil {
		return err
	}
	if s.cfg.Show == nil {
		return noWitness()
	}
	var view ipam.EngineView
	done, err := s.readSeen(w, r, &view)
	if err != nil {
		return err
	}
	defer done()
	if err := s.cfg.Show(r.Context(), view); err != nil {
		return err
	}
	return reply(w, map[string]string{"status": "ok"})
}

// readSeen reads a body with what an engine runs. A large one is alone in memory; done lets the next one in.
func (s *Server) readSeen(w http.ResponseWriter, r *http.Request, v any) (done func(), err error) {
	control, err := untimed(w)
	if err != nil {
		return nil, err
	}
	r.Body = &patientBody{r.Body, control}
	done = func() {}
	if r.ContentLength < 0 || r.ContentLength > maxBody {
		select {
		case s.views <- struct{}{}:
			done = func() { <-s.views }
		default:
			return nil, &Problem{Status: http.StatusConflict, Code: CodeBusy, Detail: "what another engine runs is being looked at at this moment; try again when that is done"}
		}
	}
	if err = readFew(r, v); err != nil {
		done()
		return nil, err
	}
	return done, nil
}

// readFew reads a body into v unless there are too many things in it.
func readFew(r *http.Request, v any) error {
	body, err := readBody(r)
	if err != nil {
		return err
	}
	if hasMany(body) {
		return &Problem{Status: http.StatusRequestEntityTooLarge, Code: CodeTooLarge,
			Detail: fmt.Sprintf("the body has more than %d things; no engine runs as many containers", maxThings)}
	}
	return decode(body, v)
}

// witnessed adds to leases which container holds each, as the witness says. Nobody holds what is only remembered.
func (s *Server) witnessed(leases iter.Seq2[ipam.LeaseInfo, error]) iter.Seq2[ipam.LeaseInfo, error] {
	if s.cfg.SeenBy == nil {
		return leases
	}
	return func(yield func(ipam.LeaseInfo, error) bool) {
		for l, err := range leases {
			if err == nil && l.Released.IsZero() {
				l.SeenBy = s.cfg.SeenBy(l.Space, l.Address, l.ID)
			}
			if !yield(l, err) {
				return
			}
		}
	}
}

func noWitness() *Problem {
	return &Problem{Status: http.StatusConflict, Code: CodeNoWitness,
		Detail: "this daemon has no witness, who tells what runs: start it with --docker-host and the address of a Docker Engine, such as unix:///run/docker.sock, and ask again"}
}
