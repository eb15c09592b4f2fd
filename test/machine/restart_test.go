//go:build machine

package machine

import (
	"fmt"
	"maps"
	"testing"
	"time"
)

// `systemctl restart docker`: all containers come back, no address is doubled, and Berth and its sockets stay.
func TestEngineRestart(t *testing.T) {
	m, err := shared()
	h := enter(t, m, err)
	h.settled(lanSize)
	berth, engine := h.unitPid("berth.service"), h.unitPid("docker.service")
	_, err = h.In("systemctl", "restart", "docker")
	h.must(err)
	if h.unitPid("docker.service") == engine {
		t.Error("the engine was not restarted")
	}
	if pid := h.unitPid("berth.service"); pid != berth {
		t.Errorf("Berth was %d, and is %d", berth, pid)
	}
	h.settled(lanSize)
}

// Berth is killed: systemd starts it again, with the same leases, and a container that is started meanwhile does not
// see it.
func TestBerthKilled(t *testing.T) {
	m, err := shared()
	h := enter(t, m, err)
	h.settled(lanSize)
	before, pid := h.held(), h.unitPid("berth.service")
	socket, err := h.property("berth.socket", "ActiveEnterTimestampMonotonic")
	h.must(err)

	_, err = h.In("sh", "-c", fmt.Sprintf("kill -KILL %d", pid))
	h.must(err)
	begin := time.Now()
	h.must(h.startContainer("meanwhile", lan))
	t.Logf("killed, and a container started on it, in %s", time.Since(begin).Round(time.Millisecond))
	h.must(h.active())
	if again := h.unitPid("berth.service"); again == pid {
		t.Error("Berth was not killed")
	}
	if after, err := h.property("berth.socket", "ActiveEnterTimestampMonotonic"); err != nil || after != socket {
		t.Errorf("the plugin socket was active since %s, and is since %s (%v)", socket, after, err)
	}
	all := h.settled(lanSize + 1)
	after := h.held()
	delete(after, all["meanwhile"].Address)
	if !maps.Equal(before, after) {
		t.Errorf("before: %v\nafter:  %v", before, after)
	}
	_, err = h.Docker("rm", "--force", "meanwhile")
	h.must(err)
	h.settled(lanSize)
}

// Berth is stopped. As long as its sockets are there, who starts a container starts it; without them a start is refused
// in the end, and what runs goes on.
func TestBerthStopped(t *testing.T) {
	m, err := shared()
	h := enter(t, m, err)
	before := h.settled(lanSize)
	stop := func(units ...string) {
		t.Helper()
		_, err := h.In(append([]string{"systemctl", "stop"}, units...)...)
		h.must(err)
	}
	stop("berth.service")
	begin := time.Now()
	h.must(h.startContainer("meanwhile", lan))
	t.Logf("stopped, and a container started on it, in %s", time.Since(begin).Round(time.Millisecond))
	_, err = h.Docker("rm", "--force", "meanwhile")
	h.must(err)

	stop("berth.socket", "berth-mac.socket", "berth-admin.socket", "berth.service")
	begin = time.Now()
	if err := h.startContainer("meanwhile", lan); err == nil {
		t.Error("a container started without a Berth")
	}
	t.Logf("gone with its sockets, and a container refused, in %s", time.Since(begin).Round(time.Millisecond))
	h.must(h.reach(before))
	_, err = h.In("systemctl", "start", "berth.socket", "berth-mac.socket", "berth-admin.socket", "berth.service")
	h.must(err)
	_, err = h.Docker("rm", "--force", "meanwhile")
	h.must(err)
	h.must(h.active())
	if after := h.settled(lanSize); !maps.Equal(before, after) {
		t.Errorf("before: %v\nafter:  %v", before, after)
	}
}

// `make install` of a newer version, under running containers: they run on, and keep what they have.
func TestUpgrade(t *testing.T) {
	m, err := shared()
	h := enter(t, m, err)
	containers, before, engine := h.settled(lanSize), h.held(), h.unitPid("docker.service")
	h.must(h.install(newer))
	defer func() { h.must(h.install(binary)) }() // the other tests' version
	if version, err := h.Berth("version", "--format", "{{.Daemon.Version}}"); err != nil || version != "test-2" {
		t.Errorf("the daemon is of version %q (%v)", version, err)
	}
	if after := h.held(); !maps.Equal(before, after) {
		t.Errorf("before: %v\nafter:  %v", before, after)
	}
	if h.unitPid("docker.service") != engine {
		t.Error("the engine was restarted")
	}
	if after := h.settled(lanSize); !maps.Equal(containers, after) { // none was started anew
		t.Errorf("before: %v\nafter:  %v", containers, after)
	}
}
