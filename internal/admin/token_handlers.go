package admin

import (
	"context"
	"errors"
	"time"

	"berth/internal/admin/api"
	"berth/internal/ipam"
)

func (s *Server) tokens(context.Context, api.None) (api.TokenList, error) {
	return api.TokenList{Tokens: s.cfg.Tokens.List()}, nil
}

// createToken answers with the token's text, which cannot be read again.
func (s *Server) createToken(ctx context.Context, req api.Body[api.TokenRequest]) (made api.NewToken, err error) {
	since, err := s.accountSince(ctx, req.Body.Account)
	if err != nil {
		return made, err
	}
	if made, err = s.cfg.Tokens.create(req.Body, since, callerIn(ctx).actor); err != nil {
		return made, err
	}
	if err := s.note(ctx, ipam.TokenCreated, &made.TokenInfo); err != nil { // nobody has the token yet
		_, undone := s.cfg.Tokens.Remove(made.Name)
		return made, errors.Join(err, undone)
	}
	s.log.WithField("token", made.Name).WithField("role", made.Role).WithField("by",
		made.By).Info("a token was created")
	return made, nil
}

func (s *Server) removeToken(ctx context.Context, req api.NamedToken) (api.TokenInfo, error) {
	removed, err := s.cfg.Tokens.Remove(req.Token)
	if err != nil {
		return removed, err
	}
	log := s.log.WithField("token", removed.Name).WithField("by", callerIn(ctx).actor)
	log.Info("a token was removed")
	if err := s.note(ctx, ipam.TokenRemoved, &removed); err != nil { // it stays removed
		log.WithError(err).Error("the event of a token's removal could not be written")
	}
	return removed, nil
}

// note writes a change of the tokens to the audit trail. It does so even if the change ends the request's own token.
func (s *Server) note(ctx context.Context, verb ipam.Verb, t *api.TokenInfo) error {
	detail := string(t.Role)
	if t.Account != "" {
		detail += " " + t.Account
	}
	if !t.Expires.IsZero() {
		detail += " until " + t.Expires.Format(time.RFC3339)
	}
	return s.cfg.Service.Note(context.WithoutCancel(ctx), ipam.Event{Verb: verb, Name: t.Name, Detail: detail})
}
