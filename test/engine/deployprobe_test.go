//go:build engine

package engine

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"berth/test/ground"
)

var deployProbes = flag.Int("deploy-probes", 0, "how many probes TestDeployProbed has at least in each order")

const probedFile = `
version: "3.9"
x-berth: {update: {order: ${order}, max_in_flight: ${flight}, watch: 1s-60s, canary_watch: 1s-60s}}
services:
  web:
    image: ${image}
    command: ["sh", "-c", "trap 'exit 0' TERM; busybox mkdir /www; echo here >/www/index.html; busybox httpd -f -h /www & wait"]
    environment: {ROUND: "${round}"}
    healthcheck: {test: ["CMD", "busybox", "wget", "-q", "-O", "-", "http://127.0.0.1/"], interval: 1s, timeout: 5s, retries: 20}
    networks: [front]
    deploy: {replicas: 3}
networks:
  front:
    name: ${project}
    driver_opts: {com.docker.network.bridge.name: "${bridge}"}
    ipam: {driver: "${driver}", options: {network: "${planned}"}, config: [{subnet: "${subnet}"}]}
`

// Three replicas behind a probe each 20 ms. Exchanged one after the other, or two at once, never more than these are
// away, and each keeps its address. With start-first none is ever away, and each ends with the second address, which is
// reserved for it alone (BD-8, BO-13). Afterwards `up` makes nothing anew.
func TestDeployProbed(t *testing.T) {
	eachGeneration(t, newer, "probed", enterPlanned, 221, probed)
}

func probed(h *House, command []string) {
	planned := h.plan("--subnet", h.v4("0/28")+",pool")
	round := 0
	says := func(order, flight string) map[string]string {
		round++
		return map[string]string{"planned": planned, "subnet": h.v4("0/28"), "order": order, "flight": flight,
			"round": fmt.Sprint(round)}
	}
	p := h.newProject(probedFile, says("stop-first", "1"))
	p.command = command
	p.deploys()
	for i, c := range []struct {
		order, flight string
		most          int // away at once
	}{{"stop-first", "2", 2}, {"start-first", "1", 0}, {"stop-first", "1", 1}, {"start-first", "3", 0}} {
		if i > 1 && testing.Short() {
			break
		}
		before := p.replicas(3)
		b := newProbe(p)
		for more := true; more; more = b.count() < sample(*deployProbes, 60, 300) {
			p.write(probedFile, says(c.order, c.flight))
			p.deploys()
		}
		probes, fewest := b.end()
		p.Logf("%s, %s in flight: %d probes, at least %d of 3 answered each", c.order, c.flight, probes, fewest)
		if fewest < 3-c.most {
			p.Errorf("%s, %s in flight: once %d of 3 answered", c.order, c.flight, fewest)
		}
		after := p.replicas(3)
		for i := range after {
			if moved := before[i] != after[i]; moved && c.order == "stop-first" {
				p.Errorf("web %d had %s, and has %s", i+1, before[i], after[i])
			}
			if all := p.reserved(planned, fmt.Sprintf("%s/web/%d", p.name, i+1)); !slices.Equal(all, after[i:i+1]) {
				p.Errorf("web %d has %s, and reserved for it is %v", i+1, after[i], all)
			}
		}
		p.plans(0)
		ids := p.ids()
		p.run("up", "--detach")
		if again := p.ids(); !slices.Equal(again, ids) || len(ids) != 3 {
			p.Errorf("`up` makes %v of %v", again, ids)
		}
	}
	// The network goes with the house, which knows of engines that miscount its endpoints after so many exchanges.
	p.run("rm", "--stop", "--force")
	p.berth("compose", "-f", p.files[0], "-p", p.name, "--ipam-driver", p.Berth.Driver(), "--release")
}

// replicas are the addresses of the replicas of web, in order, each of which has the name that Compose gives it.
func (p *project) replicas(count int) (all []string) {
	p.Helper()
	for n := 1; n <= count; n++ {
		id := p.containerOf("web", n)
		name := strings.TrimPrefix(p.docker("inspect", "--format", "{{.Name}}", id), "/")
		if strings.ReplaceAll(name, "_", "-") != fmt.Sprintf("%s-web-%d", p.name, n) {
			p.Errorf("web %d is called %s", n, name)
		}
		all = append(all, p.at(id, p.name))
	}
	return all
}

// probe asks all addresses of a project's pool each 20 ms, and counts those that answer at one moment.
type probe struct {
	stop   chan struct{}
	done   sync.WaitGroup
	asked  atomic.Int64
	mu     sync.Mutex
	fewest int
}

func newProbe(p *project) *probe {
	b := &probe{stop: make(chan struct{}), fewest: 1 << 10}
	var all []string
	for n := 1; n <= 14; n++ {
		all = append(all, net.JoinHostPort(p.v4(fmt.Sprint(n)), "80"))
	}
	b.done.Go(func() {
		again := time.NewTicker(20 * time.Millisecond)
		defer again.Stop()
		for {
			select {
			case <-b.stop:
				return
			case <-again.C:
				b.done.Go(func() { b.ask(all) })
			}
		}
	})
	return b
}

// moment is how long a probe takes at most that tells how things are at one time: half of what an exchange has the new
// container answer before the old one ends. On a busy machine one may ask the new one too early, and the old one too
// late.
const moment = 500 * time.Millisecond

// ask asks all addresses at once.
func (b *probe) ask(all []string) {
	begun := time.Now()
	// What is there answers within milliseconds; the bound is for a machine that is busy.
	ctx, cancel := context.WithTimeout(context.Background(), ground.Patient(2*time.Second))
	defer cancel()
	var answered, late atomic.Int64
	var asking sync.WaitGroup
	for _, addr := range all {
		asking.Go(func() {
			asked := time.Since(begun)
			err := answers(ctx, addr)
			switch {
			case err == nil:
				answered.Add(1)
			case errors.Is(err, syscall.EHOSTUNREACH): // as the kernel says some time after it was asked
			case asked > moment, ctx.Err() == nil && time.Since(begun) > moment:
				late.Add(1)
			}
		})
	}
	asking.Wait()
	if late.Load() > 0 {
		return
	}
	b.asked.Add(1)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fewest = min(b.fewest, int(answered.Load()))
}

// answers asks one address for its page.
func answers(ctx context.Context, addr string) error {
	var d net.Dialer
	line, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	defer line.Close()
	if until, ok := ctx.Deadline(); ok {
		_ = line.SetDeadline(until) // a line that takes none fails below
	}
	_, _ = io.WriteString(line, "GET / HTTP/1.0\r\n\r\n")
	said, err := io.ReadAll(line)
	if err == nil && !strings.HasSuffix(string(said), "here\n") {
		err = fmt.Errorf("%s says %q", addr, said)
	}
	return err
}

func (b *probe) count() int { return int(b.asked.Load()) }

func (b *probe) end() (probes, fewest int) {
	close(b.stop)
	b.done.Wait()
	return b.count(), b.fewest
}

const sharedFile = `
version: "3.9"
services:
  web: {image: ${image}, command: ${run}, networks: [front], deploy: {replicas: 2}}
networks:
  front: {external: true, name: "${front}"}
`

// Two deploys begin at once for the last two addresses of a network: exactly one has them, and the other one is
// refused, with nothing made (BD-4). A replica of it that is removed by hand, in the midst, comes back with its address
// (BO-2).
func TestDeployLast(t *testing.T) {
	eachGeneration(t, older, "last", enterPlanned, 223, lastTwo)
}

func lastTwo(h *House, command []string) {
	planned := h.plan("--subnet", h.v4("0/24")+",gateway="+h.v4("254"))
	h.berth("pool", "add", planned, h.span(10, 11))
	front := h.network("--ipam-opt", "network="+planned, "--subnet", h.v4("0/24"))
	var all [2]*project
	var said [2]string
	var codes [2]int
	var both sync.WaitGroup
	for i := range all {
		all[i] = h.newProject(sharedFile, map[string]string{"front": front})
		all[i].command = command
		all[i].flags = []string{"--network", "front=" + planned}
		both.Go(func() { said[i], codes[i] = all[i].deploy("apply", "--yes") })
	}
	both.Wait()
	if !slices.Equal(slices.Sorted(slices.Values(codes[:])), []int{0, 1}) {
		h.Fatalf("of two deploys for two addresses one ends with %d, the other with %d:\n%s\n%s", codes[0], codes[1],
			said[0], said[1])
	}
	has, refused := all[slices.Index(codes[:], 0)], all[slices.Index(codes[:], 1)]
	if left := refused.ids(); len(left) > 0 {
		h.Errorf("what was refused has made %v", left)
	}
	before := []string{has.at(has.containerOf("web", 1), front), has.at(has.containerOf("web", 2), front)}
	slices.Sort(before)
	if want := []string{h.v4("10"), h.v4("11")}; !slices.Equal(before, want) {
		h.Errorf("the one that succeeds has %v, and not %v", before, want)
	}
	first := has.at(has.containerOf("web", 1), front)
	second := has.containerOf("web", 2)
	has.docker("rm", "--force", has.containerOf("web", 1))
	has.plans(2, "1 to create", "1 to keep")
	has.deploys()
	if now := has.at(has.containerOf("web", 1), front); now != first || has.containerOf("web", 2) != second {
		h.Errorf("web 1 had %s and has %s", first, now)
	}
	for _, p := range all {
		p.run("down", "--timeout", "1")
	}
	h.berth("compose", "-f", has.files[0], "-p", has.name, "--ipam-driver", h.Berth.Driver(), "--release")
}
