//go:build engine

package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"berth/test/ground"
)

// systemRange is the range of the host's addresses in these tests, of two.
const systemRange = "10.213.252.1+2"

// systemTown is an engine whose host has system addresses, a network on auto, and an edge.
type systemTown struct {
	*House
	engine  *PrivateEngine
	daemon  *Daemon
	planned string
	net     string
}

func newSystemTown(t *testing.T, number int, flags ...string) *systemTown {
	e := engineOf(t, number)
	d := witness(t, e.Engine, e.Sockets, number, flags...)
	h := enterPlanned(t, e.Engine, d, number)
	planned := h.plan("--subnet", h.v4("0/24")+",pool")
	s := &systemTown{House: h, engine: e, daemon: d, planned: planned, net: h.on(planned, "--subnet", h.v4("0/24"))}
	return s
}

// auto adds the host's range and turns the network to auto.
func (s *systemTown) auto() {
	s.Helper()
	var status struct {
		Host string `json:"host"`
	}
	if err := json.Unmarshal([]byte(s.berth("status", "--format", "json")), &status); err != nil || status.Host == "" {
		s.Fatalf("the daemon's host: %q %v", status.Host, err)
	}
	s.berth("elastic", "range", "add", systemRange, "--host", status.Host)
	s.berth("network", "modify", s.planned, "--elastic", "auto")
}

// elastic is what is listed of elastic addresses that are not being released: "KIND ADDRESS INSTANCE", in order.
func (s *systemTown) elastic() (string, error) {
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

// soon waits for what is listed, for a second as is promised and some more where the machine is busy, and says how
// long it took.
func (s *systemTown) soon(when, want string) {
	s.Helper()
	begun := time.Now()
	err := ground.Eventually(10*time.Second, func() error {
		got, err := s.elastic()
		if err == nil && got != want {
			err = fmt.Errorf("there is %q, not %q", got, want)
		}
		return err
	})
	if err != nil {
		s.Fatalf("%s: %v", when, err)
	}
	s.Logf("%s: after %s", when, time.Since(begun).Round(10*time.Millisecond))
}

// mapped waits until the kernel of the engine's host has a guest's mapping, or has it no more.
func (s *systemTown) mapped(when, guest string, want bool) {
	s.Helper()
	err := ground.Eventually(10*time.Second, func() error {
		out, err := run(context.Background(), nil, "nsenter", "--net=/run/netns/"+s.engine.name, "nft", "list", "table",
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

// runs starts a container that stays, and returns its address.
func (s *systemTown) runs(name string, options ...string) string {
	s.Helper()
	args := append([]string{"run", "--detach", "--name", name, "--network", s.net}, options...)
	s.docker(append(args, imageName, "busybox", "sleep", "1000")...)
	return s.address(name, s.net)
}

// System addresses on a real engine: with the start and the end of containers, be it by stop, restart, crash, rename,
// removal or recreation; an elastic one takes the place of one, and what happens while the daemon or the engine is away
// is put right (CS-7, CS-8, CS-11, CS-15).
func TestElasticSystem(t *testing.T) {
	t.Parallel()
	s := newSystemTown(t, 75)
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

	if err := s.daemon.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Engine.Docker("kill", db); err != nil { // which the engine is long about
		t.Fatal(err)
	}
	if err := s.daemon.Revive(); err != nil {
		t.Fatal(err)
	}
	s.soon("one ended while the daemon was down", "system "+first+" "+web)
	if err := s.engine.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := s.engine.Start(); err != nil {
		t.Fatal(err)
	}
	s.soon("the engine was killed, and its containers with it", "")
	s.docker("start", web)
	s.soon("a start after that", "system "+first+" "+web)
}

// crashes kills the process of a container that is restarted then, and waits until it is.
func (s *systemTown) crashes(name string) {
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
	if err := syscall.Kill(before, syscall.SIGKILL); err != nil {
		s.Fatal(err)
	}
	if err := ground.Eventually(20*time.Second, func() error {
		if now := process(); now == before || now == 0 {
			return fmt.Errorf("%s has the process %d", name, now)
		}
		return nil
	}); err != nil {
		s.Fatal(err)
	}
}

// elasticInItsPlace associates an elastic address with one that runs, and ends that again.
func (s *systemTown) elasticInItsPlace(web, db, first, second string) {
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
		!strings.Contains(err.Error(), "ElasticSystemAddress") {
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

// A container that publishes ports is refused a mapping, naming the port, also while it is stopped or was only just
// made; it gets no system address, and is found (CS-13). On a network with elastic addresses off there is no mapping
// (CS-16).
func TestElasticPublished(t *testing.T) {
	t.Parallel()
	s := newSystemTown(t, 76)
	s.berth("elastic", "range", "add", elasticAddress)
	s.berth("elastic", "allocate")
	refused := func(when, name string, words ...string) {
		s.Helper()
		err := ground.Eventually(5*time.Second, func() error {
			out, err := berth(s.Berth, "elastic", "associate", elasticAddress, name, "--dry-run")
			if err == nil {
				return fmt.Errorf("it is not refused: %s", out)
			}
			for _, word := range words {
				if !strings.Contains(err.Error(), word) {
					return fmt.Errorf("it does not say %q: %w", word, err)
				}
			}
			return nil
		})
		if err != nil {
			s.Errorf("%s: %v", when, err)
		}
	}
	name, guest := s.name(), s.v4("30")
	s.berth("reservation", "add", s.planned, "--owner", name, "--ip", guest)
	refused("the network has them off", name, "ElasticNetworkOff", s.planned)
	s.berth("network", "modify", s.planned, "--elastic", "on")
	s.docker("create", "--name", name, "--network", s.net, "--ip", guest, "--publish", "18080:80", imageName, "busybox",
		"sleep", "1000")
	refused("it was only just made", name, "ElasticContainerPublishes", "18080/tcp")
	s.docker("start", name)
	refused("it runs", name, "ElasticContainerPublishes", "18080/tcp")
	s.docker("stop", "--time", "1", name)
	refused("it is stopped", name, "ElasticContainerPublishes", "18080/tcp")
	if err := s.daemon.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := s.daemon.Revive(); err != nil {
		t.Fatal(err)
	}
	refused("it is stopped, and the daemon begun anew", name, "ElasticContainerPublishes", "18080/tcp")

	s.docker("rm", name)
	s.docker("create", "--name", name, "--network", s.net, "--ip", guest, imageName, "busybox", "sleep", "1000")
	if err := ground.Eventually(5*time.Second, func() error {
		_, err := berth(s.Berth, "elastic", "associate", elasticAddress, name)
		return err
	}); err != nil {
		t.Fatalf("one that publishes nothing any more: %v", err)
	}
	s.docker("rm", name)
	s.docker("run", "--detach", "--name", name, "--network", s.net, "--ip", guest, "--publish", "18080:80", imageName,
		"busybox", "sleep", "1000")
	s.finds("edge_away ", "published_elastic "+guest) // no edge runs here
	s.berth("elastic", "disassociate", elasticAddress)
	s.finds()
	s.auto()
	s.finds("published_elastic " + guest)
	if got, err := s.elastic(); err != nil || got != "elastic "+elasticAddress {
		t.Errorf("one that publishes ports has a system address: %q %v", got, err)
	}
	s.berth("elastic", "release", elasticAddress)
}
