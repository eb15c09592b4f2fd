package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"
)

// object is one of JSON.
type object = map[string]any

// scriptEngine stands in for a Docker Engine in a script. It tells what the script says that runs, and changes nothing.
type scriptEngine struct {
	path string

	mu         sync.Mutex
	plugin     string // the id of a managed plugin
	networks   []object
	containers []object
	changed    chan struct{} // closed at each change
	server     *http.Server
	ended      chan struct{}
}

type engineKey struct{}

// engine is the command of scripts:
//
//	engine start [PLUGIN-ID]                                     answers on $WORK/engine.sock; the plugin is called example/berth:1.0
//	engine stop
//	engine network NAME SUBNET GATEWAY [DRIVER [KEY=VALUE...]]   has a network
//	engine run NETWORK NAME ADDRESS MAC [PROJECT/SERVICE/N]      has a container
//	engine rm NAME                                               has neither a container nor a network of that name
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
	case "rm":
		e.remove(rest(1)[0])
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

// stop ends what is under way, too. One that does not run stays so.
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

// change makes one, and tells those who follow the events.
func (e *scriptEngine) change(fn func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	fn()
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
	e.change(func() {
		e.networks = append(e.networks, object{"Id": "net-" + args[0], "Name": args[0], "Scope": "local", "Driver": "bridge", "Containers": object{},
			"IPAM": object{"Driver": cmp.Or(args[3], "plugin"), "Options": options, "Config": []object{{"Subnet": args[1], "Gateway": args[2]}}}})
	})
}

func (e *scriptEngine) run(args []string) {
	labels := object{}
	if parts := strings.Split(args[4], "/"); len(parts) == 3 {
		labels = object{"com.docker.compose.project": parts[0], "com.docker.compose.service": parts[1], "com.docker.compose.container-number": parts[2]}
	}
	endpoint := object{"NetworkID": "net-" + args[0], "EndpointID": "end-" + args[1], "MacAddress": args[3], "IPAddress": args[2], "IPPrefixLen": 24}
	e.change(func() {
		e.containers = append(e.containers, object{"Id": "id-" + args[1], "Names": []string{"/" + args[1]}, "State": "running", "Labels": labels,
			"NetworkSettings": object{"Networks": object{args[0]: endpoint}}})
		for _, n := range e.networks {
			if n["Name"] == args[0] {
				n["Containers"].(object)["id-"+args[1]] = object{"Name": args[1], "EndpointID": "end-" + args[1], "MacAddress": args[3], "IPv4Address": args[2] + "/24"}
			}
		}
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

const engineVersion = "1.44" // of its API

// ServeHTTP implements http.Handler.
func (e *scriptEngine) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Api-Version", engineVersion)
	call := strings.TrimPrefix(r.URL.Path, "/v"+engineVersion)
	if call == "/events" {
		e.events(w, r)
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	var answer any
	switch dir, name := path.Split(call); {
	case call == "/_ping":
		return
	case call == "/info":
		answer = object{"ID": "the-engine"}
	case call == "/networks":
		answer = append([]object{}, e.networks...)
	case call == "/containers/json":
		answer = append([]object{}, e.containers...)
	case e.plugin != "" && call == "/plugins/"+e.plugin+"/json":
		answer = object{"Id": e.plugin, "Name": "example/berth:1.0"}
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
	_ = json.NewEncoder(w).Encode(answer) // who does not read it any more has gone
}

// events tells of each change until the asker or the engine ends.
func (e *scriptEngine) events(w http.ResponseWriter, r *http.Request) {
	for {
		e.mu.Lock()
		changed := e.changed
		e.mu.Unlock()
		w.(http.Flusher).Flush()
		select {
		case <-r.Context().Done():
			return
		case <-changed:
			fmt.Fprintln(w, `{"Type":"container","Action":"start","Actor":{"ID":"x"}}`)
		}
	}
}
