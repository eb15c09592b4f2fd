package rollout

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"berth/internal/deploy/scene"
	"berth/internal/deploy/single"
)

// small is a fake engine with as much of a Docker Engine as a deploy needs. Its containers run once they are
// started, unless fails says otherwise.
type small struct {
	mu    sync.Mutex
	all   []*body
	last  int
	asked []string // requests that change anything, a line each
	left  int      // how many more of these it carries out; below zero: all
	least int      // the fewest containers of web that ran at once, since it was set
	meet  int      // workers run until this many run at once, and a while longer; 0: they end immediately
	most  int      // the most workers that ran at once
	// stops that named a signal or a time, instead of using the container's own
	otherwise []string
	disks     map[string]*disk
	held      map[string]bool   // addresses whose release the engine has forgotten
	net       string            // the subnet of the network front; empty: there is none
	config    map[string]string // the IPAM configuration of front
	nets      int               // how many networks it has had
	makes     string            // the subnet with which Compose makes front
	gate      string            // the gateway with which Compose makes front; empty: the engine's choice
	fails     map[string]int    // exit codes, by hash, SERVICE/NUMBER or "drain"; "stop SERVICE": it does not stop
}

// body is a container of a small engine.
type body struct {
	ID, Name  string
	Labels    map[string]string
	Addresses map[string]string // as configured, by network
	Shares    string            // "container:ID"
	Mounts    []mounted
	Running   bool
	ExitCode  int
	looks     int // how often a running worker was inspected
}

func (b *body) service() string { return b.Labels["com.docker.compose.service"] }

// title names a container in the tests: SERVICE/NUMBER, with a + if it is set beside another one.
func (b *body) title() string {
	beside := ""
	if _, aside := (&scene.Container{Name: b.Name}).Ought(); aside {
		beside = "+"
	}
	return b.service() + "/" + b.Labels["com.docker.compose.container-number"] + beside
}

var apiVersion = regexp.MustCompile(`^/v[0-9.]+`)

// ServeHTTP implements http.Handler.
func (e *small) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e.mu.Lock()
	defer e.mu.Unlock()
	words := strings.Split(strings.Trim(apiVersion.ReplaceAllString(r.URL.Path, ""), "/"), "/")
	if r.Method == http.MethodGet && words[0] == "_ping" {
		w.Header().Set("Api-Version", "1.41")
		return
	}
	if r.Method != http.MethodGet {
		if e.left == 0 {
			e.halfway(r, words)
			reply(w, http.StatusInternalServerError, map[string]string{"message": "the deploy was killed"})
			return
		}
		e.left--
		defer e.count()
	}
	switch words[0] {
	case "exec":
		e.exec(w, r)
	case "images":
		reply(w, http.StatusOK, map[string]any{"Id": "sha256:ee"})
	case "containers":
		e.containers(w, r, words[1:])
	case "volumes":
		e.volumes(w, r, words[1:])
	case "networks":
		e.networks(w, r, words[1:])
	default:
		reply(w, http.StatusNotFound, map[string]string{"message": "there is no " + r.URL.Path})
	}
}

func reply(w http.ResponseWriter, status int, answer any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(answer) // fails if the client is gone
}

// count updates least with the number of web containers that run.
func (e *small) count() {
	run := 0
	for _, b := range e.all {
		if b.Running && b.service() == "web" {
			run++
		}
	}
	e.least = min(e.least, run)
}

func (e *small) say(format string, args ...any) {
	e.asked = append(e.asked, fmt.Sprintf(format, args...))
}

func (e *small) containers(w http.ResponseWriter, r *http.Request, words []string) {
	if len(words) == 1 && words[0] == "json" {
		all := []map[string]any{}
		filtered := strings.Contains(r.URL.Query().Get("filters"), `"network"`)
		for _, b := range e.all {
			if _, on := b.Addresses["front"]; filtered && !on {
				continue
			}
			if b.fits(r.URL.Query().Get("filters")) {
				all = append(all, b.listed())
			}
		}
		reply(w, http.StatusOK, all)
		return
	}
	if words[0] == "create" {
		e.create(w, r)
		return
	}
	i := slices.IndexFunc(e.all, func(b *body) bool { return b.ID == words[0] })
	if i < 0 {
		reply(w, http.StatusNotFound, map[string]string{"message": "no such container: " + words[0]})
		return
	}
	b := e.all[i]
	switch verb := r.Method + " " + strings.Join(words[1:], "/"); verb {
	case "GET json":
		e.worked(b)
		reply(w, http.StatusOK, e.shown(b))
	case "GET logs":
	case "GET archive", "PUT archive":
		e.archive(w, r, b)
	case "POST stop":
		if e.fails["stop "+b.service()] != 0 {
			reply(w, http.StatusInternalServerError, map[string]string{"message": "it does not stop"})
			return
		}
		e.say("stop %s", b.title())
		if r.URL.RawQuery != "" || r.ContentLength > 0 {
			e.otherwise = append(e.otherwise, b.title()+" "+r.URL.RawQuery)
		}
		b.Running = false
		w.WriteHeader(http.StatusNoContent)
	case "POST start":
		if why := e.refuses(b); why != "" {
			reply(w, http.StatusInternalServerError, map[string]string{"message": why})
			return
		}
		e.say("start %s", b.title())
		b.ExitCode = cmp.Or(e.fails[b.Labels["com.docker.compose.config-hash"]], e.fails[b.title()])
		if b.works() && !e.runs("db") {
			b.ExitCode = 5
		}
		b.Running = b.ExitCode == 0 && !b.works() || b.works() && e.meet > 0
		e.meets()
		w.WriteHeader(http.StatusNoContent)
	case "POST rename":
		name := r.URL.Query().Get("name")
		e.say("rename %s", b.title())
		b.Name = name
		w.WriteHeader(http.StatusNoContent)
	case "POST exec":
		e.say("drain %s", b.title())
		reply(w, http.StatusCreated, map[string]string{"Id": "x" + b.ID})
	case "DELETE ":
		e.say("remove %s", b.title())
		e.all = slices.Delete(e.all, i, i+1)
		w.WriteHeader(http.StatusNoContent)
	default:
		reply(w, http.StatusNotFound, map[string]string{"message": verb})
	}
}

// refuses says why a container cannot start: its address is in use, or the container it shares with does not run.
func (e *small) refuses(b *body) string {
	shares := false
	for _, other := range e.all {
		for network, addr := range b.Addresses {
			if other != b && other.Running && other.Addresses[network] == addr {
				return other.title() + " has its address " + addr
			}
		}
		shares = shares || other.Running && b.Shares == "container:"+other.ID
	}
	if e.held[b.Addresses["front"]] {
		return "its address is held by a container that is gone"
	}
	if b.Shares != "" && !shares {
		return "what it shares does not run"
	}
	return ""
}

// runs tells whether a container of a service runs.
func (e *small) runs(service string) bool {
	return slices.ContainsFunc(e.all, func(b *body) bool { return b.Running && b.service() == service })
}

func (e *small) shown(b *body) map[string]any {
	state := map[string]any{"Status": "exited", "ExitCode": b.ExitCode}
	if b.Running {
		state["Status"] = "running"
	}
	if e.fails["sick "+b.Labels["com.docker.compose.config-hash"]] != 0 {
		state["Health"] = map[string]any{"Status": "unhealthy"}
	}
	networks := map[string]any{}
	for network, addr := range b.Addresses {
		on := map[string]any{"IPAMConfig": map[string]string{"IPv4Address": addr}}
		if b.Running {
			on["IPAddress"] = addr
		}
		networks[network] = on
	}
	return map[string]any{"Id": b.ID, "Name": "/" + b.Name, "Image": "sha256:ee", "State": state,
		"Config":     map[string]any{"Labels": b.Labels, "Image": "web:1"},
		"HostConfig": map[string]any{"NetworkMode": b.Shares},
		"Mounts": append(b.unnamed(), map[string]string{"Type": "volume", "Name": "shop_data", "Source": "/vol/data",
			"Destination": "/data"}),
		"NetworkSettings": map[string]any{"Networks": networks}}
}

// networks answers requests about the network front. It removes front only when no container is on it.
func (e *small) networks(w http.ResponseWriter, r *http.Request, words []string) {
	id := fmt.Sprintf("n%d", e.nets)
	on := func(b *body) bool { _, is := b.Addresses["front"]; return is }
	switch {
	case e.net == "" || words[0] != "front" && words[0] != id:
		reply(w, http.StatusNotFound, map[string]string{"message": "no such network: " + words[0]})
	case r.Method == http.MethodGet:
		reply(w, http.StatusOK, map[string]any{"Id": id, "Name": "front", "Driver": "bridge",
			"Labels": map[string]string{"com.docker.compose.project": "shop"},
			"IPAM":   map[string]any{"Driver": "berth", "Config": []any{e.config}}})
	case r.Method == http.MethodDelete:
		for _, b := range e.all {
			if on(b) {
				reply(w, http.StatusForbidden, map[string]string{"message": b.title() + " is on it"})
				return
			}
		}
		e.say("no network %s", e.net)
		e.net = ""
		w.WriteHeader(http.StatusNoContent)
	default:
		var says struct {
			Container      string
			EndpointConfig struct{ IPAMConfig struct{ IPv4Address string } }
		}
		_ = json.NewDecoder(r.Body).Decode(&says) // bad JSON names no container
		for _, b := range e.all {
			if b.ID == says.Container && words[1] == "connect" {
				b.Addresses["front"] = says.EndpointConfig.IPAMConfig.IPv4Address
				e.say("return %s", b.title())
			} else if b.ID == says.Container {
				delete(b.Addresses, "front")
				e.say("leave %s", b.title())
			}
		}
		w.WriteHeader(http.StatusOK)
	}
}

func (e *small) create(w http.ResponseWriter, r *http.Request) {
	var says struct {
		Labels     map[string]string
		HostConfig struct {
			NetworkMode string
			Mounts      []mounted
		}
		NetworkingConfig struct {
			EndpointsConfig map[string]struct{ IPAMConfig struct{ IPv4Address string } }
		}
	}
	text, _ := io.ReadAll(r.Body)
	if err := json.Unmarshal(text, &says); err != nil {
		reply(w, http.StatusBadRequest, map[string]string{"message": err.Error()})
		return
	}
	name := r.URL.Query().Get("name")
	if slices.ContainsFunc(e.all, func(b *body) bool { return b.Name == name }) {
		reply(w, http.StatusConflict, map[string]string{"message": "the name " + name + " is in use"})
		return
	}
	e.last++
	b := &body{ID: fmt.Sprintf("%064x", 0xc0ffee0000+e.last), Name: name, Labels: says.Labels,
		Shares: says.HostConfig.NetworkMode, Mounts: says.HostConfig.Mounts, Addresses: map[string]string{}}
	for network, on := range says.NetworkingConfig.EndpointsConfig {
		if e.net == "" && e.makes != "" {
			e.net = e.makes
			e.config = map[string]string{"Subnet": e.net, "Gateway": e.gate}
			e.nets++
			e.say("network %s", e.net)
		}
		b.Addresses[network] = on.IPAMConfig.IPv4Address
		for _, other := range e.all {
			if other.Running && other.Addresses[network] == b.Addresses[network] {
				e.say("TWICE %s", b.Addresses[network])
			}
		}
	}
	e.fill(b)
	e.all = append(e.all, b)
	e.say("make %s", b.title())
	reply(w, http.StatusCreated, map[string]string{"Id": b.ID})
}

// exec acts as a command in a container that prints nothing and ends.
func (e *small) exec(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		reply(w, http.StatusOK, map[string]any{"Running": false, "ExitCode": e.fails["drain"]})
		return
	}
	_, _ = io.Copy(io.Discard, r.Body) // unread input would break the connection
	line, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer line.Close()
	_, _ = io.WriteString(line, "HTTP/1.1 101 UPGRADED\r\nContent-Type: application/vnd.docker.raw-stream\r\n"+
		"Connection: Upgrade\r\nUpgrade: tcp\r\n\r\n")
	if e.fails["hang"] != 0 { // until the client gives up
		_, _ = io.Copy(io.Discard, line)
	}
}

// has lists the containers, sorted: the title, the hash of the configuration, and whether it runs.
func (e *small) has() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	var all []string
	for _, b := range e.all {
		state := "stopped"
		if b.Running {
			state = "runs"
		}
		hash, _, _ := strings.Cut(b.Labels["com.docker.compose.config-hash"], "@")
		all = append(all, fmt.Sprintf("%s %s %s", b.title(), hash, state))
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

// takes returns the requests since its last call.
func (e *small) takes() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	asked := e.asked
	e.asked = nil
	return asked
}

// serve lets the engine answer on a socket, and returns the tools of a deploy for it.
func (e *small) serve(t *testing.T) (*scene.Engine, *single.Maker) {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "e")
	l, err := net.Listen("unix", socket)
	fine(t, err)
	server := &http.Server{Handler: e}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close() })
	engine, err := scene.Open("unix://" + socket)
	fine(t, err)
	t.Cleanup(func() { _ = engine.Close() })
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", socket)
	}
	return engine, &single.Maker{Command: single.Command{Words: []string{"compose"}, Project: "shop"}, Dial: dial}
}

// fine ends a test on an error.
func fine(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
