//go:build machine

package machine

import (
	"fmt"
	"maps"
	"testing"
	"time"
)

// `systemctl restart docker`: all containers come back, each with its own address, and Berth and its sockets stay.
func TestEngineRestart(t *testing.T) {
	m, err := shared()
	h := enter(t, m, err)
	h.settled(lanSize)
	berth, engine := h.unitPid("berth.service"), h.unitPid("docker.service")
	h.types("systemctl restart docker")
	if h.unitPid("docker.service") == engine {
		t.Error("the engine was not restarted")
	}
	if pid := h.unitPid("berth.service"); pid != berth {
		t.Errorf("Berth was %d, and is %d", berth, pid)
	}
	h.settled(lanSize)
}

// Berth is killed. systemd restarts it with the same leases, and a container that starts meanwhile does not notice.
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
	h.types("docker rm --force meanwhile")
	h.settled(lanSize)
}

// Berth is stopped. While its sockets are there, a starting container starts Berth. Without them a start finally
// fails, and running containers continue.
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
	h.types("docker rm --force meanwhile")

	stop("berth.socket", "berth-mac.socket", "berth-admin.socket", "berth.service")
	begin = time.Now()
	if err := h.startContainer("meanwhile", lan); err == nil {
		t.Error("a container started without a Berth")
	}
	t.Logf("gone with its sockets, and a container refused, in %s", time.Since(begin).Round(time.Millisecond))
	h.must(h.reach(before))
	h.types("systemctl start berth.socket berth-mac.socket berth-admin.socket berth.service")
	h.types("docker rm --force meanwhile")
	h.must(h.active())
	if after := h.settled(lanSize); !maps.Equal(before, after) {
		t.Errorf("before: %v\nafter:  %v", before, after)
	}
}
