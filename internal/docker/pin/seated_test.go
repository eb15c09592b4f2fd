package pin

import (
	"encoding/json"
	"maps"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// seated is an engine with one container, web, that is on the network front and may be taken off it and put back.
type seated struct {
	t *testing.T

	mu      sync.Mutex
	version string
	running bool
	labels  object
	place   object   // its settings on front; nil: it is off
	refuse  []string // what the next connects are answered with; empty: they succeed
	deaf    int      // so many disconnects fail although they were made
	calls   []string
	socket  string
}

func newSeated(t *testing.T) *seated {
	t.Helper()
	e := &seated{t: t, version: "1.41", running: true, labels: object{},
		socket: filepath.Join(t.TempDir(), "docker.sock"), place: object{
			"IPAMConfig": object{"LinkLocalIPs": []string{"169.254.8.8"}}, "Aliases": []string{"foo", "aaaabbbbcccc"},
			"Links":      []string{"db:store"},
			"DriverOpts": object{"mode": "a b"}, "NetworkID": "n1", "EndpointID": "e1", "IPAddress": "10.9.0.5",
			"GlobalIPv6Address": "fd00:9::5",
			"MacAddress":        "02:42:00:00:00:01",
		}}
	l, err := net.Listen("unix", e.socket)
	must(t, err)
	server := &http.Server{Handler: e}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close(); <-ended })
	return e
}

func (e *seated) open() *Hand {
	e.t.Helper()
	h, err := OpenHand("unix://" + e.socket)
	must(e.t, err)
	e.t.Cleanup(h.Close)
	return h
}

const webID = "aaaabbbbccccddddeeeeffff0000111122223333444455556666777788889999"

func (e *seated) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e.mu.Lock()
	defer e.mu.Unlock()
	w.Header().Set("Api-Version", e.version)
	if r.URL.Path == "/_ping" {
		return
	}
	call := r.URL.Path[strings.Index(r.URL.Path[1:], "/")+1:]
	if r.Method == http.MethodPost {
		e.calls = append(e.calls, call)
	}
	var body struct {
		Container      string
		EndpointConfig object
	}
	_ = json.NewDecoder(r.Body).Decode(&body)
	switch {
	case call == "/containers/"+webID+"/json":
		answer(w, http.StatusOK, e.shown())
	case call == "/networks/front/disconnect" && body.Container == webID && e.place != nil:
		e.place = nil
		if e.deaf > 0 {
			e.deaf--
			answer(w, http.StatusInternalServerError, object{"message": "it hurts"})
			return
		}
		answer(w, http.StatusOK, object{})
	case call == "/networks/front/connect" && body.Container == webID && len(e.refuse) > 0:
		answer(w, http.StatusInternalServerError, object{"message": e.refuse[0]})
		e.refuse = e.refuse[1:]
	case call == "/networks/front/connect" && body.Container == webID && e.place == nil:
		e.connect(body.EndpointConfig)
		answer(w, http.StatusOK, object{})
	default:
		answer(w, http.StatusNotFound, object{"message": "no such thing"})
	}
}

func (e *seated) shown() object {
	networks := object{}
	if e.place != nil {
		networks["front"] = e.place
	}
	return object{"Id": webID, "Name": "/web", "State": object{"Running": e.running},
		"HostConfig":      object{"NetworkMode": "front"},
		"Config":          object{"Labels": e.labels, "MacAddress": "02:42:0a:09:00:77"},
		"NetworkSettings": object{"Networks": networks}}
}

// connect is what 20.10 makes of settings: it gives the address that is asked for, or another one.
func (e *seated) connect(settings object) {
	e.place = maps.Clone(settings)
	asked, _ := settings["IPAMConfig"].(object)
	if e.running {
		e.place["IPAddress"], e.place["EndpointID"] = "10.9.0.200", "e2"
		if four, ok := asked["IPv4Address"]; ok {
			e.place["IPAddress"] = four
		}
		if six, ok := asked["IPv6Address"]; ok {
			e.place["GlobalIPv6Address"] = six
		}
	}
	aliases, _ := settings["Aliases"].([]any)
	e.place["Aliases"] = append(aliases, "aaaabbbbcccc")
}
