//go:build engine

package engine

import (
	"encoding/json"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"berth/test/lab"
)

// systemRange is the range of the host's addresses in these tests: two addresses.
const systemRange = "10.213.252.1+2"

// systemHost is an engine whose host has system addresses, a network with auto, and an edge.
type systemHost struct {
	*Harness
	engine  *PrivateEngine
	daemon  *Daemon
	planned string
	net     string
}

func newSystemHost(t *testing.T, number int, flags ...string) *systemHost {
	e := engineOf(t, number)
	d := witness(t, e.Engine, e.Sockets, number, flags...)
	h := enter(t, e.Engine, d, number)
	planned := h.plan("--subnet", h.v4("0/24")+",pool")
	s := &systemHost{Harness: h, engine: e, daemon: d, planned: planned,
		net: h.on(planned, append(letsIn(), "--subnet", h.v4("0/24"))...)}
	return s
}

// auto adds the host's range and sets the network to auto.
func (s *systemHost) auto() {
	s.Helper()
	var status struct {
		Host string `json:"host"`
	}
	s.json(&status, "status")
	s.berth("elastic", "range", "add", systemRange, "--host", status.Host)
	s.berth("network", "modify", s.planned, "--elastic", "auto")
}

// elastic returns the listed elastic addresses that are not being released: "KIND ADDRESS INSTANCE", in order.
func (s *systemHost) elastic() (string, error) {
	var all []struct{ Kind, Address, Instance, State string }
	out, err := berth(s.Berth, "elastic", "ls", "--format", "json")
	if err == nil {
		err = json.Unmarshal([]byte(out), &all)
	}
	var lines []string
	for _, one := range all {
		if one.State == "allocated" {
			lines = append(lines, strings.TrimSpace(one.Kind+" "+one.Address+" "+one.Instance))
		}
	}
	return strings.Join(lines, ", "), err
}

// soon waits until elastic lists exactly this.
func (s *systemHost) soon(when, want string) {
	s.Helper()
	err := lab.Eventually(10*time.Second, func() error {
		got, err := s.elastic()
		if err == nil && got != want {
			err = fmt.Errorf("there is %q, not %q", got, want)
		}
		return err
	})
	if err != nil {
		s.Fatalf("%s: %v", when, err)
	}
}

// mapped waits until the kernel of the engine's host has a guest's mapping, or no longer has it.
func (s *systemHost) mapped(when, guest string, want bool) {
	s.Helper()
	err := lab.Eventually(10*time.Second, func() error {
		out, err := lab.Run(time.Minute, nil, "nsenter", "--net=/run/netns/"+s.engine.name, "nft", "list", "table",
			"ip", "berth")
		if err == nil && strings.Contains(out, guest+" ") != want {
			err = fmt.Errorf("mapped: %t:\n%s", !want, out)
		}
		return err
	})
	if err != nil {
		s.Errorf("%s: %v", when, err)
	}
}

// runs starts a container that stays and returns its address.
func (s *systemHost) runs(name string, options ...string) string {
	s.Helper()
	args := append([]string{"run", "--detach", "--name", name, "--network", s.net}, options...)
	s.docker(append(args, imageName, "busybox", "sleep", "1000")...)
	return s.address(name, s.net)
}

// System addresses on a real engine come with the start of a container and go with its end: stop, restart, crash,
// rename, removal and recreation. An elastic address replaces a system address. Changes while the daemon or the engine
// is away are found later (CS-7, CS-8, CS-11, CS-15).
func TestElasticSystem(t *testing.T) {
	t.Parallel()
	s := newSystemHost(t, 75)
	edgeOf(t, s.engine, s.daemon, 75)
	s.auto()
	const first, second = "10.213.252.1", "10.213.252.2"
	web, db := s.name(), s.name()
	guest := s.runs(web, "--restart", "always")
	s.soon("a start", "system "+first+" "+web)
	s.mapped("a start", guest, true)
	s.docker("stop", "--time", "1", web)
	s.soon("a stop", "")
	s.mapped("a stop", guest, false)
	s.docker("start", web)
	s.soon("the next start", "system "+first+" "+web)
	s.docker("restart", "--time", "1", web)
	s.soon("a restart", "system "+first+" "+web)
	s.mapped("a restart", s.address(web, s.net), true)

	s.crashes(web)
	s.soon("a crash, after which it starts again", "system "+first+" "+web)
	s.docker("rename", web, web+"-renamed")
	s.soon("a rename", "system "+first+" "+web)
	s.mapped("a rename", s.address(web+"-renamed", s.net), true)
	s.docker("rm", "--force", web+"-renamed")
	s.soon("a removal", "")
	s.runs(web)
	s.soon("another one of the name", "system "+first+" "+web)

	s.elasticInItsPlace(web, db, first, second)

	lab.Must(t, s.daemon.Kill())
	if _, err := s.Engine.Docker("kill", db); err != nil { // takes the engine long
		t.Fatal(err)
	}
	lab.Must(t, s.daemon.Revive())
	s.soon("one ended while the daemon was down", "system "+first+" "+web)
	lab.Must(t, s.engine.Kill(), s.engine.Start())
	s.soon("the engine was killed, and its containers with it", "")
	s.docker("start", web)
	s.soon("a start after that", "system "+first+" "+web)
}

// crashes kills the process of a container and waits until the container is restarted.
func (s *systemHost) crashes(name string) {
	s.Helper()
	process := func() (pid int) {
		out := s.docker("inspect", "--format", "{{.State.Pid}}", name)
		if _, err := fmt.Sscan(out, &pid); err != nil {
			s.Fatalf("the process of %s: %q", name, out)
		}
		return pid
	}
	before := process()
	if before <= 1 {
		s.Fatalf("%s does not run", name)
	}
	lab.Must(s, syscall.Kill(before, syscall.SIGKILL))
	lab.Await(s, 20*time.Second, func() error {
		if now := process(); now == before || now == 0 {
			return fmt.Errorf("%s has the process %d", name, now)
		}
		return nil
	})
}

// elasticInItsPlace associates an elastic address with a running container, and disassociates it again.
func (s *systemHost) elasticInItsPlace(web, db, first, second string) {
	s.Helper()
	s.berth("elastic", "range", "add", elasticAddress)
	s.berth("elastic", "allocate")
	if _, err := berth(s.Berth, "elastic", "associate", elasticAddress, db); err == nil {
		s.Error("an address is mapped to one that is not there")
	}
	s.berth("elastic", "associate", elasticAddress, web)
	if got, err := s.elastic(); err != nil || got != "elastic "+elasticAddress+" "+web {
		s.Errorf("once it is associated there is %q %v", got, err)
	}
	s.runs(db)
	s.soon("another start", "system "+first+" "+db+", elastic "+elasticAddress+" "+web)
	s.docker("restart", "--time", "1", web)
	s.soon("a restart of one that has an elastic one", "system "+first+" "+db+", elastic "+elasticAddress+" "+web)
	if _, err := berth(s.Berth, "elastic", "disassociate", first); err == nil ||
		!strings.Contains(err.Error(), "is the system address of") {
		s.Errorf("a system address is disassociated: %v", err)
	}
	s.berth("elastic", "disassociate", elasticAddress)
	s.soon("a disassociation", "system "+first+" "+db+", system "+second+" "+web+", elastic "+elasticAddress)
	s.berth("elastic", "release", elasticAddress)
	s.docker("restart", "--time", "1", db)
	s.soon("a restart beside another one", "system "+first+" "+db+", system "+second+" "+web)
	s.docker("stop", "--time", "1", web, db)
	s.soon("a stop of both", "")
	s.docker("start", web)
	s.soon("a start of one", "system "+first+" "+web)
	s.docker("start", db)
	s.soon("a start of the other", "system "+first+" "+web+", system "+second+" "+db)
}
