// Package apidoc generates the OpenAPI description of the admin API and a page that shows it. The description covers
// every operation, and the page shows the whole description. The page needs no script, loads nothing from elsewhere,
// and has only relative links.
//
// The description starts as a document with only the schemas. The paths are added from the table of operations and
// their types (paths.go). A template (page.html, with the functions of document.go and the style of style.css) makes
// the page. serve.go serves both.
package apidoc

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"

	"go.yaml.in/yaml/v4"
)

//go:embed page.html
var pageText string

//go:embed style.css
var style string

// Page is the page in the form in which it is sent.
type Page struct {
	HTML []byte
	// Policy is its Content-Security-Policy. It allows only the page's inline style.
	Policy string
}

// Make makes the page of a description. The description is OpenAPI 3.0 as YAML, with the extensions x-role (anybody,
// read or admin) and x-role-account (true: also tokens of one account).
func Make(openapi []byte) (*Page, error) {
	var doc object
	if err := yaml.Unmarshal(openapi, &doc); err != nil {
		return nil, fmt.Errorf("the description of the API: %w", err)
	}
	page, err := template.New("page").Funcs(functions(doc)).Parse(pageText)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = page.Execute(&out, struct {
		Doc    object
		Groups []group
		Style  template.CSS
	}{doc, groups(doc), template.CSS(style)})
	if err != nil {
		return nil, fmt.Errorf("the page of the API: %w", err)
	}
	sum := sha256.Sum256([]byte(style))
	return &Page{HTML: out.Bytes(), Policy: "default-src 'none'; style-src 'sha256-" +
		base64.StdEncoding.EncodeToString(sum[:]) + "'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"}, nil
}
