package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// object is a JSON object.
type object = map[string]any

// scriptEngine stands in for a Docker Engine in a script. It reports the containers that the script runs, and
// disconnects them from their networks and connects them again.
type scriptEngine struct {
	path string

	mu         sync.Mutex
	plugin     string // the id of a managed plugin
	networks   []object
	containers []object
	starting   string        // the container that is being started
	changed    chan struct{} // closed at each change
	last       string        // the event of a change
	told       []string      // all events
	server     *http.Server
	ended      chan struct{}
}

type engineKey struct{}

// engine is the command of scripts:
//
//	engine start [PLUGIN-ID]                                     on $WORK/engine.sock; plugin example/berth:1.0
//	engine stop
//	engine network NAME SUBNET GATEWAY [DRIVER [KEY=VALUE...]]   adds a network; the second time, another subnet of it
//	engine run NETWORK NAME ADDRESS MAC [PROJECT/SERVICE/N [ID]] adds a container
//	engine create NETWORK NAME [PROJECT/SERVICE/N]               adds a container that is not started, and reports it
//	engine starts [NAME]                                         begins a start (inspect waits); no NAME: ends it
//	engine destroy NAME                                          removes a container, and reports it
//	engine rm NAME                                               removes the container and the network of that name
func engine(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: engine start|stop|network|run|rm ...")
	}
	e := ts.Value(engineKey{}).(*scriptEngine)
	rest := func(least int) []string {
		if len(args) < least+1 {
			ts.Fatalf("engine %s takes %d arguments", args[0], least)
		}
		return append(args[1:], "", "")
	}
	switch args[0] {
	case "start":
		ts.Check(e.start(rest(0)[0]))
	case "stop":
		e.stop()
	case "network":
		e.addNetwork(rest(3))
	case "run":
		e.run(rest(4))
	case "create":
		e.create(rest(2))
	case "rm":
		e.remove(rest(1)[0])
	case "starts":
		e.change(func() { e.starting = rest(0)[0] })
	case "destroy":
		e.destroy(rest(1)[0])
	default:
		ts.Fatalf("engine %s is nothing", args[0])
	}
}

func (e *scriptEngine) start(plugin string) error {
	l, err := net.Listen("unix", e.path)
	if err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.plugin = plugin
	e.server, e.ended = &http.Server{Handler: e}, make(chan struct{})
	go func(server *http.Server, ended chan struct{}) {
		defer close(ended)
		_ = server.Serve(l)
	}(e.server, e.ended)
	return nil
}

// stop also ends running requests. It does nothing if the engine does not run.
func (e *scriptEngine) stop() {
	e.mu.Lock()
	server, ended := e.server, e.ended
	e.server = nil
	e.mu.Unlock()
	if server != nil {
		_ = server.Close()
		<-ended
	}
}

// change makes a change, and sends its event to those who follow the events.
func (e *scriptEngine) change(fn func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.last = `{"Type":"container","Action":"start","Actor":{"ID":"x"}}`
	fn()
	e.told = append(e.told, e.last)
	close(e.changed)
	e.changed = make(chan struct{})
}

func (e *scriptEngine) addNetwork(args []string) {
	options := object{}
	for _, option := range args[min(4, len(args)):] {
		if key, value, ok := strings.Cut(option, "="); ok {
			options[key] = value
		}
	}
	config := object{"Subnet": args[1], "Gateway": args[2]}
	e.change(func() {
		for _, n := range e.networks {
			if in := n["IPAM"].(object); n["Name"] == args[0] {
				in["Config"] = append(in["Config"].([]object), config)
				return
			}
		}
		e.networks = append(e.networks,
			object{"Id": "net-" + args[0], "Name": args[0], "Scope": "local", "Driver": "bridge",
				"Containers": object{},
				"IPAM": object{"Driver": cmp.Or(args[3], "plugin"), "Options": options,
					"Config": []object{config}}})
	})
}

func (e *scriptEngine) run(args []string) {
	labels := labelsOf(args[4])
	id := cmp.Or(args[5], "id-"+args[1])
	endpoint := object{"NetworkID": "net-" + args[0], "EndpointID": "end-" + args[1], "MacAddress": args[3],
		"IPAddress": args[2], "IPPrefixLen": 24}
	e.change(func() {
		e.containers = append(e.containers,
			object{"Id": id, "Names": []string{"/" + args[1]}, "State": "running", "Labels": labels,
				"NetworkSettings": object{"Networks": object{args[0]: endpoint}}})
		for _, n := range e.networks {
			if n["Name"] == args[0] {
				n["Containers"].(object)[id] = object{"Name": args[1], "EndpointID": "end-" + args[1],
					"MacAddress": args[3], "IPv4Address": args[2] + "/24"}
			}
		}
	})
}

// labelsOf are the labels that Compose gives a replica PROJECT/SERVICE/N, or none.
func labelsOf(replica string) object {
	labels := object{}
	if parts := strings.Split(replica, "/"); len(parts) == 3 {
		labels = object{"com.docker.compose.project": parts[0], "com.docker.compose.service": parts[1],
			"com.docker.compose.container-number": parts[2]}
	}
	return labels
}

// tellOf sets the event of a container, dated a moment ago. As in an engine, the attributes hold the labels.
func (e *scriptEngine) tellOf(action, name string, labels object) {
	attributes := object{"name": name}
	maps.Copy(attributes, labels)
	text, _ := json.Marshal(object{"Type": "container", "Action": action,
		"timeNano": time.Now().Add(-time.Millisecond).UnixNano(),
		"Actor":    object{"ID": "id-" + name, "Attributes": attributes}})
	e.last = string(text)
}

// create reports a container a little after it was made, as an engine does.
func (e *scriptEngine) create(args []string) {
	endpoint := object{"NetworkID": "net-" + args[0], "EndpointID": "", "MacAddress": "", "IPAddress": ""}
	e.change(func() {
		e.containers = append(e.containers,
			object{"Id": "id-" + args[1], "Names": []string{"/" + args[1]}, "State": "created",
				"Labels":          labelsOf(args[2]),
				"NetworkSettings": object{"Networks": object{args[0]: endpoint}}})
		e.tellOf("create", args[1], labelsOf(args[2]))
	})
}

// destroy removes a container and reports it.
func (e *scriptEngine) destroy(name string) {
	e.change(func() {
		for _, n := range e.networks {
			delete(n["Containers"].(object), "id-"+name)
		}
		e.containers = slices.DeleteFunc(e.containers, func(c object) bool {
			if c["Id"] == "id-"+name {
				e.tellOf("destroy", name, c["Labels"].(object))
			}
			return c["Id"] == "id-"+name
		})
	})
}

func (e *scriptEngine) remove(name string) {
	e.change(func() {
		e.networks = slices.DeleteFunc(e.networks, func(n object) bool {
			delete(n["Containers"].(object), "id-"+name)
			return n["Name"] == name
		})
		e.containers = slices.DeleteFunc(e.containers, func(c object) bool { return c["Id"] == "id-"+name })
	})
}

// awaitStart delays the inspection of a container while it is being started.
func (e *scriptEngine) awaitStart(r *http.Request, call string) {
	for {
		e.mu.Lock()
		waits, changed := e.starting != "" && call == "/containers/id-"+e.starting+"/json", e.changed
		e.mu.Unlock()
		if !waits {
			return
		}
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		}
	}
}

const engineVersion = "1.44" // of its API

// ServeHTTP implements http.Handler.
func (e *scriptEngine) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Api-Version", engineVersion)
	call := strings.TrimPrefix(r.URL.Path, "/v"+engineVersion)
	if call == "/events" {
		e.events(w, r)
		return
	}
	e.awaitStart(r, call)
	e.mu.Lock()
	defer e.mu.Unlock()
	var answer any
	switch dir, name := path.Split(call); {
	case call == "/_ping":
		return
	case call == "/info":
		answer = object{"ID": "the-engine", "ServerVersion": "20.10.24"}
	case call == "/networks":
		answer = append([]object{}, e.networks...)
	case call == "/containers/json":
		answer = append([]object{}, e.containers...)
	case e.plugin != "" && call == "/plugins/"+e.plugin+"/json":
		answer = object{"Id": e.plugin, "Name": "example/berth:1.0"}
	case strings.HasPrefix(call, "/containers/"):
		answer = e.inspected(w, path.Base(path.Dir(call)))
	case r.Method == http.MethodPost && strings.HasPrefix(call, "/networks/"):
		answer = e.place(r, path.Base(path.Dir(call)), name == "connect")
	case dir == "/networks/":
		i := slices.IndexFunc(e.networks, func(n object) bool { return n["Id"] == name || n["Name"] == name })
		if i < 0 {
			w.WriteHeader(http.StatusNotFound)
			answer = object{"message": "network " + name + " not found"}
			break
		}
		answer = e.networks[i]
	default:
		w.WriteHeader(http.StatusNotFound)
		answer = object{"message": "page not found"}
	}
	_ = json.NewEncoder(w).Encode(answer) // a client that does not read any more has gone
}

// inspected is a single container as the engine shows it.
func (e *scriptEngine) inspected(w http.ResponseWriter, id string) object {
	i := slices.IndexFunc(e.containers, func(c object) bool { return c["Id"] == id })
	if i < 0 {
		w.WriteHeader(http.StatusNotFound)
		return object{"message": "no such container"}
	}
	c := e.containers[i]
	return object{"Id": id, "Name": c["Names"].([]string)[0], "State": object{"Running": true}, "HostConfig": object{},
		"Config": object{"Labels": c["Labels"]}, "NetworkSettings": c["NetworkSettings"]}
}

// place connects a container to a network, with the address it requests or the last of the subnet, or disconnects
// it.
func (e *scriptEngine) place(r *http.Request, network string, on bool) object {
	var body struct {
		Container      string
		EndpointConfig object
	}
	_ = json.NewDecoder(r.Body).Decode(&body) // the script notices a bad body
	n := e.networks[slices.IndexFunc(e.networks, func(n object) bool { return n["Name"] == network })]
	c := e.containers[slices.IndexFunc(e.containers, func(c object) bool { return c["Id"] == body.Container })]
	places := c["NetworkSettings"].(object)["Networks"].(object)
	delete(places, network)
	delete(n["Containers"].(object), body.Container)
	if !on {
		return object{}
	}
	settings, endpoint := body.EndpointConfig, "end-"+strings.TrimPrefix(body.Container, "id-")
	settings["NetworkID"], settings["EndpointID"], settings["IPAddress"] = n["Id"], endpoint, "10.8.0.99"
	if asked, _ := settings["IPAMConfig"].(object); asked != nil {
		settings["IPAddress"] = asked["IPv4Address"]
	}
	places[network] = settings
	n["Containers"].(object)[body.Container] = object{"EndpointID": endpoint}
	return object{}
}

// events reports each change until the client or the engine ends.
func (e *scriptEngine) events(w http.ResponseWriter, r *http.Request) {
	e.mu.Lock()
	said := len(e.told)
	e.mu.Unlock()
	for {
		e.mu.Lock()
		changed, news := e.changed, e.told[said:]
		e.mu.Unlock()
		for _, text := range news {
			fmt.Fprintln(w, text)
		}
		said += len(news)
		w.(http.Flusher).Flush()
		select {
		case <-r.Context().Done():
			return
		case <-changed:
		}
	}
}
