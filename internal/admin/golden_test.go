package admin

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"berth/internal/admin/api"
	"berth/internal/golden"
	"berth/internal/ipam/ipamtest"

	"github.com/sirupsen/logrus"
)

// goldenTargets are the requests of TestGoldenAnswers, by the path of their endpoint. $SUBNET is the id of 10.4.0.0/24.
// An endpoint without a row is asked without parameters.
var goldenTargets = map[string][]string{
	"/v1/networks":                        {"/v1/networks", "/v1/networks?space=lab&limit=1"},
	"/v1/networks/{network}":              {"/v1/networks/office", "/v1/networks/seen", "/v1/networks/nowhere"},
	"/v1/networks/{network}/subnets":      {"/v1/networks/net1/subnets"},
	"/v1/networks/{network}/pools":        {"/v1/networks/net1/pools"},
	"/v1/networks/{network}/exclusions":   {"/v1/networks/net1/exclusions"},
	"/v1/networks/{network}/reservations": {"/v1/networks/office/reservations"},
	"/v1/networks/{network}/addresses":    {"/v1/networks/net1/addresses"},
	"/v1/networks/{network}/env/{owner}":  {"/v1/networks/office/env/mail"},
	"/v1/networks/{network}/free":         {"/v1/networks/office/free", "/v1/networks/seen/free"},
	"/v1/networks/{network}/free/next":    {"/v1/networks/office/free/next"},
	"/v1/subnets/{id}":                    {"/v1/subnets/$SUBNET"},
	"/v1/subnets/{id}/available-ips":      {"/v1/subnets/$SUBNET/available-ips?limit=3"},
	"/v1/leases":                          {"/v1/leases?remembered=true", "/v1/leases?brief=true&limit=2"},
	"/v1/who":                             {"/v1/who?name=web", "/v1/who?address=10.4.0.5", "/v1/who"},
	"/v1/find":                            {"/v1/find?q=10.4.0.3", "/v1/find?q=shop", "/v1/find?q=mail&kind=reservation"},
	"/v1/events":                          {"/v1/events?last=500", "/v1/events?verb=lease.*&last=2"},
	"/v1/hosts/{name}":                    {"/v1/hosts/h1"},
	"/v1/deploys/{project}":               {"/v1/deploys/shop"},
	"/v1/elastic/{address}":               {"/v1/elastic/203.0.113.0", "/v1/elastic/203.0.113.9"},
}

// noAnswer are the endpoints whose answers are no JSON, or never end. What they say has tests of its own.
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

// TestGoldenAnswers: each GET of the API answers over the state of 1.0 what 1.0 answered. Fields may come
// (docs/formats.md).
func TestGoldenAnswers(t *testing.T) {
	s, subnet := goldenServer(t)
	all := map[string]goldenAnswer{}
	for _, r := range allRoutes(s) {
		if r.Method != http.MethodGet || noAnswer[r.Path] {
			continue
		}
		targets := goldenTargets[r.Path]
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
	quiet := logrus.New()
	quiet.SetOutput(io.Discard)
	s = New(Config{Service: r.S, Log: logrus.NewEntry(quiet), GID: -1, Host: r.Host,
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

// answerTo is what an admin gets.
func (s *Server) answerTo(t *testing.T, target string) goldenAnswer {
	t.Helper()
	at, err := url.Parse(target)
	must(t, err)
	req := &http.Request{Method: http.MethodGet, URL: at, Header: http.Header{}, Body: http.NoBody}
	w := timedRecorder{httptest.NewRecorder()}
	s.recovered(s.mux()).ServeHTTP(w, req.WithContext(as(t.Context(), api.RoleAdmin)))
	body := golden.Plain(t, w.Body.Bytes())
	settle(body, w.Code != http.StatusOK || at.Path == api.GetElasticCheck.Path)
	return goldenAnswer{w.Code, w.Header().Get("Content-Type"), body}
}

// settle replaces the time of an answer, which differs between two runs. With texts, it replaces texts for people, too.
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
