//go:build engine

package engine

import (
	"net/http"
	"slices"
	"sync"
	"testing"

	"berth/test/lab"
)

// engine.md, leak 1: if the IPv6 address of a start is refused, the engine never releases the IPv4 one.
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

// engine.md, leaks 2 and 4: the engine cannot read the answer, or the connection breaks before it. Berth has already
// given the address.
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
		if h.address(c, n) != leaked[0] { // it is the same container, which Berth can know by the engine's word
			h.heals("unused_lease " + leaked[0])
		}
		h.finds()
		h.docker("rm", "-f", c)
		if now := h.leased(); !slices.Equal(now, held) {
			t.Errorf("%v were in use, now %v", held, now)
		}
	}
	h.address(running, n)
}

// engine.md, leak 3: while Berth is down, the engine drops each release after 15 seconds: releases of containers'
// addresses and of the pools of removed Docker networks, planned or not.
func TestLeakWhileDown(t *testing.T) {
	t.Parallel()
	h, d := witnessed(t, 48)
	front := h.plan("--subnet", h.v4("128/26")+",pool")
	kept, own, planned := h.network("--subnet", h.v4("0/26")), h.network("--subnet", h.v4("64/26")), h.on(front)
	c, stays := h.container(kept), h.container(kept)
	a := h.address(c, kept)
	lab.Must(t, d.Stop())
	var wg sync.WaitGroup
	for _, args := range [][]string{{"rm", "-f", c}, {"network", "rm", own}, {"network", "rm", planned}} {
		wg.Go(func() { h.docker(args...) })
	}
	wg.Wait()
	lab.Must(t, d.Revive())
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
