package deploy_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"

	"berth/internal/ipam"
	"berth/store"
	"berth/test/still"

	"pgregory.net/rapid"
)

// TestPlanIsStill: for any files and any engine, a plan only reads from the engine and the compose command. It
// changes no byte in the store of addresses, and a second plan is the same.
func TestPlanIsStill(t *testing.T) {
	h := enter(t)
	h.plan("front", "10.8.0.0/24", "10.8.0.10+8")
	h.plan("dual", "10.9.0.0/24", "10.9.0.10+20", "fd00:9::/64", "fd00:9::10+20")
	codes := map[int]int{}
	projects := 0
	rapid.Check(t, func(rt *rapid.T) {
		seed := rapid.Uint64().Draw(rt, "seed")
		p := generated{Rand: rand.New(rand.NewPCG(seed, 0)), harness: h}
		file := h.file(p.files())
		h.engine.Containers = p.containers()
		for _, e := range p.reservations() {
			_, _ = h.service.Edit(context.Background(), ipam.EditOptions{}, e) // the address is somebody else's
		}
		defer h.edit(&ipam.ReleaseOwner{Owner: "shop", Under: true}, &ipam.ReleaseOwner{Owner: "box"})
		h.must(h.compose.Hashes(p.hashes()))
		before := h.stored()
		code, out, said := h.berth("plan", "--format", "json")
		again, outAgain, saidAgain := h.berth("plan", "--format", "json")
		if code != again || out != outAgain || said != saidAgain {
			rt.Errorf("the same plan is another one:\n%d %s%s\n%d %s%s", code, out, said, again, outAgain, saidAgain)
		}
		if (code == 1) != (out == "") || code > 2 {
			rt.Errorf("the exit code is %d, with:\n%s%s", code, out, said)
		}
		if writes := h.engine.Writes(); len(writes) > 0 || h.compose.Asked() != "" {
			rt.Errorf("it asked the engine %v and the compose command %s", writes, h.compose.Asked())
		}
		if h.stored() != before {
			rt.Errorf("the store has changed")
		}
		if rt.Failed() {
			rt.Logf("%s", file)
		}
		codes[code]++
		projects++
	})
	t.Logf("of %d projects %d had nothing to do, %d were refused, and %d had changes; %d requests to the engine", projects,
		codes[0], codes[1], codes[2], h.engine.Asked())
	if codes[1] == 0 || codes[2] == 0 {
		t.Errorf("the projects are all alike: %v", codes)
	}
}

// stored is a digest of all files of the daemon.
func (h *harness) stored() (sum [sha256.Size]byte) {
	h.Helper()
	digest := sha256.New()
	h.must(h.store.View(context.Background(), func(tx store.Tx) error {
		for r, err := range tx.Scan(store.Range{}) {
			if err != nil {
				return err
			}
			fmt.Fprintf(digest, "%q %q\n", r.Key, r.Value)
		}
		return nil
	}))
	digest.Sum(sum[:0])
	return sum
}

// generated is a random project.
type generated struct {
	*rand.Rand
	*harness
	services []said
}

type said struct {
	name     string
	scale    int
	on       []string
	own      string // its container_name
	hash     string
	addrs    []string
	dropped  bool
	replicas int // existing containers
}

func (g *generated) chance(percent int) bool { return g.IntN(100) < percent }

// static is an address of the front network, which may be taken, or an address outside the network.
func (g *generated) static() string {
	if g.chance(5) {
		return fmt.Sprintf("10.77.0.%d", g.IntN(20)+2)
	}
	return fmt.Sprintf("10.8.0.%d", g.IntN(40)+5)
}

// files draws the services, and writes them as a Compose file.
func (g *generated) files() string {
	var b strings.Builder
	if g.chance(30) {
		fmt.Fprintf(&b, "x-berth: {update: {canaries: %d, max_in_flight: %d%%}}\n", g.IntN(3), g.IntN(100)+1)
	}
	b.WriteString("services:\n")
	for i := range g.IntN(5) + 1 {
		s := said{name: fmt.Sprintf("s%d", i), scale: g.IntN(4), on: []string{"front"}, hash: fmt.Sprint("h", g.IntN(3))}
		if g.chance(30) {
			s.on = []string{"dual", "front"}[g.IntN(2):]
		}
		s.replicas = min(s.scale+g.IntN(2), 3)
		if i > 0 && g.chance(15) {
			s.dropped = true
			g.services = append(g.services, s)
			continue
		}
		g.service(&b, i, &s)
		g.services = append(g.services, s)
	}
	b.WriteString("networks:\n" +
		"  front: {ipam: {driver: berth, options: {network: front}, config: [{subnet: 10.8.0.0/24}]}}\n" +
		"  dual: {enable_ipv6: true, ipam: {driver: berth, options: {network: dual}, config: [{subnet: 10.9.0.0/24}, " +
		"{subnet: 'fd00:9::/64'}]}}\n")
	return b.String()
}

// service writes one service of a Compose file.
func (g *generated) service(b *strings.Builder, i int, s *said) {
	fmt.Fprintf(b, "  %s:\n    image: x%d\n    scale: %d\n", s.name, g.IntN(3), s.scale)
	given := s.scale == 1 && g.chance(40)
	if s.scale == 1 && g.chance(20) {
		s.own = "box"
		fmt.Fprintf(b, "    container_name: box\n")
	}
	fmt.Fprintf(b, "    networks:\n")
	for _, key := range s.on {
		says := ""
		if given && key == "front" {
			says = fmt.Sprintf(" {ipv4_address: %s}", g.static())
		}
		fmt.Fprintf(b, "      %s:%s\n", key, says)
	}
	if !given && s.scale > 1 && g.chance(30) {
		for range s.scale {
			s.addrs = append(s.addrs, g.static())
		}
		fmt.Fprintf(b, "    x-berth: {addresses: [%s]}\n", strings.Join(s.addrs, ", "))
	}
	if i > 0 && !g.services[i-1].dropped && g.chance(50) {
		fmt.Fprintf(b, "    depends_on: [s%d]\n", i-1)
	}
}

// reservations are the existing reservations of the project and of others.
func (g *generated) reservations() (all []ipam.Edit) {
	for _, s := range g.services {
		for n := range s.scale {
			if g.chance(40) {
				all = append(all, &ipam.AddReservation{Network: "front", Owner: fmt.Sprintf("shop/%s/%d", s.name, n+1),
					Automatic: true, Wishes: []ipam.Wish{{Address: netip.MustParseAddr(fmt.Sprintf("10.8.0.%d", g.IntN(20)+5))}}})
			}
		}
	}
	return append(all, &ipam.AddReservation{Network: "front", Owner: fmt.Sprintf("other/%d", g.IntN(5)),
		Wishes: []ipam.Wish{{Address: netip.MustParseAddr(fmt.Sprintf("10.8.0.%d", g.IntN(40)+5))}}})
}

// containers are the project's containers on the engine. Most are as the files want them.
func (g *generated) containers() (all []still.Container) {
	g.engine.Images = map[string]string{"x0": "sha256:a", "x1": "sha256:b"}
	for _, s := range g.services {
		for n := range s.replicas {
			c := replica(s.name, n+1, g.static())
			c.Hash = s.hash
			switch {
			case s.own != "":
				c.Name = s.own
			case g.chance(10):
				continue
			}
			if c.ImageID = "sha256:a"; g.chance(30) {
				c.ImageID = "sha256:b"
			}
			if g.chance(10) {
				c.Hash = "old"
			}
			switch g.IntN(30) {
			case 0:
				c.State = "paused"
			case 1, 2:
				c.State = "exited"
			case 3:
				c.Broken = "it does not answer"
			case 4:
				c.OneOff = true
			}
			all = append(all, c)
		}
	}
	return all
}

func (g *generated) hashes() map[string]string {
	hashes := map[string]string{}
	for _, s := range g.services {
		hashes[s.name] = s.hash
	}
	return hashes
}
