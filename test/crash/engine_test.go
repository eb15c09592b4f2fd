package crash

import (
	"encoding/json"
	"net"
	"net/http"
	"path/filepath"
	"strings"

	"berth/test/lab"
)

// engine answers like a Docker Engine with one network and a container for each address that a ledger's callers
// hold.
type engine struct {
	l       *ledger
	network object
}

type object = map[string]any

const apiVersion = "1.44"

// startEngine starts an engine on a socket until the test ends, and returns its URL.
func startEngine(l *ledger, subnet, gateway string) (url string) {
	l.t.Helper()
	socket := filepath.Join(l.dir, "engine.sock")
	listener, err := net.Listen("unix", socket)
	lab.Must(l.t, err)
	e := &engine{l: l, network: object{"Id": "the-network", "Name": "lan", "Scope": "local", "Driver": "bridge",
		"IPAM": object{"Driver": "berth", "Options": object{"network": "lan"},
			"Config": []object{{"Subnet": subnet, "Gateway": gateway}}}}}
	server := &http.Server{Handler: e}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.Serve(listener)
	}()
	l.t.Cleanup(func() {
		_ = server.Close()
		<-ended
	})
	return "unix://" + socket
}

// ServeHTTP implements http.Handler.
func (e *engine) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Api-Version", apiVersion)
	var answer any
	switch strings.TrimPrefix(r.URL.Path, "/v"+apiVersion) {
	case "/_ping":
		return
	case "/events": // there are none
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		return
	case "/info":
		answer = object{"ID": "engine-" + filepath.Base(e.l.dir)}
	case "/networks":
		answer = []object{e.network}
	case "/networks/the-network":
		answer = e.network
	case "/containers/json":
		answer = e.containers()
	default:
		w.WriteHeader(http.StatusNotFound)
		answer = object{"message": "page not found"}
	}
	_ = json.NewEncoder(w).Encode(answer) // the client may have left
}

// containers are the running containers.
func (e *engine) containers() []object {
	all := []object{}
	for addr, le := range e.l.running() {
		id := strings.ReplaceAll(le.mac, ":", "")
		endpoint := object{"NetworkID": "the-network", "EndpointID": "end-" + id, "MacAddress": le.mac,
			"IPAddress": addr, "IPPrefixLen": 22}
		all = append(all, object{"Id": id, "Names": []string{"/c" + id}, "State": "running", "Labels": object{},
			"NetworkSettings": object{"Networks": object{"lan": endpoint}}})
	}
	return all
}

// running are the addresses that callers of this ledger's daemon have.
func (l *ledger) running() map[string]*lease {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := map[string]*lease{}
	for addr, le := range l.holder {
		if le.pool == l.pools[0].id {
			all[addr] = le
		}
	}
	return all
}
