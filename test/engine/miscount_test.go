//go:build engine

package engine

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// An engine that miscounts keeps a network. The scenario that met it does not fail for it, the next run names it and
// passes over it, and what is made then is made beside it.
func TestMiscounted(t *testing.T) { // alone: it has other names for a while
	d := daemon(t, "counted", pluginDir)
	const number = 159
	before := counting
	counting = before / 10 // this engine does not count it however long it is waited for
	defer func() { counting = before }()
	earlier, err := removeNetworks(machineEngine, mark) // what it really keeps, since runs before this one
	if err != nil {
		t.Fatal(err)
	}
	h := enter(t, machineEngine, d, number)
	kept := h.network("--subnet", h.v4("0/24"))
	c := h.container(kept)
	h.address(c, kept)
	if err := removeNetwork(machineEngine, kept); err == nil || errors.Is(err, errMiscounted) ||
		!strings.Contains(err.Error(), c) {
		t.Errorf("a network with a container on it: %v", err)
	}

	h.Engine = keeping(t, machineEngine, kept)
	defer func() { h.Engine = machineEngine }()
	if err := h.leave(); err != nil {
		t.Errorf("the engine keeps the network of a scenario that is over: %v", err)
	}
	left, err := removeNetworks(h.Engine, mark)
	want := append(earlier, kept)
	slices.Sort(left)
	slices.Sort(want)
	if err != nil || !slices.Equal(left, want) {
		t.Errorf("left behind are %v (%v), not %v", left, err, want)
	}

	here, byte2 := prefix, octet
	defer func() { prefix, octet = here, byte2 }()
	if prefix, octet, err = siteBeside(left); err != nil || prefix == here || octet == byte2 {
		t.Fatalf("beside %v the names begin with %s, and the addresses with 10.%d (%v)", left, prefix, octet, err)
	}
	t.Run("beside it", func(t *testing.T) {
		h := enter(t, machineEngine, d, number)
		n := h.network("--subnet", h.v4("0/24"))
		h.address(h.container(n), n)
	})
}

// Each run that leaves something has the next ones elsewhere, until a person starts the engine anew.
func TestSiteBeside(t *testing.T) {
	t.Parallel()
	var left []string
	for i := range sites {
		begin, byte2, err := siteBeside(left)
		if err != nil || byte2 != firstOctet+i {
			t.Fatalf("beside %v: %s, 10.%d (%v)", left, begin, byte2, err)
		}
		for _, name := range []string{begin + "41-1", begin + "demo"} {
			if other, byte3, err := siteBeside(append(slices.Clone(left), name)); other == begin || byte3 == byte2 &&
				err == nil {
				t.Errorf("beside %s: %s, 10.%d", name, other, byte3)
			}
		}
		left = append(left, begin+"41-1")
	}
	if _, _, err := siteBeside(left); err == nil || !strings.Contains(err.Error(), "restart docker") ||
		!strings.Contains(err.Error(), left[0]) {
		t.Errorf("beside %v: %v", left, err)
	}
}

// keeping is an engine as one that miscounts the endpoints of a network.
func keeping(t *testing.T, e Engine, network string) Engine {
	t.Helper()
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", e.Socket)
	}
	proxy := &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.Out.URL.Scheme, r.Out.URL.Host = "http", "docker" },
		Transport: &http.Transport{DialContext: dial},
	}
	server := &http.Server{ReadHeaderTimeout: time.Minute,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodDelete || !strings.HasSuffix(r.URL.Path, "/networks/"+network) {
				proxy.ServeHTTP(w, r)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprintf(w, `{"message":"error while removing network: network %s id 0 has active endpoints"}`, network)
		})}
	socket := filepath.Join(t.TempDir(), "docker.sock")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = server.Serve(l) }() // its error is that it was closed
	t.Cleanup(func() { _ = server.Close() })
	return Engine{Socket: socket}
}
