package admin

import (
	"context"
	"errors"
	"net/http"
	"time"

	"berth/internal/admin/api"
	"berth/internal/ipam"
)

func (s *Server) tokens(w http.ResponseWriter, r *http.Request) error {
	if _, err := query(r); err != nil {
		return err
	}
	return replyList(w, "tokens", s.cfg.Tokens.List())
}

// createToken answers with the token's text, which nobody can ask for again.
func (s *Server) createToken(w http.ResponseWriter, r *http.Request) error {
	req, err := asked[api.TokenRequest](r)
	if err != nil {
		return err
	}
	since, err := s.accountSince(r.Context(), req.Account)
	if err != nil {
		return err
	}
	made, err := s.cfg.Tokens.Create(req, since, callerIn(r.Context()).actor)
	if err != nil {
		return err
	}
	if err := s.note(r, ipam.TokenCreated, &made.TokenInfo); err != nil { // nobody has the token yet
		_, undone := s.cfg.Tokens.Remove(made.Name)
		return errors.Join(err, undone)
	}
	s.log.WithField("token", made.Name).WithField("role", made.Role).WithField("by",
		made.By).Info("a token was created")
	return reply(w, made)
}

func (s *Server) removeToken(w http.ResponseWriter, r *http.Request) error {
	if _, err := query(r); err != nil {
		return err
	}
	removed, err := s.cfg.Tokens.Remove(r.PathValue("token"))
	if err != nil {
		return err
	}
	log := s.log.WithField("token", removed.Name).WithField("by", callerIn(r.Context()).actor)
	log.Info("a token was removed")
	if err := s.note(r, ipam.TokenRemoved, &removed); err != nil { // it stays removed
		log.WithError(err).Error("the event of a token's removal could not be written")
	}
	return reply(w, removed)
}

// note puts a change of the tokens into the audit trail, also where the token's own request is cut off by it.
func (s *Server) note(r *http.Request, verb ipam.Verb, t *api.TokenInfo) error {
	detail := string(t.Role)
	if t.Account != "" {
		detail += " " + t.Account
	}
	if !t.Expires.IsZero() {
		detail += " until " + t.Expires.Format(time.RFC3339)
	}
	return s.cfg.Service.Note(context.WithoutCancel(r.Context()), ipam.Event{Verb: verb, Name: t.Name, Detail: detail})
}
