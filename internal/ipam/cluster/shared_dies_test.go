package cluster

import (
	"net/netip"
	"strings"
	"testing"

	"berth/internal/ipam"
)

// mortal is a host whose machine dies, and what its engine knows.
type mortal struct {
	*stage
	a     *sharingHost
	hands map[netip.Addr]ipam.MAC
	doubt map[ipam.MAC]bool // the machine died during its request or release
	died  bool
}

// life is the steps of a mortal. A step with "!" may fail while the shared store is out of reach.
const life = `
	look !
	take mac=1
	take mac=2 ip=.40
	cut
	give mac=1
	take mac=3
	take mac=4 ip=.3
	give mac=3
	take mac=5
	heal
	# which tells
	take mac=6
	headroom 4
	look !
	cut
	give mac=5
	take mac=7
	heal
	# of the use
	cutnext committed
	look !
	give mac=7
	heal
	look !
	headroom 1
	look !
	cut
	give mac=2
	heal
	look !
`

// The machine dies at each write of the host's own store and of the shared one, before and after the write. Then
// every answer to the engine still holds, the host's headroom is claimed, and the store holds no other lease
// except one whose answer got lost.
func TestSharedDies(t *testing.T) {
	for _, after := range []bool{false, true} {
		n := 0
		for dies(t, n, after) {
			n++
		}
		if n < 30 {
			t.Fatalf("it died %d times only", n)
		}
	}
}

func dies(t *testing.T, n int, after bool) bool {
	m := &mortal{stage: plays(t, ""), hands: map[netip.Addr]ipam.MAC{}, doubt: map[ipam.MAC]bool{}}
	m.a = m.host("a")
	m.a.edit(lanWith(3, lanCIDR))
	m.pools["p"] = m.a.pool()
	m.a.after, m.a.left = after, n
	for line := range strings.Lines(life) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' && !m.died {
			m.lives(line)
		}
	}
	m.settles()
	return m.died
}

// lives plays a line. The engine does not hear the result of the step in which the machine dies.
func (m *mortal) lives(line string) {
	m.t.Helper()
	step, may := strings.CutSuffix(line, " !")
	words := strings.Fields(step)
	mac := m.request(words[1:]).MAC
	if words[0] == "give" {
		for addr, has := range m.hands {
			if has == mac {
				delete(m.hands, addr)
				words[1] = short([]netip.Addr{addr})
			}
		}
	}
	got, err := m.step(m.a, words)
	switch {
	case m.a.left == 0:
		m.died, m.doubt[mac] = true, true
	case err != nil && !(may && (isAway(err) || isUnknown(err))):
		m.t.Fatalf("%s: %v", line, err)
	case err == nil && words[0] == "take":
		m.hands[addrs(got[1:])[0]] = mac
	}
}

// settles restarts the daemon and compares the records with what the engine knows.
func (m *mortal) settles() {
	m.t.Helper()
	m.run(`
		heal
		boot
		look
		look
		free
	`)
	for addr, mac := range m.hands {
		if l := heldAt(m.t, m.common, addr); l == nil || l.MAC != mac || l.Kind == ipam.Headroom {
			m.t.Fatalf("the engine has %s for %s, and the store %+v", addr, mac, l)
		}
	}
	for _, l := range leasesIn(m.t, m.common) {
		if mac, ok := m.hands[l.Address]; l.Kind != ipam.Headroom && (!ok || mac != l.MAC) && !m.doubt[l.MAC] {
			m.t.Fatalf("left in the store: %+v", l)
		}
	}
	if m.a.keeps() || len(m.a.warned) > 0 {
		m.t.Fatalf("%+v, %q", m.a.outbox, m.a.warned)
	}
	m.a.sound()
}
