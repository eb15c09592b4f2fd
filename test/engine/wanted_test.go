//go:build engine

package engine

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"berth/test/ground"
)

// The address that a container asks for itself (`--ip`) is lent to nobody while that container exists, though it was
// stopped, or was never started, and though nothing else is left; whoever is refused reads who it is. Once the
// container is removed, it is anybody's.
func TestWantedIsKept(t *testing.T) {
	t.Parallel()
	k := startKept(t, machineEngine, pluginDir, ways(machineEngine)[0], 154)
	n := k.name()
	bits := sample(0, 29, 28)
	k.docker(k.networkCommand(n, "--subnet", k.v4(fmt.Sprintf("128/%d", bits)))...)
	stopped, created := k.container(n, "--ip", k.v4("133")), k.name()
	k.docker("stop", "--time", "1", stopped)
	command := containerCommand(created, n, "--ip", k.v4("134"))
	k.docker(slices.Concat([]string{"create"}, command[2:])...)
	var others []string
	for range 1<<(32-bits) - 2 - 1 - 2 { // less the first and the last address, the gateway and those two
		others = append(others, k.container(n))
	}
	for _, c := range others {
		if a := k.at(c, n); a == k.v4("133") || a == k.v4("134") {
			t.Errorf("%s has %s, which another asks for by its own configuration", c, a)
		}
	}
	k.full(n, k.v4("133")+" by "+stopped, k.v4("134")+" by "+created)
	k.docker("start", stopped, created)
	if a, b := k.at(stopped, n), k.at(created, n); a != k.v4("133") || b != k.v4("134") {
		t.Errorf("started, they have %s and %s", a, b)
	}
	k.sound()
	for _, c := range []string{stopped, created} {
		k.docker("stop", "--time", "1", c)
		a := k.at4(c, n)
		k.full(n, a+" by "+c)
		k.docker("rm", c)
		if got := k.at(k.container(n), n); got != a {
			t.Errorf("%s is removed, and its %s is not free: another has %s", c, a, got)
		}
	}
	k.sound()
}

// at4 is the IPv4 address that a container asks for itself.
func (k *kept) at4(container, network string) string {
	k.Helper()
	format := `{{(index .NetworkSettings.Networks "` + network + `").IPAMConfig.IPv4Address}}`
	return k.docker("inspect", "-f", format, container)
}

// TestForeignHolder: one who asks by `--ip` for what is reserved for another is given it, on an engine that does not
// say who asks, and its owner gets another address. Both are told of a moment later, once, by name: in events, and by
// `berth check` with what is to be done. That done, nothing is wrong.
func TestForeignHolder(t *testing.T) {
	t.Parallel()
	k := startKept(t, machineEngine, pluginDir, ways(machineEngine)[0], 155)
	front := k.plan("--subnet", k.v4("128/25")+",gateway="+k.v4("129")+",pool="+k.span(130, 150))
	db := k.name()
	k.berth("reservation", "add", front, "--owner", db, "--ip", k.v4("180"))
	n := k.on(front, "--subnet", k.v4("128/25"))
	k.follows()
	began := time.Now()
	k.docker(containerCommand(db, n, "--ip", k.v4("180"))...)
	if a := k.at(db, n); a != k.v4("180") {
		t.Errorf("its owner has %s", a)
	}
	k.named() // so that it was looked at
	k.strays(began)
	k.docker("rm", "-f", db)
	other := k.container(n, "--ip", k.v4("180"))
	if a := k.at(other, n); a != k.v4("180") {
		t.Errorf("another than its owner has %s", a)
	}
	foreign := fmt.Sprintf("lease.foreign_holder %s %s: reserved for %s", k.v4("180"), other, db)
	k.strays(began, foreign)
	k.docker(containerCommand(db, n)...)
	a := k.at(db, n)
	k.strays(began, foreign,
		fmt.Sprintf("lease.owner_elsewhere %s %s: %s is reserved for %s, and %s has it", a, db, k.v4("180"), db, other))
	_, out, err := check(k.Berth)
	for _, says := range []string{
		fmt.Sprintf("the container %s runs with %s, which is reserved for %s: remove %s, or start it", other,
			k.v4("180"), db, other),
		fmt.Sprintf("the container %s runs with %s and not with %s, which is reserved for %s and which %s has", db, a,
			k.v4("180"), db, other),
		`"foreign_holder":1`, `"owner_elsewhere":1`,
	} {
		if err == nil || !strings.Contains(out, says) {
			t.Errorf("berth check says %v and not %q:\n%s", err, says, out)
		}
	}
	k.docker("rm", "-f", other)
	k.docker("stop", "--time", "1", db)
	k.pinned("pin", "--yes", db)
	k.docker("start", db)
	if a := k.at(db, n); a != k.v4("180") {
		t.Errorf("pinned, its owner has %s", a)
	}
	k.sound()
}

// strays waits until the events since a time tell of these containers with an address that is not theirs, and no
// others.
func (k *kept) strays(since time.Time, want ...string) {
	k.Helper()
	if err := ground.Eventually(30*time.Second, func() error {
		var told []string
		out := k.berth("events", "--since", since.Format(time.RFC3339Nano), "--format", "json")
		for lines := json.NewDecoder(strings.NewReader(out)); lines.More(); {
			var e struct{ Verb, Address, Name, Detail string }
			if err := lines.Decode(&e); err != nil {
				return err
			}
			if e.Verb == "lease.foreign_holder" || e.Verb == "lease.owner_elsewhere" {
				told = append(told, fmt.Sprintf("%s %s %s: %s", e.Verb, e.Address, e.Name, e.Detail))
			}
		}
		if !slices.Equal(told, want) {
			return fmt.Errorf("told is %q, and not %q", told, want)
		}
		return nil
	}); err != nil {
		k.Error(err)
	}
}
