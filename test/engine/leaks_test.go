//go:build engine

package engine

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"berth/test/ground"
)

// engine.md, leak 1: of a start that is refused its IPv6 address, the engine never gives the IPv4 one back.
func TestLeakDualStack(t *testing.T) {
	t.Parallel()
	h, _ := witnessed(t, 46)
	n := h.network("--ipv6", "--subnet", h.v4("0/24"), "--subnet", h.v6("::/64"), "--ip-range", h.v6("::8/127"),
		"--gateway", h.v6("::1"))
	running := []string{h.container(n), h.container(n)}
	held := h.leased()
	refused := h.name()
	h.refused([]string{h.v6("::8")}, containerCommand(refused, n)...)
	h.refused([]string{h.v6("::8")}, "start", refused)
	var leaked []string
	for _, a := range h.leased() {
		if !slices.Contains(held, a) {
			leaked = append(leaked, "unused_lease "+a)
		}
	}
	if len(leaked) != 2 {
		t.Fatalf("two starts were refused; before them %v were in use, now %v", held, h.leased())
	}
	h.shape(h.finds(leaked...).Findings[0], refused)
	h.heals(leaked...)
	if now := h.leased(); !slices.Equal(now, held) {
		t.Errorf("before the leaks %v were in use, now %v", held, now)
	}
	for _, c := range running {
		h.address(c, n)
	}
	h.docker("rm", "-f", running[0])
	h.docker("start", refused)
	h.address(refused, n)
	h.finds()
}

// shape checks what a finding is made of.
func (h *House) shape(f Finding, words ...string) {
	h.Helper()
	out, err := berth(h.Berth, "check", "--format", "json")
	if err == nil {
		h.Error("berth check ends well, and leaves something")
	}
	var r struct{ Findings []map[string]any }
	if err := json.Unmarshal([]byte(out), &r); err != nil || len(r.Findings) == 0 {
		h.Fatalf("berth check --format json: %v: %s", err, out)
	}
	for _, key := range []string{"kind", "address", "network", "host", "seen", "repairable"} {
		if _, there := r.Findings[0][key]; !there {
			h.Errorf("a finding has no %s: %s", key, out)
		}
	}
	if f.Network == "" || f.Host == "" {
		h.Errorf("%+v", f)
	}
	text, err := berth(h.Berth, "check")
	if err == nil || !strings.Contains(text, f.Kind) || !strings.Contains(text, f.at()) {
		h.Errorf("berth check: %s (%v)", text, err)
	}
}

// engine.md, leaks 2 and 4: an answer that the engine cannot read, and a connection that breaks before the answer is
// there, each when Berth has given the address already.
func TestLeakOfAnswers(t *testing.T) {
	t.Parallel()
	h, r := relayed(t, machineEngine, pluginDir, 47)
	n := h.network("--subnet", h.v4("0/24"))
	running := h.container(n)
	held := h.leased()
	for name, spoilt := range map[string]func(http.ResponseWriter, []byte){"unreadable": unreadable,
		"broken off": brokenOff} {
		r.Spoil(spoilt)
		c := h.name()
		h.refused(nil, containerCommand(c, n)...)
		leaked := slices.DeleteFunc(h.leased(), func(a string) bool { return slices.Contains(held, a) })
		if len(leaked) != 1 {
			t.Fatalf("an answer that is %s: %v were in use, now %v", name, held, h.leased())
		}
		h.docker("start", c)
		other := h.address(c, n)
		if other == leaked[0] {
			t.Errorf("%s is leased to an endpoint that is gone, and given to %s", other, c)
		}
		h.heals("unused_lease " + leaked[0])
		h.docker("rm", "-f", c)
		if now := h.leased(); !slices.Equal(now, held) {
			t.Errorf("%v were in use, now %v", held, now)
		}
	}
	h.address(running, n)
}

// engine.md, leak 3: what the engine would give back while Berth is down, it drops after 15 seconds: a container's
// address, and the pools of Docker networks that are removed, on a planned network and on none.
func TestLeakWhileDown(t *testing.T) {
	t.Parallel()
	h, d := witnessed(t, 48)
	front := h.plan("--subnet", h.v4("128/26")+",pool")
	kept, own, planned := h.network("--subnet", h.v4("0/26")), h.network("--subnet", h.v4("64/26")), h.on(front)
	c, stays := h.container(kept), h.container(kept)
	a := h.address(c, kept)
	if err := d.Stop(); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for _, args := range [][]string{{"rm", "-f", c}, {"network", "rm", own}, {"network", "rm", planned}} {
		wg.Go(func() { h.docker(args...) })
	}
	wg.Wait()
	if err := d.Revive(); err != nil {
		t.Fatal(err)
	}
	before := h.leased()
	if !slices.Contains(before, a) || h.show(front).Docker != 1 {
		t.Fatalf("nothing leaked: %v, %+v", before, h.show(front))
	}
	h.heals("unused_lease "+a, "unused_subnet "+h.v4("64/26"), "unused_attachment "+h.v4("128/26"))
	if now := h.leased(); len(now) != len(before)-1 || slices.Contains(now, a) {
		t.Errorf("%v were in use, now %v", before, now)
	}
	if left := h.show(front); left.Docker != 0 || len(left.Subnets) != 1 {
		t.Errorf("its Docker network is gone, and the plan has %+v", left)
	}
	if l := h.lease(h.v4("65")); l.Kind != "" {
		t.Errorf("the gateway of a Docker network that is gone: %+v", l)
	}
	h.address(stays, kept)
	again := h.on(front)
	h.address(h.container(again), again)
	h.network("--subnet", h.v4("64/26")) // it is free again
	h.finds()
}

// A daemon that is told to puts right by itself what leaked, and says how much it found.
func TestLeakByItself(t *testing.T) {
	t.Parallel()
	h, d := witnessed(t, 49, "--check-every", "300ms", "--check-repair")
	n := h.network("--subnet", h.v4("0/24"))
	c := h.container(n)
	a := h.address(c, n)
	leaked, err := takeByHand(d.PluginSocket(), h.lease(a).Pool, "", "02:62:74:00:49:01")
	if err != nil {
		t.Fatal(err)
	}
	if err := ground.Eventually(20*time.Second, func() error {
		if l := h.lease(leaked); l.Kind != "" {
			return fmt.Errorf("%+v is still there", l)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	h.address(c, n)
	if log := d.Log(); !strings.Contains(log, "1 unused_lease") || !strings.Contains(log, "repaired: "+leaked) {
		t.Errorf("the daemon does not tell of it")
	}
	h.finds()
}

// engine.md, leak 5, and what a crash leaves: a node that was killed asks for its pool again, and never gives back what
// it had before. The attachment that is left, and the leases of it, are found and ended, and nothing of what runs.
func TestLeakOfSwarm(t *testing.T) {
	t.Parallel()
	e, h := swarm(t, 100, "BERTH_CHECK_GRACE=1s", askMAC)
	h.reads = []string{"--docker-host", e.URL(), "--ipam-driver", h.Berth.Driver()}
	n, service := h.overlay("--subnet", h.v4("0/24"))
	h.finds()
	_, before := h.bySpace()
	if err := e.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := e.Start(); err != nil {
		t.Fatal(err)
	}
	if err := h.Berth.Revive(); err != nil {
		t.Fatal(err)
	}
	h.taskAddresses(h.tasks(service, n, 2), n)
	global, _ := h.bySpace()
	left := []string{"unused_attachment " + h.v4("0/24")}
	for address, mac := range before {
		if mac != "" { // the gateway is the network's as before
			left = append(left, "unused_lease "+address)
		}
	}
	if len(left) != 4 { // two tasks and the load balancer
		t.Errorf("when it was killed, the node had %v", before)
	}
	h.heals(left...)
	h.taskAddresses(h.tasks(service, n, 2), n)
	if now, local := h.bySpace(); len(now) != len(global) || len(local) != len(before) {
		t.Errorf("the manager had %v and has %v, the node had %v and has %v", global, now, before, local)
	}
	// No attachment is left that would keep the subnet when the network is gone.
	h.removeOverlay(n, service)
	h.settles(func(global, local map[string]string) bool { return len(global) == 0 && len(local) == 0 },
		"the network is gone")
	h.finds()
}
