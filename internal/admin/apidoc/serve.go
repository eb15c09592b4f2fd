package apidoc

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"sync"
	"time"
)

// Docs serves a description and its page. Both are made at the first request.
type Docs struct {
	openapi func() ([]byte, error)
	page    func() (*Page, error)
}

// New returns the Docs of a description.
func New(openapi func() ([]byte, error)) *Docs {
	openapi = sync.OnceValues(openapi)
	return &Docs{openapi, sync.OnceValues(func() (*Page, error) {
		text, err := openapi()
		if err != nil {
			return nil, err
		}
		return Make(text)
	})}
}

// ServeDescription serves the description as application/yaml (RFC 9512).
func (d *Docs) ServeDescription(w http.ResponseWriter, r *http.Request) error {
	text, err := d.openapi()
	if err != nil {
		return err
	}
	send(w, r, "application/yaml", text)
	return nil
}

// ServePage serves the page. After an error nothing was sent.
func (d *Docs) ServePage(w http.ResponseWriter, r *http.Request) error {
	page, err := d.page()
	if err != nil {
		return err
	}
	w.Header().Set("Content-Security-Policy", page.Policy)
	send(w, r, "text/html; charset=utf-8", page.HTML)
	return nil
}

// send answers with constant text and an ETag, so that a client that has it does not get it again.
func send(w http.ResponseWriter, r *http.Request, contentType string, text []byte) {
	sum := sha256.Sum256(text)
	h := w.Header()
	h.Set("Content-Type", contentType)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "private, no-cache")
	h.Set("ETag", `"`+hex.EncodeToString(sum[:8])+`"`)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(text))
}
