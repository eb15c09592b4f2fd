package single

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// engine is an engine that only records its requests.
type engine struct {
	mu    sync.Mutex
	asked []string // METHOD PATH?QUERY BODY of all but GET
	dial  func(ctx context.Context, network, address string) (net.Conn, error)
}

// containers is what it lists: three replicas of web, of which the first has a successor, one made by `docker
// compose run`, one of another project, and a database.
const containers = `[
	{"Id": "w1", "Labels": {"com.docker.compose.project": "shop", "com.docker.compose.service": "web",
		"com.docker.compose.container-number": "1"}},
	{"Id": "w1b", "Labels": {"com.docker.compose.project": "shop", "com.docker.compose.service": "web",
		"com.docker.compose.container-number": "1"}},
	{"Id": "w2", "Labels": {"com.docker.compose.project": "shop", "com.docker.compose.service": "web",
		"com.docker.compose.container-number": "2"}},
	{"Id": "run1", "Labels": {"com.docker.compose.project": "shop", "com.docker.compose.service": "web",
		"com.docker.compose.container-number": "1", "com.docker.compose.oneoff": "True"}},
	{"Id": "w3", "Labels": {"com.docker.compose.project": "shop", "com.docker.compose.service": "web",
		"com.docker.compose.container-number": "3"}},
	{"Id": "x3", "Labels": {"com.docker.compose.project": "other", "com.docker.compose.service": "web",
		"com.docker.compose.container-number": "3"}},
	{"Id": "d1", "Labels": {"com.docker.compose.project": "shop", "com.docker.compose.service": "db",
		"com.docker.compose.container-number": "1"}}]`

func (e *engine) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	words := route(r.URL.Path)
	switch {
	case r.Method == http.MethodGet && is(words, "containers", "json"):
		_, _ = io.WriteString(w, containers)
	case r.Method == http.MethodGet && is(words, "containers", "*", "json"):
		_, _ = io.WriteString(w, `{"Id": "`+strings.TrimPrefix(words[1], "name-of-")+`"}`)
	case r.Method == http.MethodGet && is(words, "images", "*", "json"):
		_, _ = io.WriteString(w, `{"Config": {"Volumes": {"/image": {}, "/bound": {}}}}`)
	case r.Method == http.MethodGet && is(words, "networks", "*"):
		_, _ = io.WriteString(w, `{"Name": "back"}`)
	case r.Method == http.MethodGet && is(words, "volumes", "*"):
		_, _ = io.WriteString(w, `{"Driver": "nfs", "Options": null, "Mountpoint": "/v"}`)
	default:
		body, _ := io.ReadAll(r.Body)
		e.mu.Lock()
		e.asked = append(e.asked, r.Method+" "+r.URL.RequestURI()+" "+string(body))
		e.mu.Unlock()
		if is(words, "containers", "create") {
			w.WriteHeader(http.StatusCreated)
			_, _ = io.WriteString(w, `{"Id": "new"}`)
		}
	}
}

func begin(t *testing.T, created func(context.Context, string) error) (*engine, *Filter) {
	t.Helper()
	e := &engine{}
	socket := filepath.Join(t.TempDir(), "e")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: e}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close() })
	e.dial = func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", socket)
	}
	if created == nil {
		created = func(context.Context, string) error { return nil }
	}
	f := newFilter("shop", Replica{Service: "web", Number: 2, NamePrefix: "0123456789ab", On: []Endpoint{
		{Network: "front", Addresses: []netip.Addr{netip.MustParseAddr("10.0.0.7"), netip.MustParseAddr("fd00::7")}},
		{Network: "back", Addresses: []netip.Addr{netip.MustParseAddr("10.1.0.7")}},
	}}, e.dial, created)
	t.Cleanup(f.close)
	return e, f
}

func (e *engine) has() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.asked)
}

func ask(f *Filter, method, target, body string) (status int, answer string) {
	w := httptest.NewRecorder()
	f.ServeHTTP(w, httptest.NewRequest(method, target, strings.NewReader(body)))
	return w.Code, w.Body.String()
}

const described = `{"Image": "web:1", "Labels": {"com.docker.compose.project": "shop",
	"com.docker.compose.service": "web", "com.docker.compose.container-number": "2"},
	"HostConfig": {"Memory": 1234567890123456789},
	"NetworkingConfig": {"EndpointsConfig": {"front": {"Aliases": ["web"]}, "third": null}}}`

// TestListing: Compose does not see the replicas from the wanted number on, those of `compose run`, whose numbers
// it counts, or the second container of a number that is exchanged. It sees everything else.
func TestListing(t *testing.T) {
	_, f := begin(t, nil)
	status, answer := ask(f, "GET", "/v1.41/containers/json?all=1", "")
	var all []struct{ ID string }
	if err := json.Unmarshal([]byte(answer), &all); err != nil || status != http.StatusOK {
		t.Fatalf("%d %s: %v", status, answer, err)
	}
	var ids []string
	for _, c := range all {
		ids = append(ids, c.ID)
	}
	if want := []string{"w1", "x3", "d1"}; !slices.Equal(ids, want) {
		t.Errorf("what is seen is %v, want %v", ids, want)
	}
}

// TestCreate: the container gets its name and its addresses. Everything else is as Compose says, to the digit. A
// second container is refused.
func TestCreate(t *testing.T) {
	e, f := begin(t, nil)
	if status, answer := ask(f, "POST", "/v1.41/containers/create?name=shop-web-2", described); status != 201 {
		t.Fatalf("%d %s", status, answer)
	}
	got := e.has()
	if len(got) != 1 || !strings.HasPrefix(got[0], "POST /v1.41/containers/create?name=0123456789ab_shop-web-2 ") {
		t.Fatalf("the engine is asked for %q", got)
	}
	for _, part := range []string{`"IPv4Address":"10.0.0.7"`, `"IPv6Address":"fd00::7"`, `"Aliases":["web"]`,
		`"third":{}`, `1234567890123456789`, `"Image":"web:1"`} {
		if !strings.Contains(strings.ReplaceAll(got[0], " ", ""), strings.ReplaceAll(part, " ", "")) {
			t.Errorf("the container is made without %s: %s", part, got[0])
		}
	}
	if status, answer := ask(f, "POST", "/containers/create", described); status != 403 ||
		!strings.Contains(answer, "only one container") {
		t.Errorf("a second one: %d %s", status, answer)
	}
	if id, _, refused := f.result(); id != "new" || len(refused) != 1 || len(e.has()) != 1 {
		t.Errorf("made was %s, refused %v, asked %v", id, refused, e.has())
	}
}

// TestOtherContainers: only the wanted replica is created.
func TestOtherContainers(t *testing.T) {
	for from, to := range map[string]string{`-number": "2"`: `-number": "3"`, `"web",`: `"db",`, `"shop"`: `"other"`,
		`"Labels": {`: `"Labels": {"com.docker.compose.oneoff": "True", `} {
		e, f := begin(t, nil)
		body := strings.Replace(described, from, to, 1)
		if body == described {
			t.Fatalf("there is no %s", from)
		}
		if status, answer := ask(f, "POST", "/containers/create", body); status != 403 || len(e.has()) > 0 {
			t.Errorf("with %s: %d %s; the engine is asked for %v", to, status, answer, e.has())
		}
	}
}

// TestStart: only the container that was checked starts. For others, the answer is that they run.
func TestStart(t *testing.T) {
	bad := errors.New("it has another address")
	for _, refusal := range []error{nil, bad} {
		e, f := begin(t, func(_ context.Context, id string) error {
			if id != "new" {
				t.Errorf("looked at was %s", id)
			}
			return refusal
		})
		ask(f, "POST", "/containers/create", described)
		if status, _ := ask(f, "POST", "/v1.41/containers/w1/start", ""); status != http.StatusNotModified {
			t.Errorf("another one's start is answered with %d", status)
		}
		status, answer := ask(f, "POST", "/v1.41/containers/name-of-new/start", "")
		_, started, refused := f.result()
		if started != (refusal == nil) || len(e.has()) != map[bool]int{true: 2, false: 1}[started] {
			t.Errorf("with %v it starts: %v; the engine is asked for %v", refusal, started, e.has())
		}
		if refusal != nil && (status != 403 || !strings.Contains(answer, bad.Error()) || len(refused) != 1) {
			t.Errorf("refused: %d %s", status, answer)
		}
	}
}

// TestConnect: the container joins further networks with its owner's addresses there, by any name or id of the
// network. Other containers do not join or leave a network.
func TestConnect(t *testing.T) {
	e, f := begin(t, nil)
	ask(f, "POST", "/containers/create", described)
	if status, answer := ask(f, "POST", "/networks/4f00/connect",
		`{"Container": "new", "EndpointConfig": {"Aliases": ["web"]}}`); status != 200 {
		t.Fatalf("%d %s", status, answer)
	}
	if got := e.has(); len(got) != 2 || !strings.Contains(got[1], `"IPAMConfig":{"IPv4Address":"10.1.0.7"}`) ||
		!strings.Contains(got[1], `"Aliases":["web"]`) {
		t.Errorf("the engine is asked for %q", got)
	}
	for _, way := range []string{"connect", "disconnect"} {
		if status, _ := ask(f, "POST", "/networks/4f00/"+way, `{"Container": "w1"}`); status != 403 {
			t.Errorf("%s of another one: %d", way, status)
		}
	}
	if status, _ := ask(f, "POST", "/networks/4f00/disconnect", `{"Container": "new"}`); status != 200 {
		t.Errorf("the new one's: %d", status)
	}
}

// TestRefuses: any other change is refused, but networks and volumes may be created.
func TestRefuses(t *testing.T) {
	e, f := begin(t, nil)
	for _, c := range []struct{ method, target string }{
		{"DELETE", "/containers/w1"}, {"POST", "/containers/w1/stop"}, {"POST", "/containers/w1/rename?name=x"},
		{"POST", "/v1.41/containers/w1/kill"}, {"DELETE", "/networks/front"}, {"POST", "/images/create?fromImage=x"},
		{"POST", "/containers/prune"}, {"DELETE", "/volumes/v"}, {"PUT", "/containers/w1/archive"},
		{"POST", "/v1.41/../containers/w1/stop"},
	} {
		if status, answer := ask(f, c.method, c.target, ""); status != 403 || !strings.Contains(answer, "web/2 of shop") {
			t.Errorf("%s %s: %d %s", c.method, c.target, status, answer)
		}
	}
	for _, target := range []string{"/v1.41/networks/create", "/volumes/create"} {
		if status, _ := ask(f, "POST", target, `{}`); status != 200 {
			t.Errorf("%s: %d", target, status)
		}
	}
	if len(e.has()) != 2 {
		t.Errorf("the engine is asked for %v", e.has())
	}
}

// TestTakeOver: the successor takes over the volumes without names if the files or the image still ask for one at
// the path. What the files say of a path has priority.
func TestTakeOver(t *testing.T) {
	for what, c := range map[string]struct{ says, want string }{
		"by the image":           {`"HostConfig": {}`, `"Binds":["old-image:/image","old-bound:/bound"]`},
		"by the image, and more": {`"HostConfig": {"Binds": ["a:/a:rw"]}`, `"Binds":["a:/a:rw","old-image:/image"`},
		"by the description":     {`"Volumes": {"/said": {}}, "HostConfig": {}`, `"old-said:/said"`},
		"by a mount":             {`"HostConfig": {"Mounts": [{"Type": "volume", "Target": "/mount"}]}`, `"Source":"old-mount"`},
		"the files bind it": {`"HostConfig": {"Binds": ["/srv:/bound:ro"]}`,
			`"Binds":["/srv:/bound:ro","old-image:/image"]`},
		"the files mount it": {`"HostConfig": {"Mounts": [{"Type": "volume", "Source": "data", "Target": "/image"}]}`,
			`"Binds":["old-bound:/bound"]`},
		"they mount memory": {`"HostConfig": {"Mounts": [{"Type": "tmpfs", "Target": "/image"}]}`,
			`"Binds":["old-bound:/bound"]`},
	} {
		e, f := begin(t, nil)
		for _, at := range []string{"image", "bound", "said", "mount", "gone"} {
			f.replica.Volumes = append(f.replica.Volumes, Volume{"old-" + at, "/" + at})
		}
		body := strings.Replace(described, `"HostConfig": {"Memory": 1234567890123456789}`, c.says, 1)
		if status, answer := ask(f, "POST", "/containers/create", body); status != 201 {
			t.Errorf("%s: %d %s", what, status, answer)
			continue
		}
		if got := e.has()[0]; !strings.Contains(got, c.want) || strings.Contains(got, "old-gone") {
			t.Errorf("%s: the engine is asked for %s, want %s", what, got, c.want)
		}
	}
}
