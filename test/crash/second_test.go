package crash

import (
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestSecondDaemon: a second daemon on the same state ends with an error that names the first, which serves on,
// whatever sockets the second one was given.
func TestSecondDaemon(t *testing.T) {
	for _, own := range []bool{false, true} {
		p := newPlace(t)
		l := newLedger(p)
		first := p.start()
		shared, err := l.attach("10.9.0.0/22", nil)
		if err != nil {
			t.Fatal(err)
		}
		busy(l, shared.id, 20)
		plugin, admin := p.socket(), p.admin()
		if own {
			plugin, admin = filepath.Join(p.dir, "second.sock"), filepath.Join(p.dir, "second-admin.sock")
		}
		out, err := exec.Command(program, "serve", "--state", p.state(), "--plugin-socket", plugin, "--admin-socket",
			admin).CombinedOutput()
		if err == nil {
			t.Fatalf("the second one ended without an error: %s", out)
		}
		for _, part := range []string{strconv.Itoa(first.cmd.Process.Pid), p.state(), "in use"} {
			if !strings.Contains(string(out), part) {
				t.Errorf("the second one says %q; want %q in it", out, part)
			}
		}
		l.verify()
		first.fsck()
		first.kill()
		next := p.start() // the lock of one that was killed keeps nobody out
		l.verify()
		next.stop()
	}
}
