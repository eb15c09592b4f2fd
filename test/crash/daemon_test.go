package crash

import (
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"berth/internal/admin/client"
	"berth/test/lab"
)

// patience is far more than anything here takes. It only ends a test that would hang.
const patience = 60 * time.Second

// program is the daemon that TestMain builds.
var program string

func TestMain(m *testing.M) { os.Exit(lab.Main(m, &program)) }

// place is where a daemon lives over all its lives.
type place struct {
	t        testing.TB
	dir      string
	space    string   // that the tests work in
	reserved int      // in each subnet of a plan that is imported
	flags    []string // of the daemon, beside those of every one
	driver   *http.Client
}

// newPlace is one whose daemon keeps everything in a file of its own.
func newPlace(t testing.TB) *place {
	t.Helper()
	dir, err := os.MkdirTemp("", "berth-crash") // the path of a socket must be short
	lab.Must(t, err)
	p := &place{t: t, dir: dir, space: "local", reserved: reserved()}
	p.driver = lab.Over(p.socket())
	t.Cleanup(func() { os.RemoveAll(dir) })
	return p
}

func (p *place) state() string  { return filepath.Join(p.dir, "state") }
func (p *place) db() string     { return filepath.Join(p.dir, "state", "berth.db") }
func (p *place) socket() string { return filepath.Join(p.dir, "berth.sock") }
func (p *place) admin() string  { return filepath.Join(p.dir, "admin.sock") }

// daemon is one life of Berth.
type daemon struct {
	*place
	*lab.Process
}

// launch starts a daemon and does not wait for it. Words before are a program that starts it, such as strace.
func (p *place) launch(before ...string) *daemon {
	p.t.Helper()
	words := append(before, program, "serve", "--state", p.state(), "--plugin-socket", p.socket(), "--admin-socket",
		p.admin(), "--host", "alpha")
	words = append(words, p.flags...)
	return &daemon{place: p, Process: lab.Start(p.t, exec.Command(words[0], words[1:]...))}
}

// start starts a daemon and waits until it answers, and has reached the store that it shares where it does.
func (p *place) start() *daemon {
	p.t.Helper()
	d := p.launch()
	d.Await(d.t, func() error {
		return lab.Call(p.driver, "GetCapabilities", nil, nil)
	})
	c := client.New(p.admin())
	defer c.Close()
	d.Await(d.t, func() error {
		st, err := c.Status(p.t.Context())
		if err == nil && st.Cluster != nil && st.Cluster.Away != "" {
			err = errors.New(st.Cluster.Away)
		}
		return err
	})
	return d
}

// reply is what the calls answer with.
type reply struct{ PoolID, Pool, Address string }

// call sends a message of the protocol.
func (p *place) call(method string, message any) (r reply, err error) {
	err = lab.Call(p.driver, method, message, &r)
	return r, err
}

// refused reports whether err is an answer, and its text.
func refused(err error) (text string, ok bool) {
	var r lab.Refused
	ok = errors.As(err, &r)
	return string(r), ok
}

// fsck fails the test if the daemon finds contradictions in its file or its records.
func (d *daemon) fsck() {
	d.t.Helper()
	c := client.New(d.admin())
	defer c.Close()
	report, err := c.Fsck(d.t.Context())
	if err != nil || !report.OK || len(report.File.Problems) > 0 || len(report.Problems) > 0 {
		d.t.Errorf("fsck: %v\n%+v", err, report)
	}
}
