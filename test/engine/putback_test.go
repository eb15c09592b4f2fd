//go:build engine

package engine

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"berth/test/ground"
)

var putBackContainers = flag.Int("putback.containers", 0, "how many containers TestPutBack restarts at once")

// home is how long after the last start of several each is to have its own address again.
const home = 2 * time.Second

// homeAfterBoot is the same after the first answer of an engine that starts.
const homeAfterBoot = 10 * time.Second

// Of containers that start at once nobody can tell which asks. Those with a reservation are put back to their own
// addresses soon after, and with --put-back all the others, too, with all their settings; and not with --put-back off,
// unless their network says so.
func TestPutBack(t *testing.T) {
	t.Parallel()
	e := engineOf(t, 165)
	for _, row := range []struct {
		name, mode string
		beside     bool // `berth witness` moves the containers
		number     int
	}{
		{"reserved", "reserved", false, 166},
		{"all", "all", false, 167},
		{"off", "off", false, 168},
		{"berth witness", "all", true, 169},
		{"berth witness, reserved", "reserved", true, 161},
	} {
		mode := row.mode
		t.Run(row.name, func(t *testing.T) {
			w := way{name: mode, flags: []string{"--docker-host", e.URL(), "--put-back", mode}}
			if row.beside {
				w = way{name: mode, flags: []string{"--docker-host", "none", "--put-back", mode}, beside: true,
					tells: []string{"--put-back", mode}}
			}
			p := startPutBack(t, e, w, row.number)
			if mode != "all" {
				p.reserve()
			}
			longest := time.Duration(0)
			for range crowdRounds() {
				p.together(p.all, "restart", "--time", "0")
				if mode == "off" {
					continue
				}
				began := time.Now()
				p.home(ground.Patient(home))
				longest = max(longest, time.Since(began))
			}
			t.Logf("all of %d were home %d ms after the last start at the latest", len(p.all), longest.Milliseconds())
			events := p.berth("events", "--verb", "lease.put_back", "--last", "10000", "--format", "json")
			if mode == "off" && events != "" {
				t.Errorf("none was to be put back:\n%s", events)
			}
			ms := cuts(events)
			t.Logf("%d were put back, and cut off for %s ms", len(ms), strings.Join(ms, ", "))
			if mode == "off" { // the network's own mode goes before
				p.berth("network", "modify", p.plan, "--put-back", "reserved")
				p.together(p.all, "restart", "--time", "0")
				p.home(ground.Patient(home))
			}
			p.whole(mode != "all")
			p.sound()
		})
	}
}

// An engine that starts gives containers the addresses of others, before anybody can ask it who they are. They are put
// back when it answers.
func TestPutBackBoots(t *testing.T) {
	t.Parallel()
	e := engineOf(t, 191)
	p := startPutBack(t, e, way{name: "all", flags: []string{"--docker-host", e.URL(), "--put-back", "all"}}, 192)
	p.docker(append([]string{"update", "--restart", "always"}, p.all...)...)
	for range crowdRounds() {
		if err := e.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := e.Start(); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		p.follows()
		p.home(homeAfterBoot)
		if t.Failed() {
			t.Fatalf("Berth's log:\n%s", tail(p.Berth.Log(), 60))
		}
		t.Logf("all of %d were home %d ms after the engine answered; %+v", len(p.all), time.Since(began).Milliseconds(),
			p.witness())
	}
	p.whole(false)
	p.sound()
}

// A daemon that is killed while it puts containers back leaves none off its network: the next one puts them on again.
func TestPutBackKilled(t *testing.T) {
	t.Parallel()
	e := engineOf(t, 176)
	p := startPutBack(t, e, way{name: "all", flags: []string{"--docker-host", e.URL(), "--put-back", "all",
		"--check-repair", "--check-every", "1s", "--check-grace", "1s"}}, 173) // releases go astray with the daemon
	d := p.Berth.(*Daemon)
	off := 0
	for range sample(0, 2, 50) {
		p.together(p.all, "restart", "--time", "0")
		p.noted(d)
		time.Sleep(time.Duration(rand.IntN(300)) * time.Millisecond) // in which it is taken off and put on
		if err := d.Kill(); err != nil {
			t.Fatal(err)
		}
		for _, c := range p.all {
			if ep, err := p.Engine.Endpoint(c, p.network); err != nil || ep.IPAddress == "" {
				off++
			}
		}
		if err := d.Revive(); err != nil {
			t.Fatal(err)
		}
		p.follows()
		if err := ground.Eventually(20*time.Second, func() error {
			for _, c := range p.all {
				if ep, err := p.Engine.Endpoint(c, p.network); err != nil || ep.IPAddress == "" {
					return fmt.Errorf("%s is off its network: %v", c, err)
				}
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		p.whole(false)
	}
	t.Logf("%d times a container was off its network when the daemon was killed", off)
	p.sound()
}

// noted waits until a container is about to be taken off its network, or all are right by chance.
func (p *putBack) noted(d *Daemon) {
	p.Helper()
	_ = ground.Eventually(3*time.Second, func() error {
		text, err := os.ReadFile(filepath.Join(d.state(), "put-back.json"))
		if err == nil && !strings.Contains(string(text), p.network) {
			err = errors.New("none is noted")
		}
		return err
	})
}

// putBack is a network with containers that have settings of their own there.
type putBack struct {
	*kept
	all  []string
	has  map[string]string // the address of each
	plan string
}

func startPutBack(t *testing.T, e *PrivateEngine, w way, number int) *putBack {
	t.Helper()
	p := &putBack{kept: startKept(t, e.Engine, e.Sockets, w, number), has: map[string]string{}}
	p.plan = p.kept.plan("--subnet", p.v4("128/25")+",gateway="+p.v4("129")+",pool="+p.span(130, 199))
	p.network = p.on(p.plan, "--subnet", p.v4("128/25"))
	for range cmp.Or(*putBackContainers, crowd()) {
		c := p.container(p.network, "--network-alias", "at-"+fmt.Sprint(len(p.all)))
		p.all = append(p.all, c)
		p.has[c] = p.at(c, p.network)
	}
	p.sound()
	return p
}

// cuts are for how many milliseconds each was cut off, by the events.
func cuts(events string) (all []string) {
	for _, found := range regexp.MustCompile(`cut off for (\d+) ms`).FindAllStringSubmatch(events, -1) {
		all = append(all, found[1])
	}
	return all
}

func (p *putBack) reserve() {
	p.Helper()
	for c, addr := range p.has {
		p.berth("reservation", "add", p.plan, "--owner", c, "--ip", addr)
	}
}

// home waits until each has its own address.
func (p *putBack) home(within time.Duration) {
	p.Helper()
	if err := ground.Eventually(within, func() error {
		for _, c := range p.all {
			if ep, err := p.Engine.Endpoint(c, p.network); err != nil || ep.IPAddress != p.has[c] {
				return fmt.Errorf("%s has %s and not %s: %v", c, ep.IPAddress, p.has[c], err)
			}
		}
		return nil
	}); err != nil {
		p.Error(err)
	}
}

// whole checks that each has its alias, and asks for an address only where one is reserved for it.
func (p *putBack) whole(asks bool) {
	p.Helper()
	for i, c := range p.all {
		aliases := p.docker("inspect", "-f", fmt.Sprintf("{{(index .NetworkSettings.Networks %q).Aliases}}", p.network), c)
		if !strings.Contains(aliases, fmt.Sprintf("at-%d", i)) {
			p.Errorf("%s has the aliases %s", c, aliases)
		}
		config := p.docker("inspect", "-f", fmt.Sprintf("{{(index .NetworkSettings.Networks %q).IPAMConfig}}", p.network), c)
		if strings.Contains(config, p.v4("")) && !asks {
			p.Errorf("%s asks for %s", c, config)
		}
	}
}

// composeExample is the first example of docs/compose.md, on addresses of the test's own.
const composeExample = `
version: "2.4"
services:
  web: {image: "${image}", command: ${run}, networks: [front]}
  db:
    image: "${image}"
    command: ${run}
    networks:
      front: {ipv4_address: "${db}"}
  worker: {image: "${image}", command: ${run}, scale: 2, networks: [front]}
networks:
  front:
    name: ${project}
    enable_ipv6: true
    driver_opts: {com.docker.network.bridge.name: "${bridge}"}
    ipam:
      driver: ${driver}
      options: {network: "${planned}"}
      config: [{subnet: "${v4}"}, {subnet: "${v6}"}]
`

// The first example of docs/compose.md ends with a clean check: two replicas that start at once, and of which the
// override file can give neither its address, have what is reserved for them a moment later.
func TestComposeExample(t *testing.T) {
	t.Parallel()
	k := startKept(t, machineEngine, pluginDir, ways(machineEngine)[0], 178)
	planned := k.plan("--subnet", k.v4("128/25")+",gateway="+k.v4("129")+",pool="+k.span(140, 199), "--subnet",
		k.v6("/64")+",pool")
	p := k.newProject(composeExample, map[string]string{"planned": planned, "db": k.v4("200"), "v4": k.v4("128/25"),
		"v6": k.v6("/64")})
	p.command = []string{"docker-compose"}
	p.override()
	for range crowdRounds() {
		p.run("up", "--detach", "--force-recreate", "--timeout", "1")
		k.sound()
	}
	p.run("down", "--timeout", "1")
	p.berth("compose", "-f", p.files[0], "-p", p.name, "--ipam-driver", p.Berth.Driver(), "--release")
}
