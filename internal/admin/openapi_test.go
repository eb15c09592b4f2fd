package admin

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"berth/internal/admin/api"
	"berth/internal/ipam"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/google/go-cmp/cmp"
)

// description is openapi.yaml, which all tests share and only read.
func description(t testing.TB) *openapi3.T {
	t.Helper()
	doc, err := loadDescription()
	must(t, err)
	return doc
}

// described is a request with the operation that describes it, or nil if none does.
func described(t testing.TB, req *http.Request) *openapi3filter.RequestValidationInput {
	t.Helper()
	route, params, err := finder{description(t)}.FindRoute(req)
	if err != nil {
		return nil
	}
	return &openapi3filter.RequestValidationInput{Request: req, PathParams: params, Route: route, Options: asSent}
}

var loadDescription = sync.OnceValues(func() (*openapi3.T, error) {
	text, err := OpenAPI()
	if err != nil {
		return nil, err
	}
	doc, err := openapi3.NewLoader().LoadFromData(text)
	if err != nil {
		return nil, err
	}
	openapi3filter.RegisterBodyDecoder("application/problem+json", openapi3filter.JSONBodyDecoder)
	// The test asks for one line.
	openapi3filter.RegisterBodyDecoder("application/x-ndjson", openapi3filter.JSONBodyDecoder)
	for _, text := range []string{"application/yaml", "text/html"} { // apidoc checks their contents
		openapi3filter.RegisterBodyDecoder(text, openapi3filter.FileBodyDecoder)
	}
	return doc, doc.Validate(context.Background())
})

// finder finds operations by the path as sent. kin-openapi's own routers decode the path first, and know no
// escaped slash.
type finder struct{ doc *openapi3.T }

// FindRoute implements routers.Router.
func (f finder) FindRoute(req *http.Request) (*routers.Route, map[string]string, error) {
	for path, item := range f.doc.Paths.Map() {
		params, ok := matches(path, req.URL.EscapedPath())
		if literal := f.doc.Paths.Value(req.URL.EscapedPath()); literal != nil && literal != item {
			continue
		}
		if op := item.GetOperation(req.Method); ok && op != nil {
			return &routers.Route{Spec: f.doc, Path: path, PathItem: item, Method: req.Method, Operation: op}, params,
				nil
		}
	}
	return nil, nil, fmt.Errorf("%s %s is not described", req.Method, req.URL.EscapedPath())
}

func matches(template, path string) (map[string]string, bool) {
	want, got := strings.Split(template, "/"), strings.Split(path, "/")
	params := map[string]string{}
	if len(want) != len(got) {
		return nil, false
	}
	for i, segment := range want {
		value, err := url.PathUnescape(got[i])
		if name, ok := strings.CutPrefix(segment, "{"); ok && err == nil {
			params[strings.TrimSuffix(name, "}")] = value
		} else if segment != got[i] {
			return nil, false
		}
	}
	return params, true
}

// TestDescribed compares the description with the server: each operation, and who may call it.
func TestDescribed(t *testing.T) {
	doc := description(t)
	var described, served []string
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			described = append(described, fmt.Sprint(method, " ", path, " ", op.Extensions["x-role"], " ",
				op.Extensions["x-role-account"] == true))
		}
	}
	server := new(Server)
	for _, r := range server.routes() {
		role := "admin"
		if mayCall(as(t.Context(), api.RoleReadOnly), r) == nil {
			role = "read"
		}
		served = append(served, fmt.Sprint(r.Method, " ", r.Path, " ", role, " ", r.Account))
	}
	for _, r := range server.probes() {
		served = append(served, fmt.Sprint(r.Method, " ", r.Path, " anybody ", r.Account))
	}
	slices.Sort(described)
	slices.Sort(served)
	if diff := cmp.Diff(served, described); diff != "" {
		t.Error(diff)
	}
}

// allRoutes are the routes for callers with a role, and those for anybody.
func allRoutes(s *Server) []route { return slices.Concat(s.routes(), s.probes()) }

// holdNames compares the described values with the ones in use. Each must be described with its meaning.
func holdNames(t *testing.T, schema *openapi3.Schema, used []string, meaning func(string) string) {
	t.Helper()
	var described []string
	for _, v := range schema.Enum {
		described = append(described, v.(string))
		if meaning != nil && !strings.Contains(schema.Description, meaning(v.(string))+": ") {
			t.Errorf("%s is described without a meaning", v)
		}
	}
	slices.Sort(described)
	slices.Sort(used)
	if !slices.Equal(described, used) {
		t.Errorf("described: %q\nused:      %q", described, used)
	}
}

var codeLine = regexp.MustCompile(`(?m)^\t(?:Code\w+|\w+ +Code) += "(\w+)"`)

// codesIn are the codes among the constants of a file.
func codesIn(t *testing.T, file string) (all []string) {
	t.Helper()
	text, err := os.ReadFile(file)
	must(t, err)
	for _, found := range codeLine.FindAllStringSubmatch(string(text), -1) {
		all = append(all, found[1])
	}
	return all
}

// TestNamesDescribed compares the codes of problems and the verbs of events with the description.
func TestNamesDescribed(t *testing.T) {
	schemas := description(t).Components.Schemas
	codes := codesIn(t, "api/problem.go")
	holdNames(t, schemas["Problem"].Value.Properties["code"].Value, codes, nil)
	for _, k := range kinds {
		if !slices.Contains(codes, k.code) {
			t.Errorf("%v has the code %q, which is not one of the API", k.is, k.code)
		}
	}
	var verbs []string
	for v := ipam.Verb(1); v.String() != fmt.Sprintf("verb %d", v); v++ {
		verbs = append(verbs, v.String())
	}
	holdNames(t, schemas["Verb"].Value, verbs, nil)
}

// TestAnswersAsDescribed calls every operation in every way that gives a different answer, and compares request
// and answer with the description.
func TestAnswersAsDescribed(t *testing.T) {
	h := start(t, nil)
	h.furnish(t)
	asked := map[string]bool{"POST /v1/tokens": true, "DELETE /v1/tokens/{token}": true, // TestTokensAsDescribed
		"POST /v1/import": true,                               // TestImportAsDescribed
		"GET /v1/hosts":   true, "GET /v1/hosts/{name}": true, // TestHostsAsDescribed
		// TestWitnessAsDescribed
		"GET /v1/check": true, "POST /v1/check": true, "PUT /v1/witness": true, "POST /v1/leases/release": true,
		"POST /v1/witness/news": true, // TestNewsAsDescribed
		"POST /v1/store/save":   true, // TestSaveState
		"POST /v1/store/mend":   true} // TestMendAsDescribed
	for _, c := range steps(`
		GET /healthz -> 200 ok
		GET /readyz -> 200 ready
		GET /metrics -> 200 berth_build_info 1
		GET /openapi.yaml -> 200 title: Berth admin API
		GET /openapi.yaml?version=1 -> 400 invalid
		GET /docs -> 200 <h1>Berth admin API</h1>
		GET /v1/version -> 200 "store":"bolt"
		GET /v1/spaces -> 200 "name":"lab"
		GET /v1/subnets -> 200 "cidr":"10.1.0.0/24"
		GET /v1/subnets?space=local -> 200 "free":"18446744073709551615"
		GET /v1/subnets?space=lab -> 200 "quarantine":"1h"
		GET /v1/subnets?space=global -> 200 "subnets":[]
		GET /v1/subnets?space=nowhere -> 404 not_found
		GET /v1/leases -> 200 "name":"web"
		GET /v1/leases?space=lab&subnet=10.1.0.0/24&remembered=true -> 200 "state":"remembered"
		GET /v1/leases?address=10.1.0.250 -> 200 "leases":[]
		GET /v1/leases?brief=true&subnet=10.1.0.0/24 -> 200 ","space":"lab","network":"net-
		GET /v1/leases?brief=true&address=10.1.0.250 -> 200 "leases":[]
		GET /v1/leases?brief=true&limit=1 -> 200 }],"next":"
		GET /v1/leases?subnet=10.2.0.0/24 -> 404 not_found
		GET /v1/events -> 200 "verb":"lease.take"
		GET /v1/events?last=0 -> 200 "more":true
		GET /v1/events?since=2020-01-01T00:00:00Z&last=3 -> 200 "more":true
		GET /v1/events?verb=lease.*,pool.attach&until=2100-01-01T00:00:00Z&last=1
			-> 200 "known_since":"2
		GET /v1/events?until=2020-01-01T00:00:00Z -> 200 "events":[],"more":false
		GET /v1/events?network=nowhere,nothing -> 200 "events":[],"more":false
		GET /v1/events?verb=lease,door -> 400 the verbs are account.create, 
		# and TestWhoAsDescribed
		GET /v1/who?name=web -> 200 "tenures":[{"space":"lab"
		GET /v1/find?q=web -> 200 "kind":"lease"
		GET /v1/find?q=10.1.0.0%2F24&exact=true&kind=subnet&space=lab
			-> 200 "why":[{"field":"cidr","text":"10.1.0.0/24"}]
		GET /v1/find?q=10.1.0.200&limit=2 -> 200 "found":[{"kind":"subnet"
		GET /v1/find?q=nothing-has-this -> 200 "found":[]
		GET /v1/find?q=%20 -> 400 the search is empty
		GET /v1/find?q=web&kind=door -> 400 the kinds are space, network
		GET /v1/names -> 200 "owner":"web","held":true
		GET /v1/names?zone=lan.example -> 400 invalid
		GET /v1/status -> 200 "writable":true
		GET /v1/export -> 200 "networks":[]
		GET /v1/export?network=nowhere -> 404 not_found
		POST /v1/fsck -> 200 "ok":true
		POST /v1/backup -> 200
		GET /v1/tokens -> 200 "tokens":[]
		GET /v1/deploys -> 200 "deploys":[]
		GET /v1/orphans -> 200 "orphans":[]
		GET /v1/deploys/{project} -> 200 "deploys":[]
		GET /v1/workers -> 200 "workers":[]
	`) {
		h.play(t, c)
		asked[c.method+" "+strings.Split(c.target, "?")[0]] = true
	}
	for _, r := range h.server.elasticRoutes() {
		asked[r.Method+" "+r.Path] = true // TestElasticAsDescribed
	}
	for _, r := range h.server.planRoutes() {
		asked[r.Method+" "+r.Path] = true // TestPlanAsDescribed
	}
	for _, r := range allRoutes(h.server) {
		if !asked[r.Method+" "+r.Path] {
			t.Errorf("%s %s was not tested", r.Method, r.Path)
		}
	}
}

// TestReasonsDescribed compares the codes of reservations with the description, which gives each a meaning.
func TestReasonsDescribed(t *testing.T) {
	used := codesIn(t, "../ipam/errors.go")
	holdNames(t, description(t).Components.Schemas["Reason"].Value, used, func(reason string) string {
		_, short, _ := strings.Cut(strings.Replace(reason, "NetworkStatic", "NetworkReservationStatic", 1), "NetworkReservation")
		return short
	})
}

// asSent keeps the validation of a request from filling in defaults.
var asSent = &openapi3filter.Options{SkipSettingDefaults: true, MultiError: true}

func (h *harness) validate(t testing.TB, in *openapi3filter.RequestValidationInput, res *http.Response, body []byte) {
	t.Helper()
	out := &openapi3filter.ResponseValidationInput{RequestValidationInput: in, Status: res.StatusCode,
		Header:  res.Header,
		Options: &openapi3filter.Options{IncludeResponseStatus: true, MultiError: true}}
	out.SetBodyBytes(body)
	if err := openapi3filter.ValidateResponse(t.Context(), out); err != nil {
		t.Errorf("the answer is not as described: %v", err)
	}
}

// TestFollowedEventsAsDescribed compares the lines of a stream with the description of an event.
func TestFollowedEventsAsDescribed(t *testing.T) {
	h := start(t, nil)
	h.furnish(t)
	const asked = "GET /v1/events?follow=true&last=50"
	lines, all := h.stream(t, asked), ""
	for range 6 {
		all += h.asDescribed(t, asked, line(t, lines))
	}
	if !strings.Contains(all, `"verb":"subnet.create"`) {
		t.Errorf("no subnet was created: %s", all)
	}
}

// asDescribed compares a line of a stream with the description of the request.
func (h *harness) asDescribed(t testing.TB, asked, line string) string {
	t.Helper()
	in := described(t, h.request(t, steps(asked + " -> 200")[0]))
	h.validate(t, in, &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {api.LinesType}}},
		[]byte(line))
	return line
}

// The operations of bulk requests, their fields and their names match the description.
func TestOperationsDescribed(t *testing.T) {
	doc := description(t)
	one := doc.Components.Schemas["Edit"].Value.OneOf
	if len(one) < 17 {
		t.Errorf("%d operations are described", len(one))
	}
	for _, ref := range one {
		op := ref.Value.Properties["op"].Value.Enum[0].(string)
		e, known := ipam.NewEdit(op)
		if !known || e.Op() != op {
			t.Errorf("%s is described, and is %T, whose operation is %q", op, e, e.Op())
			continue
		}
		holdFields(t, op, reflect.TypeOf(e).Elem(), ref, "op")
	}
	for name, v := range map[string]any{ // embedded fields, lists, maps, structs of both packages
		"Network": ipam.NetworkInfo{}, "Reservation": ipam.ReservationInfo{}, "Problem": api.Problem{}, "Status": api.Status{},
		"PlanNetwork": ipam.PlannedNetwork{}, "EngineContainer": ipam.EngineContainer{}, "Lease": ipam.LeaseInfo{},
		"ElasticAddress": ipam.ElasticInfo{}, "EdgeNews": ipam.EdgeNews{}, "PoolEntry": api.PoolEntry{},
	} {
		holdFields(t, name, reflect.TypeOf(v), doc.Components.Schemas[name])
	}
	holdFields(t, "Event", reflect.TypeFor[ipam.Event](), doc.Components.Schemas["Event"], "mark")
	bind := doc.Components.Schemas["EditReservationBind"].Value.Properties["wanted"]
	holdFields(t, "what is bound", reflect.TypeFor[ipam.AddReservation](), bind.Value.Items)
}

// holdFields compares the JSON fields of a type with the described ones.
func holdFields(t *testing.T, name string, typ reflect.Type, ref *openapi3.SchemaRef, besides ...string) {
	t.Helper()
	var described []string
	for field := range ref.Value.Properties {
		described = append(described, field)
	}
	has := append(fieldsOf(typ), besides...)
	slices.Sort(described)
	slices.Sort(has)
	has = slices.Compact(has) // a field hides an embedded one of the same name
	if !slices.Equal(described, has) {
		t.Errorf("%s has the fields %q, described are %q", name, has, described)
	}
}

func fieldsOf(typ reflect.Type) (all []string) {
	for i := range typ.NumField() {
		f := typ.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" {
			all = append(all, fieldsOf(f.Type)...)
			continue
		}
		if name != "-" {
			all = append(all, name)
		}
	}
	return all
}
