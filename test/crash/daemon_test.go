package crash

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
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

	"berth/internal/admin/client"
)

// patience is far more than anything here takes. It only ends a test that would hang.
const patience = 60 * time.Second

// program is the daemon that TestMain builds.
var program string

func TestMain(m *testing.M) { os.Exit(buildAndRun(m)) }

func buildAndRun(m *testing.M) int {
	dir, err := os.MkdirTemp("", "berth-crash")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	program = filepath.Join(dir, "berth")
	// `go run` keeps the program that it has linked, which `go build` does not.
	if out, err := exec.Command("go", "run", "-exec", "cp", "berth/cmd/berth", program).CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "building the daemon: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// place is where a daemon lives over all its lives.
type place struct {
	t        testing.TB
	dir      string
	space    string   // that the tests work in
	reserved int      // in each subnet of a plan that is imported
	flags    []string // of the daemon, beside those of every one
	client   *http.Client
}

// newPlace is one whose daemon keeps everything in a file of its own.
func newPlace(t testing.TB) *place {
	t.Helper()
	dir, err := os.MkdirTemp("", "berth-crash") // the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	p := &place{t: t, dir: dir, space: "local", reserved: reserved()}
	transport := &http.Transport{
		MaxIdleConnsPerHost: 64,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", p.socket())
		},
	}
	p.client = &http.Client{Transport: transport, Timeout: patience}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		os.RemoveAll(dir)
	})
	return p
}

func (p *place) state() string  { return filepath.Join(p.dir, "state") }
func (p *place) db() string     { return filepath.Join(p.dir, "state", "berth.db") }
func (p *place) socket() string { return filepath.Join(p.dir, "berth.sock") }
func (p *place) admin() string  { return filepath.Join(p.dir, "admin.sock") }

// daemon is one life of Berth.
type daemon struct {
	*place
	cmd   *exec.Cmd
	log   lockedBuffer
	ended chan struct{} // closed when it has ended; then err is how
	err   error
}

// launch starts a daemon and does not wait for it. Words before are a program that starts it, such as strace.
func (p *place) launch(before ...string) *daemon {
	p.t.Helper()
	words := append(before, program, "serve", "--state", p.state(), "--plugin-socket", p.socket(), "--admin-socket",
		p.admin(), "--host", "alpha")
	words = append(words, p.flags...)
	d := &daemon{place: p, cmd: exec.Command(words[0], words[1:]...), ended: make(chan struct{})}
	d.cmd.Stdout, d.cmd.Stderr = &d.log, &d.log
	d.cmd.WaitDelay = time.Second
	if err := d.cmd.Start(); err != nil {
		p.t.Fatalf("start %s: %v (strace and a Go toolchain are needed)", words[0], err)
	}
	go func() {
		d.err = d.cmd.Wait()
		close(d.ended)
	}()
	p.t.Cleanup(d.kill)
	return d
}

// start starts a daemon and waits until it answers, and has reached the store that it shares where it does.
func (p *place) start() *daemon {
	p.t.Helper()
	d := p.launch()
	d.await(func() error {
		_, _, err := p.post("GetCapabilities", nil)
		return err
	})
	c := client.New(p.admin())
	defer c.Close()
	d.await(func() error {
		st, err := c.Status(p.t.Context())
		if err == nil && st.Cluster != nil && st.Cluster.Away != "" {
			err = errors.New(st.Cluster.Away)
		}
		return err
	})
	return d
}

// await tries until it is nil, and fails the test where the daemon ends before.
func (d *daemon) await(try func() error) {
	d.t.Helper()
	deadline := time.Now().Add(patience)
	for {
		err := try()
		if err == nil {
			return
		}
		select {
		case <-d.ended:
			d.t.Fatalf("the daemon ended (%v):\n%s", d.err, d.log.String())
		default:
		}
		if time.Now().After(deadline) {
			d.t.Fatalf("not within %s: %v\n%s", patience, err, d.log.String())
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// kill ends it as a crash does.
func (d *daemon) kill() {
	d.cmd.Process.Kill() // it may have ended already
	<-d.ended
}

// stop ends it in order.
func (d *daemon) stop() {
	d.t.Helper()
	if err := d.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		d.t.Fatalf("%v:\n%s", err, d.log.String())
	}
	select {
	case <-d.ended:
	case <-time.After(patience):
		d.t.Fatalf("it does not end in order:\n%s", d.log.String())
	}
	if d.err != nil {
		d.t.Errorf("it ended with %v:\n%s", d.err, d.log.String())
	}
}

// refusal is an error that the daemon answered with; any other error leaves the outcome open.
type refusal struct{ text string }

func (r *refusal) Error() string { return r.text }

// reply is what the calls answer with.
type reply struct{ PoolID, Pool, Address, Err string }

// call sends a message of the protocol.
func (p *place) call(method string, msg any) (reply, error) {
	body, err := json.Marshal(msg)
	if err != nil {
		p.t.Error(err)
	}
	status, r, err := p.post(method, body)
	switch {
	case err != nil:
		return r, err
	case status != http.StatusOK && r.Err != "":
		return r, &refusal{r.Err}
	case status != http.StatusOK:
		return r, fmt.Errorf("status %d without an error", status)
	}
	return r, nil
}

func (p *place) post(method string, body []byte) (status int, r reply, err error) {
	res, err := p.client.Post("http://berth/IpamDriver."+method, "application/json", bytes.NewReader(body))
	if err != nil {
		return 0, r, err
	}
	defer res.Body.Close()
	return res.StatusCode, r, json.NewDecoder(res.Body).Decode(&r)
}

// refused tells whether err is an answer, and its text.
func refused(err error) (text string, ok bool) {
	var r *refusal
	if errors.As(err, &r) {
		return r.text, true
	}
	return "", false
}

// fsck fails the test where the daemon finds contradictions in its file or its records.
func (d *daemon) fsck() {
	d.t.Helper()
	c := client.New(d.admin())
	defer c.Close()
	report, err := c.Fsck(d.t.Context())
	if err != nil || !report.OK || len(report.File.Problems) > 0 || len(report.Problems) > 0 {
		d.t.Errorf("fsck: %v\n%+v", err, report)
	}
}

// lockedBuffer takes a log while others read it.
type lockedBuffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
