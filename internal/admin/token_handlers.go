package admin

import "net/http"

// TokenList is the answer of GET /v1/tokens.
type TokenList struct {
	Tokens []TokenInfo `json:"tokens"`
}

func (s *Server) tokens(w http.ResponseWriter, r *http.Request) error {
	if _, err := query(r); err != nil {
		return err
	}
	return replyList(w, "tokens", s.cfg.Tokens.List())
}

// createToken answers with the token's text, which nobody can ask for again.
func (s *Server) createToken(w http.ResponseWriter, r *http.Request) error {
	if _, err := query(r); err != nil {
		return err
	}
	body, err := readBody(r)
	if err != nil {
		return err
	}
	var req TokenRequest
	if err := decode(body, &req); err != nil {
		return err
	}
	made, err := s.cfg.Tokens.Create(req, callerIn(r.Context()).actor)
	if err != nil {
		return err
	}
	s.log.WithField("token", made.Name).WithField("role", made.Role).WithField("by", made.By).Info("a token was created")
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
	s.log.WithField("token", removed.Name).WithField("by", callerIn(r.Context()).actor).Info("a token was removed")
	return reply(w, removed)
}
