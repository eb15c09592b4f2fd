//go:build upgrade

package upgrade

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"berth/test/lab"
)

// checkout is a directory with a commit of this repository.
func checkout(t *testing.T, ref string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "tree")
	run(t, ".", "git", "worktree", "add", "--quiet", "--detach", dir, ref)
	t.Cleanup(func() { run(t, ".", "git", "worktree", "remove", "--force", dir) })
	return dir
}

// build builds the Berth of a tree and returns its path.
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

// berth is a running daemon with clients of its sockets.
type berth struct {
	*lab.Process
	admin, plugin *http.Client
}

// start starts a Berth program on the state in a directory and waits until it is ready.
func start(t *testing.T, program, dir string) *berth {
	t.Helper()
	sockets, err := os.MkdirTemp("", "berth-up") // socket paths must be short
	lab.Must(t, err)
	t.Cleanup(func() { os.RemoveAll(sockets) })
	admin, plugin := filepath.Join(sockets, "admin.sock"), filepath.Join(sockets, "berth.sock")
	b := &berth{admin: lab.Over(admin), plugin: lab.Over(plugin)}
	b.Process = lab.Start(t, exec.Command(program, "serve", "--state", filepath.Join(dir, "state"), "--host", "alpha",
		"--docker-host", "none", "--plugin-socket", plugin, "--admin-socket", admin, "--log-level", "warning"))
	b.Await(t, func() error {
		answer, err := b.admin.Get("http://berth/readyz")
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			return errors.New(answer.Status)
		}
		return nil
	})
	return b
}

// do returns the answer to a request, which must succeed.
func (b *berth) do(t *testing.T, to *http.Client, method, path, body string) []byte {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, "http://berth"+path, strings.NewReader(body))
	lab.Must(t, err)
	r.Header.Set("Content-Type", "application/json")
	answer, err := to.Do(r)
	lab.Must(t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%s %s: %s, %v\n%s", method, path, answer.Status, err, text)
	}
	return text
}

// list returns the list of the admin API at a path.
func (b *berth) list(t *testing.T, path string) []map[string]any {
	t.Helper()
	var lists map[string]json.RawMessage
	lab.Must(t, json.Unmarshal(b.do(t, b.admin, "GET", path, ""), &lists))
	for _, list := range lists {
		var items []map[string]any
		if json.Unmarshal(list, &items) == nil {
			return items
		}
	}
	t.Fatalf("GET %s has no list", path)
	return nil
}

// call makes a call of Docker's IPAM protocol, with the messages of docker/go-plugins-helpers.
func (b *berth) call(t *testing.T, method string, message any) (answer struct{ PoolID, Address string }) {
	t.Helper()
	lab.Must(t, lab.Call(b.plugin, method, message, &answer))
	return answer
}

// pool returns the id of a pool for a subnet. The subnet may belong to a planned network.
func (b *berth) pool(t *testing.T, subnet, network string) string {
	t.Helper()
	options := map[string]string{}
	if network != "" {
		options["network"] = network
	}
	return b.call(t, "RequestPool",
		map[string]any{"AddressSpace": "local", "Pool": subnet, "Options": options}).PoolID
}

// take returns the address of a container with this name, requested as Docker from 29 on does.
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
