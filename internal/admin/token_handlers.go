package admin

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
)

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
	req, err := readTokenRequest(r.Body)
	if err != nil {
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

func readTokenRequest(body io.Reader) (req TokenRequest, err error) {
	d := json.NewDecoder(body)
	d.DisallowUnknownFields()
	if err = d.Decode(&req); err == nil && d.More() {
		err = errors.New("something follows its end")
	}
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return req, &Problem{Status: http.StatusRequestEntityTooLarge, Code: CodeTooLarge,
			Detail: fmt.Sprintf("the request has more than %d bytes", tooLarge.Limit)}
	case err != nil:
		return req, invalid("the body is not the JSON of a token that is wanted, such as %s: %v", `{"name": "ci", "role": "read-only", "lifetime": "720h"}`, err)
	}
	return req, nil
}
