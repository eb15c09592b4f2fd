package crash

import (
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"berth/test/lab"
)

// losses are the ways to lose the state's file under a running daemon, and how it comes back.
var losses = []struct {
	name string
	take func(p *place) error
	back func(t *testing.T, d *daemon) *daemon
}{
	{"file gone, written again", func(p *place) error { return os.RemoveAll(p.state()) }, savedAnew},
	{"file gone, restored from a backup", func(p *place) error { return os.RemoveAll(p.state()) }, restored},
	{"file exchanged, written again", exchange, savedAnew},
	{"file exchanged, restored from a backup", exchange, restored},
	{"file moved, and moved back", func(p *place) error { return os.Rename(p.db(), p.db()+".away") },
		func(t *testing.T, d *daemon) *daemon {
			lab.Check(t, os.Rename(d.db()+".away", d.db()))
			return d
		}},
}

// TestFileTakenAway removes the state's file while 16 callers work. From then on no call is acknowledged, and
// readyz, status and fsck say so. Addresses acknowledged earlier are neither lost nor given again, however the
// file comes back.
func TestFileTakenAway(t *testing.T) {
	for _, c := range losses {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			l := newLedger(p)
			d := p.start()
			shared, err := l.attach("10.9.0.0/22", map[string]string{"sticky": "off"})
			lab.Must(t, err)
			busy(l, shared.id, 100)
			stop := make(chan struct{})
			wait := work(l, shared.id, 1, stop)
			lab.Must(t, c.take(p))
			d.Await(d.t, func() error { return wantAnswer(p, http.StatusServiceUnavailable, "not ready: ") })
			close(stop)
			wait()
			wantRefused(t, d, l, shared.id)
			d = c.back(t, d)
			if err := wantAnswer(p, http.StatusOK, "ready"); err != nil {
				// a commit happened at that moment
				if !strings.Contains(err.Error(), "until the daemon restarts") {
					t.Error(err)
				}
				d.Kill()
				d = p.start()
			}
			busy(l, shared.id, 50) // it continues, and gives no held address
			d.Kill()
			d = p.start()
			l.verify()
			d.fsck()
			d.Stop(d.t)
		})
	}
}

// exchange replaces the state's file with a backup.
func exchange(p *place) error {
	copied := filepath.Join(p.dir, "copy")
	if out, err := exec.Command(program, "state", "backup", copied, "--admin-socket", p.admin()).CombinedOutput(); err != nil {
		p.t.Errorf("backup: %v\n%s", err, out)
	}
	return os.Rename(copied, p.db())
}

// wantRefused checks a daemon without its file: its refusal, its output and its log.
func wantRefused(t *testing.T, d *daemon, l *ledger, pool string) {
	t.Helper()
	_, err := l.take(pool, "")
	text, ok := refused(err)
	if !ok || !strings.Contains(text, "not in its place") || !strings.Contains(text, d.db()) ||
		!strings.Contains(text, "berth state save") {
		t.Errorf("a take is answered with %v", err)
	}
	for verb, says := range map[string]string{"status": "Store:     refuses writes: ", "state check": "berth state save"} {
		if out := d.berth(strings.Fields(verb)...); !strings.Contains(out, says) || !strings.Contains(out, "not in its place") {
			t.Errorf("`berth %s` says:\n%s", verb, out)
		}
	}
	if log := d.Log(); !strings.Contains(log, "level=error") || !strings.Contains(log, "not in its place") {
		t.Errorf("the log:\n%s", log)
	}
}

// savedAnew makes the daemon write its state to its path.
func savedAnew(t *testing.T, d *daemon) *daemon {
	if out := d.berth("state", "save"); !strings.Contains(out, d.db()+": ") ||
		!strings.Contains(out, " records, store ") {
		t.Errorf("`berth state save` says:\n%s", out)
	}
	return d
}

// restored makes a backup, ends the daemon, and restores the backup over the current state.
func restored(t *testing.T, d *daemon) *daemon {
	backup := filepath.Join(d.dir, "backup")
	if out := d.berth("state", "backup", backup); !strings.Contains(out, " records, ") {
		t.Errorf("`berth state backup` says:\n%s", out)
	}
	d.Kill()
	if out := d.berth("state", "restore", backup, "--state", d.state(), "--force"); !strings.Contains(out, " records, store ") {
		t.Errorf("`berth state restore` says:\n%s", out)
	}
	return d.start()
}

// berth runs a command against the daemon and returns its output, even after a failure.
func (d *daemon) berth(args ...string) string {
	d.t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Env = append(os.Environ(), "BERTH_ADMIN_SOCKET="+d.admin())
	out, err := cmd.CombinedOutput()
	if err != nil {
		return string(out) + err.Error()
	}
	return string(out)
}

// wantAnswer checks the daemon's readyz.
func wantAnswer(p *place, status int, begins string) error {
	res, err := lab.Over(p.admin()).Get("http://berth/readyz")
	if err != nil {
		return err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err == nil && (res.StatusCode != status || !strings.HasPrefix(string(body), begins)) {
		err = lab.Refused("readyz: " + res.Status + " " + string(body))
	}
	return err
}
