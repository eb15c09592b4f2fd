// Package apidoc makes a page for people of the description that openapi.yaml is for programs. It promises that all of
// the description is on the page: a word of it that the room does not know is an error, and a test looks for each of
// its sentences. The page needs no script and nothing from elsewhere, and its links are relative, so that it reads the
// same on a unix socket, over TLS, and behind whatever serves it to a browser.
//
// The description comes in as YAML, is read with its order and its references (document.go), its schemas among it
// (schema.go; node.go knows YAML's own ways), and goes through a template (page.html) that carries its own style
// (style.css). serve.go answers with it.
package apidoc

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
)

//go:embed page.html
var pageText string

//go:embed style.css
var style string

// Page is the page, as it is sent.
type Page struct {
	HTML []byte
	// Policy is its Content-Security-Policy: nothing but the style that it carries itself.
	Policy string
}

// Make makes the page of a description: OpenAPI 3.0 as YAML, with the extensions x-role (anybody, read or admin) and
// x-role-account (true: tokens of one account, too). It refuses what is no such document, and words of OpenAPI that the
// page would not show.
func Make(openapi []byte) (*Page, error) {
	doc, err := read(openapi)
	if err != nil {
		return nil, fmt.Errorf("the description of the API: %w", err)
	}
	page, err := template.New("page").Parse(pageText)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = page.Execute(&out, struct {
		*document
		Style template.CSS
	}{doc, template.CSS(style)})
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256([]byte(style))
	return &Page{HTML: out.Bytes(), Policy: "default-src 'none'; style-src 'sha256-" +
		base64.StdEncoding.EncodeToString(sum[:]) + "'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"}, nil
}
