package docker

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var must = ipamtest.Must

// object is a JSON object.
type object = map[string]any

// fakeEngine answers like Docker Engine 20.10.24 on a unix socket, and records the requests.
type fakeEngine struct {
	t    *testing.T
	path string

	mu         sync.Mutex
	id         string
	firewall   string
	version    string // of its API
	networks   []object
	containers []object
	plugins    map[string]string         // names by id
	configs    map[string]object         // HostConfig of containers, by id
	ask        func(method, path string) // called before each answer
	refuse     string                    // paths that contain this get an error
	requests   []string
	streams    map[chan string]bool
	server     *http.Server
	stopped    chan struct{}
}

// newFakeEngine starts a fake engine.
func newFakeEngine(t *testing.T) *fakeEngine {
	t.Helper()
	f := &fakeEngine{t: t, path: filepath.Join(t.TempDir(), "docker.sock"), id: "AAAA:BBBB", version: "1.41",
		plugins: map[string]string{}, configs: map[string]object{}, streams: map[chan string]bool{}}
	f.start()
	t.Cleanup(f.stop)
	return f
}

// start starts the engine, also after stop.
func (f *fakeEngine) start() {
	f.t.Helper()
	l, err := net.Listen("unix", f.path)
	must(f.t, err)
	f.mu.Lock()
	f.server, f.stopped = &http.Server{Handler: http.HandlerFunc(f.serve)}, make(chan struct{})
	server, stopped := f.server, f.stopped
	f.mu.Unlock()
	go func() {
		defer close(stopped)
		_ = server.Serve(l)
	}()
}

// stop ends the engine and all its connections, like a crash. A second stop does nothing.
func (f *fakeEngine) stop() {
	f.mu.Lock()
	server, stopped := f.server, f.stopped
	f.mu.Unlock()
	_ = server.Close()
	<-stopped
}

// open returns an Engine that reads it.
func (f *fakeEngine) open() *Engine {
	f.t.Helper()
	e, err := Open("unix://" + f.path)
	must(f.t, err)
	f.t.Cleanup(func() { must(f.t, e.Close()) })
	return e
}

func (f *fakeEngine) serve(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	f.requests = append(f.requests, r.Method+" "+r.URL.Path)
	ask, version, refuse := f.ask, f.version, f.refuse
	f.mu.Unlock()
	if ask != nil {
		ask(r.Method, r.URL.Path)
	}
	w.Header().Set("Api-Version", version)
	w.Header().Set("Content-Type", "application/json")
	call, known := strings.CutPrefix(r.URL.Path, "/v"+version)
	switch {
	case r.URL.Path == "/_ping":
		w.Header().Set("Content-Type", "text/plain")
		return
	case !known:
		reply(w, http.StatusBadRequest,
			object{"message": "client version is too new. Maximum supported API version is " + version})
	case refuse != "" && strings.Contains(call, refuse):
		reply(w, http.StatusInternalServerError, object{"message": "it hurts"})
	case call == "/events":
		f.stream(w, r)
	default:
		f.answer(w, call, listedIDs(r))
	}
}

// listedIDs returns the containers in the filter of a list; nil: all.
func listedIDs(r *http.Request) map[string]bool {
	var filters struct {
		ID map[string]bool `json:"id"`
	}
	_ = json.Unmarshal([]byte(r.URL.Query().Get("filters")), &filters)
	return filters.ID
}

func (f *fakeEngine) answer(w http.ResponseWriter, call string, ids map[string]bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	dir, name := path.Split(call)
	switch {
	case call == "/info":
		reply(w, http.StatusOK, object{"ID": f.id, "FirewallBackend": object{"Driver": f.firewall}})
	case call == "/networks":
		reply(w, http.StatusOK, f.networks)
	case call == "/containers/json":
		listed := slices.Clone(f.containers)
		if ids != nil {
			listed = slices.DeleteFunc(listed, func(c object) bool { return !ids[c["Id"].(string)] })
		}
		reply(w, http.StatusOK, listed)
	case strings.HasPrefix(dir, "/containers/") && name == "json" && f.configs[path.Base(dir)] != nil:
		reply(w, http.StatusOK, object{"Id": path.Base(dir), "HostConfig": f.configs[path.Base(dir)],
			"Config": object{"ExposedPorts": object{"53/udp": object{}}}})
	case dir == "/networks/":
		i := slices.IndexFunc(f.networks, func(n object) bool { return n["Id"] == name || n["Name"] == name })
		if i < 0 {
			reply(w, http.StatusNotFound, object{"message": "network " + name + " not found"})
			return
		}
		reply(w, http.StatusOK, f.networks[i])
	case strings.HasPrefix(dir, "/plugins/") && f.plugins[path.Base(dir)] != "":
		reply(w, http.StatusOK, object{"Id": path.Base(dir), "Name": f.plugins[path.Base(dir)]})
	default:
		reply(w, http.StatusNotFound, object{"message": "page not found"})
	}
}

func reply(w http.ResponseWriter, code int, body any) {
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body)
}

// stream serves the events.
func (f *fakeEngine) stream(w http.ResponseWriter, r *http.Request) {
	ch := make(chan string, 16)
	f.mu.Lock()
	f.streams[ch] = true
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.streams, ch)
	}()
	_ = http.NewResponseController(w).Flush()
	for {
		select {
		case <-r.Context().Done():
			return
		case e := <-ch:
			if e == "" {
				return
			}
			_, _ = fmt.Fprintln(w, e)
			_ = http.NewResponseController(w).Flush()
		}
	}
}

// breakOff ends the event streams, but not the engine.
func (f *fakeEngine) breakOff() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for ch := range f.streams {
		ch <- ""
	}
}

// happen sends an event to all streams.
func (f *fakeEngine) happen(kind, action string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for ch := range f.streams {
		ch <- fmt.Sprintf(`{"Type":%q,"Action":%q,"Actor":{"ID":"x"}}`, kind, action)
	}
}

// tell sends an event of a container that happened some time ago.
func (f *fakeEngine) tell(action, id string, ago time.Duration, attributes object) {
	f.mu.Lock()
	defer f.mu.Unlock()
	text, err := json.Marshal(object{"Type": "container", "Action": action, "timeNano": time.Now().Add(-ago).UnixNano(),
		"Actor": object{"ID": id, "Attributes": attributes}})
	must(f.t, err)
	for ch := range f.streams {
		ch <- string(text)
	}
}

// tellNetwork sends an event of a container that was connected or disconnected.
func (f *fakeEngine) tellNetwork(action, network, id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	text, err := json.Marshal(object{"Type": "network", "Action": action, "timeNano": time.Now().UnixNano(),
		"Actor": object{"ID": network, "Attributes": object{"container": id}}})
	must(f.t, err)
	for ch := range f.streams {
		ch <- string(text)
	}
}

// follows reports whether somebody follows the events.
func (f *fakeEngine) follows() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.streams) > 0
}

// asked returns the requests since its last call, without API versions.
func (f *fakeEngine) asked() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := f.requests
	f.requests = nil
	for i := range all {
		all[i] = strings.Replace(all[i], "/v"+f.version, "", 1)
	}
	return all
}

// set makes the engine run what a view has.
func (f *fakeEngine) set(view ipam.EngineView) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.networks, f.containers = []object{}, []object{}
	byID := map[string]ipam.EngineNetwork{}
	endpoints := map[string]object{}
	for _, n := range view.Networks {
		byID[n.ID], endpoints[n.ID] = n, object{}
	}
	for _, c := range view.Containers {
		settings := object{}
		for _, ep := range c.Endpoints {
			settings[byID[ep.Network].Name] = endpointSettings(ep)
			if ep.ID != "" {
				endpoints[ep.Network][c.ID] = endpointResource(c.Name, ep)
			}
		}
		if c.ID == "" {
			continue
		}
		labels := object{}
		if c.Project != "" {
			labels = object{LabelProject: c.Project, LabelService: c.Service, LabelNumber: fmt.Sprint(c.Number)}
		}
		f.containers = append(f.containers,
			object{"Id": c.ID, "Names": []string{"/" + c.Name}, "State": c.State, "Labels": labels,
				"NetworkSettings": object{"Networks": settings}})
	}
	for _, n := range view.Networks {
		f.networks = append(f.networks, networkObject(n, endpoints[n.ID]))
	}
}

func networkObject(n ipam.EngineNetwork, endpoints object) object {
	scope := "local"
	if n.Swarm {
		scope = "swarm"
	}
	var config []object
	for _, sub := range n.Subnets {
		c := object{"Subnet": sub.CIDR.String()}
		if sub.Range.IsValid() {
			c["IPRange"] = sub.Range.String()
		}
		if sub.Gateway.IsValid() {
			c["Gateway"] = sub.Gateway.String()
		}
		if sub.Aux != nil {
			c["AuxiliaryAddresses"] = sub.Aux
		}
		config = append(config, c)
	}
	return object{"Id": n.ID, "Name": n.Name, "Scope": scope, "Driver": "bridge", "ConfigOnly": false,
		"Containers": endpoints,
		"IPAM":       object{"Driver": n.Driver, "Options": n.Options, "Config": config}}
}

func endpointSettings(ep ipam.EngineEndpoint) object {
	s := object{"IPAMConfig": nil, "NetworkID": ep.Network, "EndpointID": ep.ID, "Gateway": "", "IPAddress": "",
		"GlobalIPv6Address": "", "MacAddress": ep.MAC.String()}
	wanted := object{}
	for _, addr := range ep.Wanted {
		wanted[map[bool]string{true: "IPv4Address", false: "IPv6Address"}[addr.Is4()]] = addr.String()
	}
	if len(wanted) > 0 {
		s["IPAMConfig"] = wanted
	}
	for _, addr := range ep.Addresses {
		s[map[bool]string{true: "IPAddress", false: "GlobalIPv6Address"}[addr.Is4()]] = addr.String()
	}
	return s
}

func endpointResource(name string, ep ipam.EngineEndpoint) object {
	r := object{"Name": name, "EndpointID": ep.ID, "MacAddress": ep.MAC.String(), "IPv4Address": "", "IPv6Address": ""}
	for _, addr := range ep.Addresses {
		r[map[bool]string{true: "IPv4Address", false: "IPv6Address"}[addr.Is4()]] = fmt.Sprintf("%s/%d", addr,
			addr.BitLen()-8)
	}
	return r
}
