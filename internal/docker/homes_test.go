package docker

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"berth/internal/ipam/ipamtest"
)

// TestHomes: a container that just started on another address than its last is reported. After a while the new
// address is its home. An address that was requested, or that belongs to an owner, moves no container.
func TestHomes(t *testing.T) {
	// the last byte of its last address, steps of a scene, what is told (with the container that has that address), and
	// the last byte of its home afterwards
	for row := range ipamtest.Rows(5, `
		elsewhere | 9 | | told | 9
		where another runs | 3 | run db 1 10.8.0.3 3 | told db | 3
		where it was | 2 | | | 2
		for the first time | | | | 2
		a while ago | 9 | old | | 2
		at an unknown time | 9 | late | | 9
		on another's | 9 | reserve odb 10.8.0.9 | | 9
		with one of its own | 9 | reserve web 10.8.0.30 | | 9
		by its own address | 9 | set endpoint wanted=["10.8.0.2"] | | 9
		by a static address | 9 | set lease2 kind=static | | 9
		by DHCP | 9 | set lease2 dhcp={} | | 9
		on a swarm's network | 9 | set network swarm | | 9
		as no container's | 9 | set container id= | | 9
		with an uncertain one | 9 | set endpoint mac=; set lease2 mac=none since=@-1s | | 9
	`) {
		s, age, known := newScene(), time.Duration(0), true
		for step := range strings.SplitSeq(row[2], "; ") {
			switch step {
			case "":
			case "old":
				age = StartFor + time.Second
			case "late":
				known = false
			default:
				s.step(t, strings.Fields(step))
			}
		}
		key, h, had := home{"web", segment{"local", prefix("10.8.0.0/24")}}, homes{}, netip.Addr{}
		if row[1] != "" {
			had = addr("10.8.0." + row[1])
			h[key] = had
		}
		all := h.judge(s.compare(), func(string) (time.Time, bool) { return now.Add(-age), known })
		told := ""
		for _, a := range all {
			told = strings.TrimSpace(told + "told " + a.Taken)
			if a.Container != "web" || a.Has != addr("10.8.0.2") || a.Home != had || a.Reserved {
				t.Errorf("%s: told is %+v", row[0], a)
			}
		}
		if told != row[3] || h[key] != addr("10.8.0."+row[4]) {
			t.Errorf("%s: told is %+v, and its home is %s", row[0], all, h[key])
		}
	}
}
