package admin

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"berth/internal/admin/api"
	"berth/internal/golden"
	"berth/internal/ipam/ipamtest"
	"berth/internal/plan"

	"github.com/getkin/kin-openapi/openapi3"
)

// goldenTargets are the requests of TestGoldenAnswers. $SUBNET is the id of 10.4.0.0/24. An endpoint that is not
// listed is called without parameters.
const goldenTargets = `
	/v1/networks /v1/networks?space=lab&limit=1
	/v1/networks/office /v1/networks/seen /v1/networks/nowhere
	/v1/networks/net1/subnets /v1/networks/net1/pools /v1/networks/net1/exclusions
	/v1/networks/office/reservations /v1/networks/net1/addresses /v1/networks/office/env/mail
	/v1/networks/office/free /v1/networks/seen/free /v1/networks/office/free/next
	/v1/subnets/$SUBNET /v1/subnets/$SUBNET/available-ips?limit=3
	/v1/leases?remembered=true /v1/leases?brief=true&limit=2
	/v1/who?name=web /v1/who?address=10.4.0.5 /v1/who
	/v1/find?q=10.4.0.3 /v1/find?q=shop /v1/find?q=mail&kind=reservation
	/v1/events?last=500 /v1/events?verb=lease.*&last=2
	/v1/hosts/h1 /v1/deploys/shop
	/v1/elastic/203.0.113.0 /v1/elastic/203.0.113.9`

// noAnswer are the endpoints whose answers are not JSON, or never end. Other tests check them.
var noAnswer = map[string]bool{
	"/healthz": true, "/readyz": true, "/metrics": true, // a line for people; names of metrics: TestGoldenMetrics
	"/openapi.yaml": true, "/docs": true, // TestDescribed
	"/v1/edge": true, "/v1/edge/lan": true, // streams: TestElasticAsDescribed
}

// goldenAnswer is one of api.json.
type goldenAnswer struct {
	Status int
	Type   string
	Body   any
}

// TestGoldenAnswers: each GET of the API gives for the state of 1.0 the same answer as 1.0. New fields are allowed
// (docs/formats.md).
func TestGoldenAnswers(t *testing.T) {
	s, subnet := goldenServer(t)
	all := map[string]goldenAnswer{}
	for _, r := range allRoutes(s) {
		if r.Method != http.MethodGet || noAnswer[r.Path] {
			continue
		}
		var targets []string
		for _, target := range strings.Fields(goldenTargets) {
			path, _, _ := strings.Cut(target, "?")
			if _, is := matches(r.Path, path); is {
				targets = append(targets, target)
			}
		}
		if targets == nil {
			targets = []string{r.Path}
		}
		for _, target := range targets {
			if strings.Contains(target, "{") {
				t.Errorf("%s is not asked: give goldenTargets a request", target)
				continue
			}
			all[target] = s.answerTo(t, strings.ReplaceAll(target, "$SUBNET", subnet))
		}
	}
	golden.JSON(t, "api.json", all)
}

// goldenServer serves the state of 1.0; subnet is the id of 10.4.0.0/24 there.
func goldenServer(t *testing.T) (s *Server, subnet string) {
	t.Helper()
	r := ipamtest.Golden(t)
	r.Open()
	s = New(Config{Service: r.S, Log: quiet(), GID: -1, Host: r.Host,
		Version: api.Version{Version: "1.0.0", Host: r.Host, Driver: "berth", Drivers: []string{"berth"}, Store: "bolt",
			StoreID: strings.Repeat("0", 32), State: "/var/lib/berth/berth.db", PID: 7, Started: r.Clock.Now()}})
	all, err := r.S.Subnets(t.Context(), "local")
	must(t, err)
	for _, sub := range all {
		if sub.CIDR.String() == "10.4.0.0/24" {
			return s, sub.ID.String()
		}
	}
	t.Fatal("the golden state has no subnet 10.4.0.0/24")
	return nil, ""
}

// answerTo is the answer that an admin gets.
func (s *Server) answerTo(t *testing.T, target string) goldenAnswer {
	t.Helper()
	req := httptest.NewRequestWithContext(as(t.Context(), api.RoleAdmin), http.MethodGet, target, nil)
	w := timedRecorder{httptest.NewRecorder()}
	s.recovered(s.mux()).ServeHTTP(w, req)
	body := golden.Plain(t, w.Body.Bytes())
	settle(body, w.Code != http.StatusOK || req.URL.Path == api.GetElasticCheck.Path)
	return goldenAnswer{w.Code, w.Header().Get("Content-Type"), body}
}

// settle replaces the times that differ between two runs. With texts, it also replaces texts for people.
func settle(v any, texts bool) {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			switch {
			case slices.Contains([]string{"uptime", "taken", "seen"}, key),
				texts && slices.Contains([]string{"detail", "title"}, key):
				v[key] = "..."
			default:
				settle(value, texts)
			}
		}
	case []any:
		for _, value := range v {
			settle(value, texts)
		}
	}
}

// TestGoldenEndpoints: an operation of 1.0 keeps its method, its path and its parameters.
func TestGoldenEndpoints(t *testing.T) {
	var all []string
	for _, r := range allRoutes(&Server{}) {
		at := r.Method + " " + r.Path
		all = append(all, at)
		for _, f := range api.FieldsOf(r.Req) {
			if f.In != "body" {
				all = append(all, at+" "+f.In+" "+f.Name)
			}
		}
	}
	golden.Names(t, "endpoints.txt", all)
}

// TestGoldenCodes: every code of 1.0 remains: of problems, of refusals about addresses, and of findings.
func TestGoldenCodes(t *testing.T) {
	doc := description(t)
	var all []string
	for name, schema := range map[string]*openapi3.SchemaRef{
		"problem": doc.Components.Schemas["Problem"].Value.Properties["code"],
		"refusal": doc.Components.Schemas["Reason"], "finding": doc.Components.Schemas["FindingKind"],
	} {
		for _, code := range schema.Value.Enum {
			all = append(all, name+" "+code.(string))
		}
	}
	golden.Names(t, "codes.txt", all)
}

// TestGoldenImport: an empty state imports the document of 1.0's GET /v1/export, and exports the same document.
func TestGoldenImport(t *testing.T) {
	document := golden.Read(t, "export.json")
	if document == nil { // it is made of the document in YAML
		p, err := plan.ReadYAML(bytes.NewReader(golden.Read(t, "plan.yaml")))
		must(t, err)
		document, err = json.Marshal(p)
		must(t, err)
	}
	h := start(t, nil)
	now := h.plays(t, `
		POST /v1/import $PLAN -> 200 "report":
		GET /v1/export -> 200
	`, "$PLAN", string(document))
	golden.JSON(t, "export.json", golden.Plain(t, []byte(now.body)))
}
