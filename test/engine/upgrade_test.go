//go:build engine

package engine

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The data of a managed plugin lives on through `docker plugin upgrade`: the leases, what Berth remembers of owners, and the
// pool ids that the engine has stored (invariant 5).
func TestPluginUpgrade(t *testing.T) {
	r := registry(t)
	newer := filepath.Join(base, "bin", "berth-newer")
	if err := buildBerth(newer, "test-2"); err != nil {
		t.Fatal(err)
	}
	repository := r.Addr + "/" + prefix + "upgraded"
	for tag, program := range map[string]string{"v1": binary, "v2": newer} {
		if err := publishPlugin(machineEngine, repository+":"+tag, program); err != nil {
			t.Fatal(err)
		}
	}
	p, err := installPlugin(machineEngine, repository+":v1", prefix+"upgraded:latest", binary)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := removePlugins(machineEngine); err != nil {
			t.Error(err)
		}
	})
	h := enter(t, machineEngine, p, 90)

	n := h.network("--subnet", h.v4("0/24"), "--ip-range", h.v4("64/26"))
	stays := h.container(n)
	staysAt := h.address(stays, n)
	const mac = "02:62:74:00:00:02"
	returns := h.name()
	if err := h.Engine.CreateWithMAC(returns, n, mac); err != nil {
		t.Fatal(err)
	}
	h.docker("start", returns)
	returnsAt := h.address(returns, n)
	h.docker("stop", returns)
	leasesBefore := h.leases(h.v4("0/24"))

	if err := p.Disable(); err != nil {
		t.Fatal(err)
	}
	if err := p.Upgrade(repository + ":v2"); err != nil {
		t.Fatal(err)
	}
	if err := p.Enable(); err != nil {
		t.Fatal(err)
	}
	if v := daemonVersion(t, p); !strings.Contains(v, "test-2") {
		t.Errorf("after the upgrade the daemon is %q", v)
	}

	if got := h.leases(h.v4("0/24")); len(got) != len(leasesBefore) {
		t.Errorf("before the upgrade Berth had %+v, now %+v", leasesBefore, got)
	}
	if a := h.address(stays, n); a != staysAt {
		t.Errorf("the container that ran on had %s and has %s", staysAt, a)
	}
	if a := h.address(h.container(n), n); a == staysAt || a == returnsAt {
		t.Errorf("a new container got %s, which is another's", a)
	}
	h.docker("start", returns)
	if a := h.address(returns, n); a != returnsAt {
		t.Errorf("the container with a MAC of its own had %s and has %s", returnsAt, a)
	}
}

// daemonVersion asks a Berth for the version of its daemon.
func daemonVersion(t *testing.T, b Berth) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	out, err := run(ctx, nil, binary, "--admin-socket", b.AdminSocket(), "version")
	if err != nil {
		t.Fatal(err)
	}
	return out
}
