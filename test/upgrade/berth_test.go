//go:build upgrade

package upgrade

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// patience is far more than anything here takes. It only ends a test that would hang.
const patience = 2 * time.Minute

// checkout is a directory with a commit of this repository.
func checkout(t *testing.T, ref string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "tree")
	run(t, ".", "git", "worktree", "add", "--quiet", "--detach", dir, ref)
	t.Cleanup(func() { run(t, ".", "git", "worktree", "remove", "--force", dir) })
	return dir
}

// build is the path of the Berth of a tree.
func build(t *testing.T, tree string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "berth")
	run(t, tree, "go", "build", "-buildvcs=false", "-o", program, "./cmd/berth")
	return program
}

func run(t *testing.T, dir, name string, args ...string) {
	t.Helper()
	c := exec.Command(name, args...)
	c.Dir = dir
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
}

// berth is a running daemon.
type berth struct {
	command       *exec.Cmd
	admin, plugin *http.Client
	log           bytes.Buffer
}

// start starts a Berth on the state in dir, and waits until it answers.
func start(t *testing.T, program, dir string) *berth {
	t.Helper()
	sockets, err := os.MkdirTemp("", "berth-up") // the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(sockets) })
	admin, plugin := filepath.Join(sockets, "admin.sock"), filepath.Join(sockets, "berth.sock")
	b := &berth{admin: over(admin), plugin: over(plugin)}
	b.command = exec.Command(program, "serve", "--state", filepath.Join(dir, "state"), "--host", "alpha",
		"--docker-host", "none", "--plugin-socket", plugin, "--admin-socket", admin, "--log-level", "warning")
	b.command.Stderr = &b.log
	if err := b.command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.command.Process.Kill() }) // it has ended already, unless the test failed
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		answer, err := b.admin.Get("http://berth/readyz")
		if err == nil {
			answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return b
			}
		}
		if time.Now().After(deadline) {
			b.kill(t)
			t.Fatalf("it is not ready after %s: %v\n%s", patience, err, b.log.String())
		}
	}
}

func over(socket string) *http.Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}
	return &http.Client{Timeout: patience, Transport: &http.Transport{DialContext: dial}}
}

// kill ends the daemon as a power cut would.
func (b *berth) kill(t *testing.T) {
	t.Helper()
	if err := b.command.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = b.command.Wait()
}

// do is the answer to a request, which must succeed.
func (b *berth) do(t *testing.T, to *http.Client, method, path, body string) []byte {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, "http://berth"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := to.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%s %s: %s, %v\n%s", method, path, answer.Status, err, text)
	}
	return text
}

// list is what the admin API lists at a path.
func (b *berth) list(t *testing.T, path string) []map[string]any {
	t.Helper()
	var lists map[string]json.RawMessage
	if err := json.Unmarshal(b.do(t, b.admin, "GET", path, ""), &lists); err != nil {
		t.Fatal(err)
	}
	for _, list := range lists {
		var items []map[string]any
		if json.Unmarshal(list, &items) == nil {
			return items
		}
	}
	t.Fatalf("GET %s has no list", path)
	return nil
}

// call is a call of Docker's IPAM protocol: docker/go-plugins-helpers has its messages.
func (b *berth) call(t *testing.T, method string, message any) (answer struct{ PoolID, Address string }) {
	t.Helper()
	body, err := json.Marshal(message)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b.do(t, b.plugin, "POST", "/IpamDriver."+method, string(body)), &answer); err != nil {
		t.Fatal(err)
	}
	return answer
}

// pool is the id of a pool for a subnet, which may be that of a planned network.
func (b *berth) pool(t *testing.T, subnet, network string) string {
	t.Helper()
	options := map[string]string{}
	if network != "" {
		options["network"] = network
	}
	return b.call(t, "RequestPool",
		map[string]any{"AddressSpace": "local", "Pool": subnet, "Options": options}).PoolID
}

// take is the address that a container of this name gets, as Docker from 29 on asks for it.
func (b *berth) take(t *testing.T, pool, name string) string {
	t.Helper()
	options := map[string]string{"com.docker.network.endpoint.name": name}
	address := b.call(t, "RequestAddress", map[string]any{"PoolID": pool, "Options": options}).Address
	address, _, _ = strings.Cut(address, "/")
	return address
}

func (b *berth) release(t *testing.T, pool, address string) {
	t.Helper()
	b.call(t, "ReleaseAddress", map[string]any{"PoolID": pool, "Address": address})
}
