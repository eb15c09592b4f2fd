package cluster

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"berth/test/lab"
)

// daemon sends one message of the plugin protocol and returns the body of the answer. An error means that no
// answer came.
type daemon interface {
	post(method string, body []byte) ([]byte, error)
}

// patience is far longer than anything here takes. It only ends a hanging test.
const patience = 60 * time.Second

// host is a Berth daemon across its restarts, and a client of its plugin socket.
type host struct {
	*node
	*lab.Process
	t      testing.TB
	words  []string
	dir    string
	client *http.Client
}

// newHost makes a host whose daemon starts with additional flags.
func newHost(t testing.TB, n int, flags ...string) *host {
	t.Helper()
	h := &host{node: newNode(t, fmt.Sprintf("h%d", n), 10+n), t: t, dir: tempDir(t)}
	h.words = append([]string{binary, "serve", "--host", h.name, "--state", filepath.Join(h.dir, "state"),
		"--plugin-socket", h.plugin(),
		"--admin-socket", h.admin(), "--docker-host", "none", "--log-level", "warning"}, flags...)
	h.client = lab.Over(h.plugin())
	return h
}

func (h *host) plugin() string { return filepath.Join(h.dir, "p.sock") }
func (h *host) admin() string  { return filepath.Join(h.dir, "a.sock") }

// start starts the daemon and waits until it answers.
func (h *host) start() {
	h.t.Helper()
	h.Process = lab.Start(h.t, h.command(h.words))
	lab.AwaitOf(h.t, h.name+" answers", func() error {
		_, err := h.post("GetCapabilities", nil)
		return err
	}, h.Process)
}

func (h *host) post(method string, body []byte) ([]byte, error) {
	res, err := h.client.Post("http://berth/IpamDriver."+method, "application/json", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	return io.ReadAll(res.Body)
}

// berth runs a command on the daemon.
func (h *host) berth(args ...string) (string, error) {
	out, err := exec.Command(binary, append(args, "--admin-socket", h.admin())...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("berth %v: %w: %s", args, err, out)
	}
	return string(out), nil
}

// reply is the answer to a call.
type reply struct{ PoolID, Pool, Address, Err string }

// call sends a message and reads the answer.
func call(to daemon, method string, message any) (r reply, err error) {
	body, err := json.Marshal(message)
	if err != nil {
		return r, err
	}
	text, err := to.post(method, body)
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return r, fmt.Errorf("%s answered %q: %w", method, text, err)
	}
	return r, nil
}

// attach attaches a Docker network of the host to the shared subnet.
func attach(t testing.TB, to daemon, request any) (pool string) {
	t.Helper()
	r, err := call(to, "RequestPool", request)
	if err != nil || r.Err != "" {
		t.Fatalf("RequestPool: %v%s", err, r.Err)
	}
	return r.PoolID
}
