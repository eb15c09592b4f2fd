package page

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"html/template"
	"net/http"

	"berth/internal/admin/api"
)

// Refuse answers a browser whose user may see the page. It shows the problem with the menu.
func (p *Page) Refuse(w http.ResponseWriter, r *http.Request, problem *api.Problem) error {
	s := &shown{Title: problem.Title, Status: problem.Status, Here: "none"}
	s.Blocks = append(s.Blocks, block{Note: problem.Detail, Alert: true})
	return p.answer(w, r, asHTML, s)
}

// TurnAway answers a browser whose user may not see the page, or that uses another name. It shows only the problem. The
// style is inline, because such a browser cannot load style.css either.
func (p *Page) TurnAway(w http.ResponseWriter, r *http.Request, problem *api.Problem) error {
	style := p.fixed["style.css"]
	var body bytes.Buffer
	err := p.templates.ExecuteTemplate(&body, "stranger.html", map[string]any{"Title": problem.Title,
		"Text": problem.Detail, "Style": template.CSS(style)}) //nolint:gosec // G203: it is part of the program
	if err != nil {
		return err
	}
	sum := sha256.Sum256(style)
	h := w.Header()
	protect(h)
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'sha256-"+
		base64.StdEncoding.EncodeToString(sum[:])+"'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'")
	h.Set("Content-Type", "text/html; charset=utf-8")
	return p.send(w, r, problem.Status, &body)
}
