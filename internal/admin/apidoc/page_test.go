package apidoc_test

import (
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"berth/internal/admin"
	"berth/internal/admin/apidoc"

	"go.yaml.in/yaml/v4"
	"golang.org/x/net/html"
)

func description(t *testing.T) []byte {
	t.Helper()
	text, err := admin.OpenAPI()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func made(t *testing.T) (*apidoc.Page, *html.Node) {
	t.Helper()
	page, err := apidoc.Make(description(t))
	if err != nil {
		t.Fatal(err)
	}
	root, err := html.Parse(strings.NewReader(string(page.HTML)))
	if err != nil {
		t.Fatal(err)
	}
	return page, root
}

// textOf is the text of a node that a person reads, with single spaces.
func textOf(n *html.Node) string {
	var b strings.Builder
	for one := range n.Descendants() {
		if one.Type == html.TextNode && one.Parent.Data != "style" {
			b.WriteString(one.Data + " ")
		}
	}
	return words(b.String())
}

func words(s string) string { return strings.Join(strings.Fields(s), " ") }

// The page has everything in the description: each sentence, name, bound, value and path, whichever reference
// leads to it.
func TestPageSaysAll(t *testing.T) {
	_, root := made(t)
	text := textOf(root)
	var doc yaml.Node
	if err := yaml.Unmarshal(description(t), &doc); err != nil {
		t.Fatal(err)
	}
	said := 0
	var look func(n *yaml.Node, at string)
	look = func(n *yaml.Node, at string) {
		switch n.Kind {
		case yaml.DocumentNode, yaml.SequenceNode:
			for _, one := range n.Content {
				look(one, at)
			}
		case yaml.MappingNode:
			for i := 0; i < len(n.Content); i += 2 {
				look(n.Content[i+1], n.Content[i].Value)
				if word := n.Content[i].Value; word != "<<" && (at == "properties" || at == "schemas" || at == "paths") {
					if said++; !strings.Contains(text, word) {
						t.Errorf("line %d: the page has no %s", n.Content[i].Line, word)
					}
				}
			}
		case yaml.ScalarNode:
			switch at {
			case "openapi", "required", "nullable", "additionalProperties", "x-role", "x-role-account", "in":
				return // the page says this in its own words
			}
			value := n.Value
			if at == "$ref" {
				value = value[strings.LastIndex(value, "/")+1:]
				if !strings.Contains(n.Value, "/schemas/") {
					return // its target is checked where it is defined
				}
			}
			if said++; !strings.Contains(text, words(value)) {
				t.Errorf("line %d: the page does not say %s: %q", n.Line, at, value)
			}
		}
	}
	look(&doc, "")
	if said < 3000 {
		t.Errorf("%d things were looked for; there are more", said)
	}
}

// Each link leads to exactly one place of the page, or to the description beside it. The page loads nothing from
// elsewhere.
func TestPageLinks(t *testing.T) {
	_, root := made(t)
	places := map[string]int{}
	var links []string
	for n := range root.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		switch n.Data {
		case "script", "link", "img", "iframe", "form", "base":
			t.Errorf("the page has a <%s>", n.Data)
		}
		for _, a := range n.Attr {
			switch a.Key {
			case "id":
				places[a.Val]++
			case "href":
				links = append(links, a.Val)
			case "style", "src":
				t.Errorf("the page has %s=%q", a.Key, a.Val)
			}
			if strings.HasPrefix(a.Key, "on") {
				t.Errorf("the page has %s=%q", a.Key, a.Val)
			}
		}
	}
	for id, n := range places {
		if n != 1 {
			t.Errorf("%d places are called %s", n, id)
		}
	}
	if len(links) < 500 {
		t.Errorf("%d links", len(links))
	}
	for _, to := range links {
		id, here := strings.CutPrefix(to, "#")
		if to != "openapi.yaml" && (!here || places[id] == 0) {
			t.Errorf("a link leads to %q", to)
		}
	}
	for _, id := range []string{"docs", "edits", "schema-Problem", "schema-Event"} {
		if places[id] == 0 {
			t.Errorf("nothing is called %s", id)
		}
	}
}

// The policy allows the page's own style and nothing else.
func TestPagePolicy(t *testing.T) {
	page, _ := made(t)
	style := regexp.MustCompile(`(?s)<style>(.*?)</style>`).FindAllSubmatch(page.HTML, -1)
	if len(style) != 1 {
		t.Fatalf("%d styles", len(style))
	}
	sum := sha256.Sum256(style[0][1])
	want := "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; "
	if !strings.HasPrefix(page.Policy, want) {
		t.Errorf("the policy is %s, want %s", page.Policy, want)
	}
	for _, word := range []string{"url(", "@import", "http"} {
		if strings.Contains(string(style[0][1]), word) {
			t.Errorf("the style says %s", word)
		}
	}
}

// A description that the page cannot show is refused. No text of a description becomes markup of the page.
func TestMake(t *testing.T) {
	const head = "openapi: 3.0.3\ninfo: {title: <script>T</script>, version: '1', license: {name: n, url: u}}\n" +
		"components: {schemas: {}}\n"
	for _, c := range []struct{ doc, want string }{
		{head + "paths: {}", ""},
		{head + "paths: {/a: {get: {x-role: read, responses: {default: {$ref: '#/components/responses/No'}}}}}",
			"there is no #/components/responses/No"},
		{"a: [", "did not find"},
	} {
		page, err := apidoc.Make([]byte(c.doc))
		if c.want != "" {
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%q: %v, want %s", c.doc, err, c.want)
			}
			continue
		}
		if err != nil {
			t.Fatalf("%q: %v", c.doc, err)
		}
		if strings.Contains(string(page.HTML), "<script") || !strings.Contains(string(page.HTML), "&lt;script&gt;T") {
			t.Errorf("it has become: %s", page.HTML)
		}
	}
}

// A client that already has the page gets "not modified".
func TestDocs(t *testing.T) {
	docs := apidoc.New(admin.OpenAPI)
	for _, c := range []struct {
		serve func(http.ResponseWriter, *http.Request) error
		typ   string
	}{{docs.ServePage, "text/html; charset=utf-8"}, {docs.ServeDescription, "application/yaml"}} {
		ask := func(tag string) *httptest.ResponseRecorder {
			r := httptest.NewRequest(http.MethodGet, "/docs", http.NoBody)
			r.Header.Set("If-None-Match", tag)
			w := httptest.NewRecorder()
			if err := c.serve(w, r); err != nil {
				t.Fatal(err)
			}
			return w
		}
		first := ask("")
		if first.Code != http.StatusOK || first.Header().Get("Content-Type") != c.typ || first.Body.Len() < 1000 {
			t.Errorf("%d %v", first.Code, first.Header())
		}
		if page := strings.HasPrefix(c.typ, "text/html"); page != (first.Header().Get("Content-Security-Policy") != "") {
			t.Errorf("%s: %v", c.typ, first.Header())
		}
		if again := ask(first.Header().Get("ETag")); again.Code != http.StatusNotModified || again.Body.Len() > 0 {
			t.Errorf("%s again: %d %v", c.typ, again.Code, again.Header())
		}
	}
}
