package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"berth/test/lab"
)

// program builds Berth when the first benchmark needs it.
var program = sync.OnceValues(func() (string, error) {
	root, err := lab.Root()
	if err != nil {
		return "", err
	}
	path := filepath.Join(root, "build", "bench", "berth")
	return path, lab.Build(path, "bench")
})

// daemon is a process that answers on plugin.sock and admin.sock in its directory.
type daemon struct {
	dir string
	cmd *exec.Cmd
	http.Client
}

// serve starts a daemon without an engine.
func serve(b *testing.B, dir string, flags ...string) *daemon {
	b.Helper()
	path, err := program()
	must(b, err)
	return launch(b, dir, exec.Command(path, append([]string{"serve", "--state", filepath.Join(dir, "state"),
		"--plugin-socket", filepath.Join(dir, "plugin.sock"), "--admin-socket", filepath.Join(dir, "admin.sock"),
		"--log-level", "warning", "--docker-host", "none", "--host", "bench"}, flags...)...))
}

// launch starts a process, which ends with the benchmark, and waits until its plugin answers.
func launch(b *testing.B, dir string, cmd *exec.Cmd) *daemon {
	b.Helper()
	d := &daemon{dir: dir, cmd: cmd}
	d.Transport = &http.Transport{MaxIdleConnsPerHost: 64, DialContext: func(ctx context.Context, _, addr string) (net.Conn,
		error) {
		return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(dir, strings.TrimSuffix(addr, ":80")+".sock"))
	}}
	cmd.Stderr = os.Stderr
	must(b, cmd.Start())
	b.Cleanup(d.stop)
	for begun := time.Now(); ; time.Sleep(time.Millisecond) {
		_, err := d.post("plugin/IpamDriver.GetCapabilities", "")
		if err == nil {
			return d
		}
		if time.Since(begun) > 30*time.Second {
			b.Fatal("no answer: ", err)
		}
	}
}

func (d *daemon) stop() {
	_ = d.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	_ = d.cmd.Wait()
}

// berth runs a command against the daemon.
func (d *daemon) berth(b *testing.B, args ...string) string {
	b.Helper()
	path, err := program()
	must(b, err)
	cmd := exec.Command(path, append(args, "--admin-socket", filepath.Join(d.dir, "admin.sock"))...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	must(b, err)
	return string(out)
}

// answer holds the fields that the benchmarks read from any answer.
type answer struct{ PoolID, Address string }

// post sends a JSON text to SOCKET/PATH.
func (d *daemon) post(path, text string) (a answer, err error) {
	res, err := d.Post("http://"+path, "application/json", strings.NewReader(text))
	if err != nil {
		return a, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode >= 300 {
		err = fmt.Errorf("%s: %s", path, body)
	}
	if err != nil {
		return a, err
	}
	return a, json.Unmarshal(body, &a)
}

// get requests a path of the admin socket like a browser. It returns the transferred size of the answer, and the
// time to its first byte.
func (d *daemon) get(path string) (size int64, first time.Duration, err error) {
	req, err := http.NewRequest(http.MethodGet, "http://admin"+path, nil)
	if err != nil {
		return 0, 0, err
	}
	req.Header.Set("Accept-Encoding", "gzip")
	begun := time.Now()
	res, err := d.Do(req)
	if err != nil {
		return 0, 0, err
	}
	defer res.Body.Close()
	first = time.Since(begun)
	if size, err = io.Copy(io.Discard, res.Body); err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", path, res.Status)
	}
	return size, first, err
}

// pool requests a pool of a subnet.
func (d *daemon) pool(b *testing.B, subnet string) string {
	b.Helper()
	a, err := d.post("plugin/IpamDriver.RequestPool", fmt.Sprintf(`{"AddressSpace":"local","Pool":%q}`, subnet))
	must(b, err)
	return a.PoolID
}

// takes takes addresses of a pool for new containers.
func (d *daemon) takes(pool, name string) call {
	return func(int) error {
		_, err := d.take(pool, name)
		return err
	}
}

// take takes an address for a new container by its MAC and, like engines from 29 on, by a name with this prefix.
func (d *daemon) take(pool, name string) (string, error) {
	const of = "com.docker.network.endpoint."
	mac, more := newMAC(), ""
	if name != "" {
		more = fmt.Sprintf(`,"%sname":"%s-%x"`, of, name, mac[2:])
	}
	a, err := d.post("plugin/IpamDriver.RequestAddress",
		fmt.Sprintf(`{"PoolID":%q,"Options":{"%smacaddress":"%s"%s}}`, pool, of, mac, more))
	addr, _, _ := strings.Cut(a.Address, "/")
	return addr, err
}

// memory is the process's memory of a kind, by its name in the kernel's status, in MiB.
func (d *daemon) memory(b *testing.B, kind string) (mib float64) {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", d.cmd.Process.Pid))
	must(b, err)
	_, rest, _ := strings.Cut(string(text), kind+":")
	_, err = fmt.Sscan(rest, &mib)
	must(b, err)
	return mib / 1024
}
