package docker

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"berth/internal/ipam"
)

// playScenes plays each case of a script in a new scene, and checks what a comparison finds. A case has its name
// with ":", then steps, one a line, then a line "-> FINDING" (see brief) for each finding. "says TEXT" is a part of
// a finding's detail, in the order of the kinds.
func playScenes(t *testing.T, begin func() *scene, script string, then func(*testing.T, *scene, *comparison)) {
	for name, lines := range casesOf(script) {
		t.Run(name, func(t *testing.T) {
			s, want, said := begin(), []string{}, []string(nil)
			for _, line := range lines {
				if one, is := strings.CutPrefix(line, "-> "); is {
					want = append(want, one)
				} else if says, is := strings.CutPrefix(line, "says "); is {
					said = append(said, says)
				} else {
					s.step(t, strings.Fields(line))
				}
			}
			compared := s.compare()
			if got := brief(compared.found); !slices.Equal(got, want) {
				t.Errorf("found %q, want %q", got, want)
			}
			found := slices.Clone(compared.found)
			slices.SortFunc(found, func(a, b finding) int { return strings.Compare(string(a.Kind), string(b.Kind)) })
			for i, says := range said {
				if f := found[i]; !strings.Contains(f.Detail, says) || f.Network != "front" || f.Owner == "" {
					t.Errorf("it says %+v, and not %q", f.Finding, says)
				}
			}
			then(t, s, compared)
		})
	}
}

// step runs one step. KEY=VALUE or KEY after a step sets a field of what it adds or changes, by its JSON name (set).
//
//	run NAME NETWORK ADDRESS N     a container; N determines its MAC and id
//	joins NETWORK [ADDRESS N]      connects the last container to another network; no ADDRESS: it does not run there
//	lease ADDRESS N ATTACHMENT     a lease of MAC N
//	lan ADDRESS N HOST             the same in the cluster's network
//	memory ADDRESS N DAYS          a remembered lease that ended DAYS ago
//	gateway ADDRESS                a gateway's lease
//	reserve OWNER ADDRESS          a reservation; also "replaced", "dynamic"
//	rule PATTERN OWNER [SPACE]     an owner rule of the network front
//	attach N CIDR                  an attachment
//	network N CIDR GATEWAY|-       a Docker network
//	set THING                      changes a THING (see thing)
//	none|first|later LIST...       empties the list, keeps only its first entry, removes its first entry
//	plan NETWORK SPACE             a planned network, and its space; "-": in two
//	swarm                          replaces the scene with a swarm's network (see newSwarm)
//	foreign [too]                  the Docker networks belong to a driver with another name; too: to both drivers
//	nftables | maps PORT... | lacks PORT...    elastic addresses
//	alone | partial                one store, whose host was renamed; the cluster's store could not be read
func (s *scene) step(t *testing.T, words []string) {
	t.Helper()
	n := func(i int) int {
		n, err := strconv.Atoi(words[i])
		must(t, err)
		return n
	}
	var of any
	taken := len(words)
	switch words[0] {
	case "run":
		of, taken = s.run(words[1], n(2), words[3], n(4)), 5
	case "joins":
		c := &s.view.Containers[len(s.view.Containers)-1]
		ep := ipam.EngineEndpoint{Network: "n" + words[1]}
		if len(words) > 2 {
			ep.ID, ep.MAC, ep.Addresses = "e"+words[3], macN(n(3)), []netip.Addr{addr(words[2])}
		}
		c.Endpoints = append(c.Endpoints, ep)
	case "lease":
		of, taken = s.lease(words[1], n(2), n(3)), 4
	case "lan":
		of, taken = s.inLAN(words[1], n(2), words[3]), 4
	case "memory":
		l := s.lease(words[1], n(2), 1)
		l.State, l.Released = "remembered", now.Add(-time.Duration(n(3))*24*time.Hour)
		of, taken = l, 4
	case "gateway":
		of, taken = s.gateway(words[1]), 2
	case "reserve":
		of, taken = s.reserve(words[1], words[2]), 3
	case "rule":
		s.rule(words[1], words[2], append(words[3:], "local")[0])
	case "attach":
		of, taken = s.attach(n(1), words[2]), 3
	case "network":
		of, taken = s.network(n(1), words[2], strings.Trim(words[3], "-")), 4
	case "set":
		of, taken = s.thing(t, words[1]), 2
	case "none", "first", "later":
		for _, list := range words[1:] {
			s.cut(t, words[0], list)
		}
	case "plan":
		s.networks[words[1]] = strings.Trim(words[2], "-")
	case "swarm":
		*s = *newSwarm(t)
	case "foreign":
		if s.view.Foreign = slices.Clone(s.view.Networks); taken == 1 {
			s.view.Networks, s.view.Containers = nil, nil
		}
	case "nftables":
		s.nftables()
	case "maps":
		s.maps(words[1:]...)
	case "lacks":
		s.lacks(words[1:]...)
	case "alone":
		s.cluster = false
	case "partial":
		s.partial = errors.New("no etcd")
	default:
		t.Fatalf("there is no step %q", words)
	}
	for _, word := range words[taken:] {
		set(t, of, word)
	}
}

// thing returns the part of the scene that a name means.
func (s *scene) thing(t *testing.T, name string) any {
	switch name {
	case "container":
		return &s.view.Containers[0]
	case "endpoint":
		return &s.view.Containers[0].Endpoints[0]
	case "network":
		return &s.view.Networks[0]
	case "subnet":
		return &s.view.Networks[0].Subnets[0]
	case "foreign":
		return &s.view.Foreign[0].Subnets[0]
	case "view":
		return &s.view
	case "attachment":
		return &s.attachments[0]
	case "attachment2":
		return &s.attachments[1]
	case "lease":
		return &s.leases[0]
	case "lease2":
		return &s.leases[1]
	case "lease3":
		return &s.leases[2]
	case "guest":
		return &s.mapped[0]
	}
	t.Fatalf("there is no %s", name)
	return nil
}

// cut shortens a list.
func (s *scene) cut(t *testing.T, how, list string) {
	switch list {
	case "containers":
		s.view.Containers = nil
	case "networks":
		s.view.Networks = nil
	case "elastic":
		s.elastic = nil
	case "leases":
		s.leases = cutList(s.leases, how)
	case "attachments":
		s.attachments = cutList(s.attachments, how)
	default:
		t.Fatalf("there is no list %s", list)
	}
}

func cutList[T any](all []T, how string) []T {
	switch how {
	case "first":
		return all[:1]
	case "later":
		return all[1:]
	}
	return nil
}

// set sets a field by its JSON name. For a MAC or pool, a number N means macN(N) or idN(N), and "none" means no MAC
// or pool. A time is @DURATION from now. A value in brackets or braces is JSON.
func set(t *testing.T, of any, word string) {
	t.Helper()
	key, value, given := strings.Cut(word, "=")
	if key == "dynamic" {
		r := of.(*ipam.ReservationInfo)
		r.Address, r.Dynamic = netip.Addr{}, true
		return
	}
	if n, err := strconv.Atoi(value); err == nil && key == "mac" {
		value = macN(n).String()
	} else if err == nil && key == "pool" {
		value = idN(n).String()
	} else if after, is := strings.CutPrefix(value, "@"); is {
		d, err := time.ParseDuration(after)
		must(t, err)
		value = now.Add(d).Format(time.RFC3339Nano)
	}
	if l, is := of.(*ipam.LeaseInfo); is && value == "none" {
		switch key {
		case "mac":
			l.MAC = ipam.MAC{}
		case "pool":
			l.Pool = ipam.ID{}
		}
		return
	}
	text := strconv.Quote(value)
	switch {
	case !given:
		text = "true"
	case value != "" && strings.Contains("[{", value[:1]), key == "slot", key == "number":
		text = value
	}
	must(t, json.Unmarshal(fmt.Appendf(nil, "{%q: %s}", key, text), of))
}

// steps runs steps, one a line.
func (s *scene) steps(t *testing.T, script string) *scene {
	t.Helper()
	for line := range strings.Lines(script) {
		if words := strings.Fields(line); len(words) > 0 {
			s.step(t, words)
		}
	}
	return s
}

// newSwarm returns a swarm's network with one task on a node, and the attachments of the manager and the node.
func newSwarm(t *testing.T) *scene {
	s := &scene{view: ipam.EngineView{Host: "h1", Taken: took}, networks: map[string]string{}}
	return s.steps(t, `
		network 1 10.0.9.0/24 10.0.9.1 swarm
		attach 1 10.0.9.0/24 space=global swarm host=manager
		attach 2 10.0.9.0/24
		run web.1.x 1 10.0.9.3 3
		lease 10.0.9.3 3 2
		lease 10.0.9.3 0 1 space=global mac=none host=manager kind=static
	`)
}
