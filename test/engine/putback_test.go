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
	"strings"
	"testing"
	"time"

	"berth/test/lab"
)

var putBackContainers = flag.Int("putback.containers", 0, "how many containers TestPutBack restarts at once")

// home is the time in which each of several containers must have its own address again after the last start.
const home = 2 * time.Second

// If containers start at once, Berth cannot tell which one asks. Soon after, it moves those with a reservation to
// their own addresses. With --put-back all it moves all others, too, with all their settings. With --put-back off it
// moves none, unless their network has another mode.
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
			for range crowdRounds() {
				p.together(p.all, "restart", "--time", "0")
				if mode != "off" {
					p.home(lab.Patient(home))
				}
			}
			events := p.berth("events", "--verb", "lease.put_back", "--last", "10000", "--format", "json")
			if mode == "off" && events != "" {
				t.Errorf("none was to be put back:\n%s", events)
			}
			if mode == "off" { // the network's own mode has priority
				p.berth("network", "modify", p.plan, "--put-back", "reserved")
				p.together(p.all, "restart", "--time", "0")
				p.home(lab.Patient(home))
			}
			p.whole(mode != "all")
			p.sound()
		})
	}
}

// A daemon that is killed while it moves containers leaves none off its network: after its restart it reconnects them.
func TestPutBackKilled(t *testing.T) {
	t.Parallel()
	e := engineOf(t, 176)
	p := startPutBack(t, e, way{name: "all", flags: []string{"--docker-host", e.URL(), "--put-back", "all",
		"--check-repair", "--check-every", "1s", "--check-grace", "1s"}}, 173) // releases get lost when the daemon dies
	d := p.Berth.(*Daemon)
	for range sample(0, 2, 50) {
		p.together(p.all, "restart", "--time", "0")
		p.noted(d)
		time.Sleep(time.Duration(rand.IntN(300)) * time.Millisecond) // meanwhile it moves the container
		lab.Must(t, d.Kill(), d.Revive())
		p.follows()
		lab.Await(t, 20*time.Second, func() error {
			for _, c := range p.all {
				if ep, err := p.Engine.Endpoint(c, p.network); err != nil || ep.IPAddress == "" {
					return fmt.Errorf("%s is off its network: %v", c, err)
				}
			}
			return nil
		})
		p.whole(false)
	}
	p.sound()
}

// noted waits until a container is about to be disconnected, or, by chance, all have their own addresses.
func (p *putBack) noted(d *Daemon) {
	p.Helper()
	_ = lab.Eventually(3*time.Second, func() error {
		text, err := os.ReadFile(filepath.Join(d.state(), "put-back.json"))
		if err == nil && !strings.Contains(string(text), p.network) {
			err = errors.New("none is noted")
		}
		return err
	})
}

// putBack is a network with containers that have their own settings there.
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

func (p *putBack) reserve() {
	p.Helper()
	for c, addr := range p.has {
		p.berth("reservation", "add", p.plan, "--owner", c, "--ip", addr)
	}
}

// home waits until each container has its own address.
func (p *putBack) home(within time.Duration) {
	p.Helper()
	lab.Check(p, lab.Eventually(within, func() error {
		for _, c := range p.all {
			if ep, err := p.Engine.Endpoint(c, p.network); err != nil || ep.IPAddress != p.has[c] {
				return fmt.Errorf("%s has %s and not %s: %v", c, ep.IPAddress, p.has[c], err)
			}
		}
		return nil
	}))
}

// whole checks that each container has its alias, and requests an address only if one is reserved for it.
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

// composeExample is the first example of docs/compose.md, on addresses of the test.
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

// The first example of docs/compose.md ends with a clean check. Two replicas start at once, and the override file can
// give neither of them an address. A moment later each has its reserved one.
func TestComposeExample(t *testing.T) {
	t.Parallel()
	k := startKept(t, machineEngine, pluginDir, ways(machineEngine)[0], 178)
	planned := k.plan("--subnet", k.v4("128/25")+",gateway="+k.v4("129")+",pool="+k.span(140, 199), "--subnet",
		k.v6("/64")+",pool")
	p := k.newProject(composeExample, map[string]string{"planned": planned, "db": k.v4("200"), "v4": k.v4("128/25"),
		"v6": k.v6("/64")})
	p.command = oldest(t)
	p.override()
	for range crowdRounds() {
		p.run("up", "--detach", "--force-recreate", "--timeout", "1")
		k.sound()
	}
}
