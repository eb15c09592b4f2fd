package main

import (
	"cmp"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"berth/internal/docker/dockertest"
	"berth/internal/ipam"

	"github.com/rogpeppe/go-internal/testscript"
)

// scriptEngine stands in for a Docker Engine in a script.
type scriptEngine struct {
	*dockertest.Engine

	mu       sync.Mutex
	starting string        // the container that is being started
	changed  chan struct{} // closed when that changes
}

type engineKey struct{}

func newScriptEngine(env *testscript.Env) *scriptEngine {
	e := &scriptEngine{Engine: dockertest.At(env.T().(testing.TB), env.WorkDir+"/engine.sock"),
		changed: make(chan struct{})}
	e.API, e.Release, e.Inspects, e.Ask = 44, "20.10.24", true, e.awaitStart
	return e
}

// engine is the command of scripts:
//
//	engine start [PLUGIN-ID]                                     on $WORK/engine.sock; plugin example/berth:1.0
//	engine other                                                 another engine, on $WORK/other.sock
//	engine stop
//	engine network NAME SUBNET GATEWAY [DRIVER [KEY=VALUE...]]   adds a network; the second time, another subnet of it
//	engine run NETWORK NAME ADDRESS MAC [PROJECT/SERVICE/N [ID]] adds a container
//	engine create NETWORK NAME [PROJECT/SERVICE/N]               adds a container that is not started, and reports it
//	engine starts [NAME]                                         begins a start (inspect waits); no NAME: ends it
//	engine destroy NAME                                          removes a container, and reports it
func engine(ts *testscript.TestScript, neg bool, args []string) {
	least := map[string]int{"start": 1, "other": 1, "stop": 1, "network": 4, "run": 5, "create": 3, "starts": 1, "destroy": 2}
	if neg || len(args) == 0 || least[args[0]] == 0 || len(args) < least[args[0]] {
		ts.Fatalf("usage: engine start|other|stop|network|run|create|starts|destroy ...")
	}
	e := ts.Value(engineKey{}).(*scriptEngine)
	verb, args := args[0], append(args[1:], "", "")
	switch verb {
	case "start":
		if args[0] != "" {
			e.Plugins[args[0]] = "example/berth:1.0"
		}
		e.Start()
		return
	case "other":
		other := dockertest.At(e.TB, ts.Getenv("WORK")+"/other.sock")
		other.API, other.Release, other.ID = e.API, e.Release, "CCCC:DDDD"
		other.Start()
		ts.Defer(other.Stop)
		return
	case "stop":
		e.stop()
		return
	case "create", "destroy":
		e.tells(verb, args)
		return
	case "network":
		e.network(args)
	case "run":
		c := containerOf(args[0], args[1], args[4])
		c.ID, c.State = cmp.Or(args[5], c.ID), "running"
		ep := &c.Endpoints[0]
		ep.ID, ep.Addresses = "end-"+args[1], []netip.Addr{netip.MustParseAddr(args[2])}
		ts.Check(ep.MAC.UnmarshalText([]byte(args[3])))
		e.Change(func(v *ipam.EngineView) { v.Containers = append(v.Containers, c) })
	case "starts":
		e.starts(args[0])
	}
	e.Happen("container", "start")
}

// starts begins the start of a container, or ends it.
func (e *scriptEngine) starts(name string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.starting = name
	close(e.changed)
	e.changed = make(chan struct{})
}

// awaitStart delays the inspection of a container while it is being started.
func (e *scriptEngine) awaitStart(_, path string) {
	for {
		e.mu.Lock()
		waits, changed := e.starting != "" && strings.HasSuffix(path, "/containers/id-"+e.starting+"/json"), e.changed
		e.mu.Unlock()
		if !waits {
			return
		}
		<-changed
	}
}

// stop also ends running requests. It does nothing if the engine does not run.
func (e *scriptEngine) stop() {
	e.starts("")
	e.Stop()
}

func (e *scriptEngine) network(args []string) {
	n := ipam.EngineNetwork{ID: "net-" + args[0], Name: args[0], Driver: cmp.Or(args[3], "plugin"),
		Options: map[string]string{}}
	for _, option := range args[4:] {
		if key, value, ok := strings.Cut(option, "="); ok {
			n.Options[key] = value
		}
	}
	sub := ipam.EngineSubnet{CIDR: netip.MustParsePrefix(args[1]), Gateway: netip.MustParseAddr(args[2])}
	e.Change(func(v *ipam.EngineView) {
		i := slices.IndexFunc(v.Networks, func(old ipam.EngineNetwork) bool { return old.ID == n.ID })
		if i < 0 {
			i, v.Networks = len(v.Networks), append(v.Networks, n)
		}
		v.Networks[i].Subnets = append(v.Networks[i].Subnets, sub)
	})
}

// containerOf returns a created container on a network. Compose's labels name a replica PROJECT/SERVICE/N.
func containerOf(network, name, replica string) ipam.EngineContainer {
	c := ipam.EngineContainer{ID: "id-" + name, Name: name, State: "created",
		Endpoints: []ipam.EngineEndpoint{{Network: "net-" + network}}}
	if parts := strings.Split(replica, "/"); len(parts) == 3 {
		c.Project, c.Service = parts[0], parts[1]
		c.Number, _ = strconv.Atoi(parts[2])
	}
	return c
}

// tells creates or destroys a container, and reports it a moment later. As in an engine, the event has the labels.
func (e *scriptEngine) tells(verb string, args []string) {
	var c ipam.EngineContainer
	e.Change(func(v *ipam.EngineView) {
		if verb == "create" {
			c = containerOf(args[0], args[1], args[2])
			v.Containers = append(v.Containers, c)
			return
		}
		i := slices.IndexFunc(v.Containers, func(c ipam.EngineContainer) bool { return c.Name == args[0] })
		c = v.Containers[i]
		v.Containers = slices.Delete(v.Containers, i, i+1)
	})
	attributes := dockertest.Labels(&c)
	attributes["name"] = c.Name
	e.Tell(verb, c.ID, time.Millisecond, attributes)
}
