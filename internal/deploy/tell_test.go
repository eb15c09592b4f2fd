package deploy

import (
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"berth/internal/ipam"

	"github.com/google/go-cmp/cmp"
)

const movedFile = `
services:
  web: {image: x, networks: [back]}
  both: {image: x, networks: [front, back]}
  wan: {image: x, networks: [back, lan]}
  box: {image: x, container_name: box, networks: [front]}
  bare: {image: x}
  crowd: {image: x, scale: 2, networks: [front]}
  debug: {image: x, profiles: [debug], networks: [front]}
networks:
  front: {ipam: {driver: berth, options: {network: front}}}
  back: {ipam: {driver: berth, options: {network: dual}, config: [{subnet: 10.9.0.0/24}]}}
  lan: {external: true}
`

// BO-13: each owner gets what its service says and nothing elsewhere. If Berth leaves a network of the service
// alone, it does not know where else the owner is, and replaces nothing there.
func TestBO13Only(t *testing.T) {
	plan, err := load(t, file(t, movedFile)).Plan(Mapping{}, planned())
	fine(t, err)
	front, dual := planned()[0].ID.String(), planned()[1].ID.String()
	want := map[string][]string{"shop/web/1": {dual}, "shop/both/1": {dual, front}, "shop/wan/1": nil, "box": {front},
		"shop/crowd/1": {front}, "shop/crowd/2": {front}}
	got := map[string][]string{}
	for _, e := range plan.Edits() {
		add := e.(*ipam.AddReservation)
		if !add.Replace {
			t.Errorf("%s on %s replaces nothing", add.Owner, add.Network)
		}
		got[add.Owner] = add.Only
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("what owners are to have besides:\n%s", d)
	}
}

// BO-13: Berth reports what an owner keeps until it runs with its new address. It also reports what is reserved
// for an owner that the files no longer name, with the reason and the way to end it. It reports nothing of another
// project, of a profile that is off, or of what it does not know.
func TestBO13Told(t *testing.T) {
	plan, err := load(t, file(t, movedFile)).Plan(Mapping{}, planned())
	fine(t, err)
	fine(t, plan.Grant(newLedger().edit(plan.Edits())))
	var reserved []ipam.ReservationInfo
	for line := range strings.Lines(`shop/web/1 front 10.8.0.77 replaced
		shop/web/1 front fd00:8::77 replaced
		shop/web/1 dual 10.9.0.10
		shop/gone/1 front 10.8.0.78
		shop/gone/1 front fd00:8::78
		shop/gone/1 dual 10.9.0.78
		shop/crowd/3 front 10.8.0.79
		shop/box/1 front 10.8.0.80
		shop/bare/1 front 10.8.0.81
		shop/wan/2 front 10.8.0.82
		shop/debug/1 front 10.8.0.83
		shop2/gone/1 front 10.8.0.84
		gone front 10.8.0.85`) {
		f := strings.Fields(line)
		reserved = append(reserved,
			ipam.ReservationInfo{Owner: f[0], Network: f[1], Address: netip.MustParseAddr(f[2]),
				Terms: ipam.Terms{Replaced: len(f) > 3}})
	}
	reserved = append(reserved, ipam.ReservationInfo{Owner: "shop/gone/1", Network: "theirs", Dynamic: true})
	if d := cmp.Diff([]string{"shop/web/1 keeps 10.8.0.77, fd00:8::77 on front until it runs with 10.9.0.12"},
		plan.Kept(reserved)); d != "" {
		t.Errorf("what is kept:\n%s", d)
	}
	want := []string{
		"shop/gone/1 has 10.8.0.78, fd00:8::78 reserved on front, but the Compose files no longer have a service " +
			"gone; `berth reservation rm front --owner shop/gone/1` ends the reservation",
		"shop/gone/1 has 10.9.0.78 reserved on dual, but the Compose files no longer have a service gone; `berth " +
			"reservation rm dual --owner shop/gone/1` ends the reservation",
		"shop/crowd/3 has 10.8.0.79 reserved on front, but the Compose files give crowd 2 replicas; `berth " +
			"reservation rm front --owner shop/crowd/3` ends the reservation",
		"shop/box/1 has 10.8.0.80 reserved on front, but the container of box is called box now; `berth reservation " +
			"rm front --owner shop/box/1` ends the reservation",
		"shop/bare/1 has 10.8.0.81 reserved on front, but bare is no longer on a planned network; `berth " +
			"reservation rm front --owner shop/bare/1` ends the reservation",
	}
	if d := cmp.Diff(want, plan.Unclaimed(reserved, nil)); d != "" {
		t.Errorf("what is not claimed:\n%s", d)
	}
}

// Berth reports a network with options and without a config, and what to write. It does not report one that has
// both, or that somebody else made.
func TestMissingConfig(t *testing.T) {
	plan, err := load(t, file(t, `
services:
  web: {image: x, networks: [front, both, named, lan, bare]}
networks:
  front: {ipam: {driver: berth, options: {network: front}}}
  both: {ipam: {driver: berth, options: {network: dual, quarantine: 10m}}}
  named: {ipam: {driver: berth, options: {network: two}, config: [{subnet: 10.11.0.0/24}]}}
  lan: {external: true}
  bare: {ipam: {driver: berth}}
`)).Plan(Mapping{Networks: map[string]string{"lan": "six", "bare": "still"}}, planned())
	fine(t, err)
	const why = "has ipam.options, but no ipam.config; without the override, Compose up to 5.5 drops the options, " +
		"and the network is not on "
	want := []string{
		"networks.both " + why + `dual: write config: [{subnet: "10.9.0.0/24"}, {subnet: "fd00:9::/64"}] beside them`,
		"networks.front " + why + `front: write config: [{subnet: "10.8.0.0/24"}] beside them`,
	}
	if d := cmp.Diff(want, plan.Missing()); d != "" {
		t.Error(d)
	}
}

// From the previous override, Berth also reports what a container with a name of its own has: if its service left
// the files, has another name or none, or is on no network any more. It reports nothing of another project's
// override, of a profile that is off, or of a container that the files still name.
func TestBO13ToldOfContainers(t *testing.T) {
	const networks = "networks: {front: {ipam: {driver: berth, options: {network: front}, config: [{subnet: " +
		"10.8.0.0/24}]}}}\n"
	before := load(t, file(t, `
services:
  left: {image: x, container_name: db-1, networks: [front]}
  called: {image: x, container_name: old, networks: [front]}
  plain: {image: x, container_name: plain, networks: [front]}
  bare: {image: x, container_name: bare, networks: [front]}
  debug: {image: x, container_name: debug, networks: [front]}
  stays: {image: x, container_name: stays, networks: [front]}
`+networks))
	plan, err := before.Plan(Mapping{}, planned())
	fine(t, err)
	fine(t, plan.Grant(newLedger().edit(plan.Edits())))
	text, err := plan.Override()
	fine(t, err)
	override := filepath.Join(t.TempDir(), "berth.override.yaml")
	write(t, override, text)
	after := load(t, file(t, `
services:
  called: {image: x, container_name: new, networks: [front]}
  plain: {image: x, networks: [front]}
  bare: {image: x, container_name: bare}
  debug: {image: x, container_name: debug, networks: [front], profiles: [debug]}
  stays: {image: x, container_name: stays, networks: [front]}
`+networks))
	now, err := after.Plan(Mapping{}, planned())
	fine(t, err)
	var reserved []ipam.ReservationInfo
	for _, c := range plan.claims {
		reserved = append(reserved, ipam.ReservationInfo{Owner: c.owner, Network: "front", Address: c.has[0]})
	}
	reserved = append(reserved,
		ipam.ReservationInfo{Owner: "stranger", Network: "front", Address: netip.MustParseAddr("10.8.0.99")})
	earlier, err := after.Earlier(override)
	fine(t, err)
	var got []string
	for _, line := range now.Unclaimed(reserved, earlier) {
		owner, rest, _ := strings.Cut(line, " has ")
		_, why, _ := strings.Cut(rest, ", but ")
		why, ends, _ := strings.Cut(why, "; ")
		if ends != "`berth reservation rm front --owner "+owner+"` ends the reservation" {
			t.Errorf("%s: %s", owner, ends)
		}
		got = append(got, owner+": "+why)
	}
	slices.Sort(got)
	want := []string{
		"bare: bare is no longer on a planned network",
		"db-1: the Compose files no longer have a service left",
		"old: the container of called is called new now",
		"plain: plain no longer has a container_name",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("what is not claimed:\n%s", d)
	}
	other := load(t, Source{Files: file(t, "services: {web: {image: x, networks: [front]}}\n"+networks).Files,
		Project: "shop2"})
	for name, p := range map[string]*Project{override: other, override + "x": after} {
		if found, err := p.Earlier(name); len(found) > 0 || err != nil {
			t.Errorf("%s of %s: %v, %v", name, p.Name(), found, err)
		}
	}
}
