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

// patience is far longer than anything here takes. It only ends a hanging test.
const patience = 60 * time.Second

// program is the daemon that TestMain builds.
var program string

func TestMain(m *testing.M) { os.Exit(lab.Main(m, &program)) }

// place is a daemon's directory and settings across its restarts.
type place struct {
	t        testing.TB
	dir      string
	space    string   // the space of the tests
	reserved int      // in each subnet of the imported plan
	flags    []string // the daemon's additional flags
	driver   *http.Client
}

// newPlace makes a place whose daemon keeps everything in its own file.
func newPlace(t testing.TB) *place {
	t.Helper()
	dir, err := os.MkdirTemp("", "berth-crash") // socket paths must be short
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

// daemon is one run of Berth.
type daemon struct {
	*place
	*lab.Process
}

// launch starts a daemon without waiting for it. The words before name a program that starts it, such as strace.
func (p *place) launch(before ...string) *daemon {
	p.t.Helper()
	words := append(before, program, "serve", "--state", p.state(), "--plugin-socket", p.socket(), "--admin-socket",
		p.admin(), "--host", "alpha")
	words = append(words, p.flags...)
	return &daemon{place: p, Process: lab.Start(p.t, exec.Command(words[0], words[1:]...))}
}

// start starts a daemon and waits until it answers, and has reached its shared store if it has one.
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

// reply is the answer to a call.
type reply struct{ PoolID, Pool, Address string }

// call sends a message of the protocol.
func (p *place) call(method string, message any) (r reply, err error) {
	err = lab.Call(p.driver, method, message, &r)
	return r, err
}

// refused reports whether err is a daemon's refusal, and its text.
func refused(err error) (text string, ok bool) {
	var r lab.Refused
	ok = errors.As(err, &r)
	return string(r), ok
}

// fsck fails the test if the daemon finds contradictions in its file or records.
func (d *daemon) fsck() {
	d.t.Helper()
	c := client.New(d.admin())
	defer c.Close()
	report, err := c.Fsck(d.t.Context())
	if err != nil || !report.OK || len(report.File.Problems) > 0 || len(report.Problems) > 0 {
		d.t.Errorf("fsck: %v\n%+v", err, report)
	}
}
