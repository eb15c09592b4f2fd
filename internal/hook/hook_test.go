package hook

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"berth/internal/ipam"

	"golang.org/x/sys/unix"
)

// GA-25: the hooks run in the order of their names, on each take and release since they began to follow. They get
// the variables and nothing else.
func TestVariables(t *testing.T) {
	h := start(t)
	h.install(t, "20-dump", "10-dump")
	t.Setenv("SECRET", "of the daemon")
	h.follow(t)
	h.take(t, "inst")
	h.release(t, "inst")
	for range 4 {
		h.logged(t, "a hook ran")
	}
	var got []string
	for call := range strings.SplitSeq(strings.TrimSpace(h.out(t)), "\n\n") {
		lines := strings.Split(call, "\n")
		event := lines[slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, "BERTH_EVENT=") })]
		got = append(got, lines[0]+" "+event)
		for _, want := range []string{
			"BERTH_ADDRESS=10.1.0.3", "BERTH_SUBNET=10.1.0.0/16", "BERTH_SPACE=local", "BERTH_NETWORK=net1",
			"BERTH_OWNER=inst", "BERTH_KIND=external",
			"BERTH_HOST=alpha", "INSTANCE_NAME=inst", "INSTANCE_NIC_COUNT=1", "INSTANCE_NIC0_IP=10.1.0.3",
			"INSTANCE_NIC0_IP:0=10.1.0.3",
			"INSTANCE_NIC0_NETWORK_SUBNET:0=10.1.0.0/16", "INSTANCE_NIC0_NETWORK_GATEWAY:0=10.1.0.1",
			"INSTANCE_NIC0_NETWORK_DHCP:0=false",
			"INSTANCE_NIC0_NETWORK_NAME=net1", "INSTANCE_NIC0_NETWORK_TAGS=site=a", path,
		} {
			if !slices.Contains(lines, want) {
				t.Errorf("%s is not among\n%s", want, call)
			}
		}
		for _, line := range lines[1:] {
			if !strings.HasPrefix(line, "BERTH_") && !strings.HasPrefix(line, "INSTANCE_") && line != path {
				t.Errorf("a hook has %s of the daemon's environment", line)
			}
		}
	}
	want := []string{"10-dump BERTH_EVENT=lease.take", "20-dump BERTH_EVENT=lease.take",
		"10-dump BERTH_EVENT=lease.release", "20-dump BERTH_EVENT=lease.release"}
	if !slices.Equal(got, want) {
		t.Errorf("it ran %q, want %q", got, want)
	}
	if c := h.hooks.Counts(); c != (Counts{Runs: 4}) {
		t.Errorf("counted %+v", c)
	}
}

// GA-25: a hook of /bin/sh, which may drop names with a colon, gets each address of an interface by its number,
// and the first one by the plain name.
func TestVariablesOfAShell(t *testing.T) {
	h := start(t)
	h.script(t, "10-names",
		`echo "$INSTANCE_NIC0_IP $INSTANCE_NIC0_IP_0 $INSTANCE_NIC0_IP_1 $INSTANCE_NIC0_NETWORK_SUBNET_1 `+
			`$INSTANCE_NIC0_NETWORK_GATEWAY_1 $INSTANCE_NIC0_NETWORK_DHCP_1" >>"${0%/*}/../out"`)
	h.follow(t)
	wishes := []ipam.Wish{{Address: netip.MustParseAddr("10.1.0.9")},
		{Slot: 1, Address: netip.MustParseAddr("10.1.0.8")}}
	_, err := h.service.Edit(t.Context(), ipam.EditOptions{},
		&ipam.TakeAddress{Network: "net1", Owner: "inst", Interface: ipam.Interface{Wishes: wishes}})
	must(t, err)
	const line = "10.1.0.9 10.1.0.9 10.1.0.8 10.1.0.0/16 10.1.0.1 false\n"
	for range wishes {
		h.logged(t, "a hook ran")
	}
	if got := h.out(t); got != line+line {
		t.Errorf("the hook has\n%swant\n%s", got, line+line)
	}
}

// A hook that fails is logged with its output and counted, and the next one runs all the same.
func TestFailures(t *testing.T) {
	h := start(t)
	h.install(t, "1-fail", "3-dump")
	h.script(t, "2-nothing", "")
	must(t, os.WriteFile(filepath.Join(h.dir, "2-nothing"), []byte("#!/no/such/interpreter\n"), 0o755))
	h.follow(t)
	h.take(t, "inst")
	failed := h.logged(t, "a hook failed")
	if failed.Data["output"] != "it hurts" || failed.Data["hook"] != filepath.Join(h.dir, "1-fail") ||
		!strings.Contains(fmt.Sprint(failed.Data["error"]), "exit status 3") {
		t.Errorf("logged %v", failed.Data)
	}
	failed = h.logged(t, "a hook failed")
	if !strings.Contains(fmt.Sprint(failed.Data["error"]), "no such file") {
		t.Errorf("logged %v", failed.Data)
	}
	h.logged(t, "a hook ran")
	if c := h.hooks.Counts(); c != (Counts{Runs: 3, Failures: 2}) {
		t.Errorf("counted %+v", c)
	}
}

// A hook that hangs is killed at its time limit, with the processes it has started. The next one runs.
func TestHanging(t *testing.T) {
	h := start(t)
	h.install(t, "1-hang", "99-hold")
	must(t, os.Rename(filepath.Join(h.dir, "99-hold"), filepath.Join(h.root, "99-hold")))
	fifo := filepath.Join(h.root, "fifo")
	must(t, unix.Mkfifo(fifo, 0o600))
	over := make(chan time.Time, 1)
	h.hooks.cfg.After = func(time.Duration) <-chan time.Time { return over }
	h.follow(t)
	h.take(t, "inst")
	_, err := os.ReadFile(fifo) // until it hangs
	must(t, err)
	over <- time.Now()
	failed := h.logged(t, "a hook failed")
	if err, ok := failed.Data["error"].(error); !ok || !errors.Is(err, errLate) {
		t.Errorf("logged %v", failed.Data)
	}
	lock(filepath.Join(h.root, "lock")) // released when the hook's child ends
	kept.Close()
	must(t, os.Remove(filepath.Join(h.dir, "1-hang")))
	h.script(t, "2-next", "")
	h.release(t, "inst")
	h.logged(t, "a hook ran")
	if c := h.hooks.Counts(); c != (Counts{Runs: 2, Failures: 1}) {
		t.Errorf("counted %+v", c)
	}
}

// What a hook leaves running ends with it.
func TestLeftBehind(t *testing.T) {
	h := start(t)
	h.install(t, "1-leave", "99-hold")
	must(t, os.Rename(filepath.Join(h.dir, "99-hold"), filepath.Join(h.root, "99-hold")))
	h.follow(t)
	h.take(t, "inst")
	h.logged(t, "a hook ran")
	lock(filepath.Join(h.root, "lock"))
	kept.Close()
}

func TestOutput(t *testing.T) {
	h := start(t)
	h.install(t, "1-noise", "2-binary")
	h.follow(t)
	h.take(t, "inst")
	if got, want := h.logged(t, "a hook ran").Data["output"],
		fmt.Sprintf("%s ... and %d bytes more", strings.Repeat("x", maxOutput), 1<<20-maxOutput); got != want {
		t.Errorf("of much output %d bytes are logged", len(fmt.Sprint(got)))
	}
	if got := h.logged(t, "a hook ran").Data["output"]; got != "a?\x00\nb" {
		t.Errorf("logged %q", got)
	}
}

// The directory is read for each event. A file that may not run is reported once.
func TestChangingDirectory(t *testing.T) {
	h := start(t)
	h.script(t, "one", "")
	h.follow(t)
	ran := func(step string, want ...string) {
		t.Helper()
		h.take(t, step)
		for _, name := range want {
			if got := h.logged(t, "a hook ran").Data["hook"]; got != filepath.Join(h.dir, name) {
				t.Errorf("%s: it ran %v, want %s", step, got, name)
			}
		}
	}
	ran("first", "one")
	h.script(t, "a", "")
	ran("added", "a", "one")
	must(t, os.Remove(filepath.Join(h.dir, "one")))
	ran("removed", "a")
	must(t, os.Symlink("a", filepath.Join(h.dir, "link")))
	must(t, os.Mkdir(filepath.Join(h.dir, "dir"), 0o755))
	h.script(t, "writable", "")
	must(t, os.Chmod(filepath.Join(h.dir, "writable"), 0o775))
	h.script(t, "text", "")
	must(t, os.Chmod(filepath.Join(h.dir, "text"), 0o644))
	h.take(t, "refused")
	var told []string
	for range 4 {
		e := h.logged(t, "does not run as a hook")
		told = append(told, filepath.Base(fmt.Sprint(e.Data["file"]))+
			strings.TrimPrefix(e.Message, "this file does not run as a hook: it"))
	}
	if want := []string{"dir is not a regular file", "link is not a regular file",
		"text is not executable: chmod +x it",
		"writable is writable for users other than its owner: chmod go-w it"}; !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
	must(t, os.Chmod(filepath.Join(h.dir, "text"), 0o755))
	ran("mended", "a", "a", "text") // the first run is for the refused event
	must(t, os.Chmod(h.dir, 0o777))
	h.take(t, "open")
	if e := h.logged(t, "no hook ran"); !strings.Contains(fmt.Sprint(e.Data["error"]), "is writable for users other") {
		t.Errorf("logged %v", e.Data)
	}
	must(t, os.Chmod(h.dir, 0o755))
	ran("closed", "a", "text")
	for len(h.log) > 0 {
		if e := <-h.log; strings.Contains(e.Message, "does not run") {
			t.Errorf("told again: %s %v", e.Message, e.Data)
		}
	}
	if c := h.hooks.Counts(); c.Failures != 1 {
		t.Errorf("counted %+v", c)
	}
}

// Only files that root or the daemon's user owns are run.
func TestOwners(t *testing.T) {
	file := filepath.Join(t.TempDir(), "hook")
	must(t, os.WriteFile(file, nil, 0o755))
	own := os.Geteuid()
	stranger := own
	if own == 0 {
		stranger = 4242
		must(t, os.Chown(file, stranger, -1))
	}
	for uid, ok := range map[int]bool{stranger: true, stranger + 1: false} {
		if err := trusted(file, uid); (err == nil) != ok {
			t.Errorf("a file of uid %d for a daemon of uid %d: %v", stranger, uid, err)
		}
	}
	if err := trusted("/bin/sh", stranger+1); err != nil && !strings.Contains(err.Error(), "regular") {
		t.Errorf("a file of root: %v", err)
	}
}

// A path that is no directory, or a directory that others may write to, is refused at once.
func TestOpenRefuses(t *testing.T) {
	h := start(t)
	cfg := h.hooks.cfg
	for dir, want := range map[string]string{
		filepath.Join(h.root, "nothing"): "no such file", filepath.Join(h.root, "file"): "is not a directory",
		filepath.Join(h.root, "open"): "writable for users other",
	} {
		must(t, os.WriteFile(filepath.Join(h.root, "file"), nil, 0o755))
		if err := os.Mkdir(filepath.Join(h.root, "open"), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			t.Fatal(err)
		}
		must(t, os.Chmod(filepath.Join(h.root, "open"), 0o777))
		cfg.Dir = dir
		if _, err := Open(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), dir) {
			t.Errorf("%s: %v", dir, err)
		}
	}
}

// A follower that has fallen behind by more than it reads at a time continues from the records: each event once,
// in order. Requests for addresses did not wait for it.
func TestFallenBehind(t *testing.T) {
	h := start(t)
	const events = 300
	must(t, unix.Mkfifo(filepath.Join(h.root, "fifo"), 0o600))
	h.install(t, "1-wait")
	h.follow(t)
	h.take(t, "held-up")
	fifo, err := os.OpenFile(filepath.Join(h.root, "fifo"), os.O_WRONLY, 0) // now the hook runs
	must(t, err)
	var want []string
	for i := range events {
		h.take(t, "inst"+strconv.Itoa(i))
		want = append(want, "inst"+strconv.Itoa(i))
	}
	must(t, os.Remove(filepath.Join(h.dir, "1-wait")))
	h.script(t, "2-list", `echo "$BERTH_OWNER" >>"${0%/*}/../out"`)
	must(t, fifo.Close())
	for range events + 1 {
		h.logged(t, "a hook ran")
	}
	if got := strings.Fields(h.out(t)); !slices.Equal(got, want) {
		t.Errorf("%d events were told: %q", len(got), got)
	}
}

// At the end the running hook may finish, and no other one runs.
func TestEnd(t *testing.T) {
	h := start(t)
	must(t, unix.Mkfifo(filepath.Join(h.root, "fifo"), 0o600))
	h.install(t, "1-wait")
	h.script(t, "2-next", "")
	h.follow(t)
	h.take(t, "inst")
	fifo, err := os.OpenFile(filepath.Join(h.root, "fifo"), os.O_WRONLY, 0)
	must(t, err)
	h.take(t, "late")
	h.cancel()
	must(t, fifo.Close())
	h.stop()
	if c := h.hooks.Counts(); c != (Counts{Runs: 1}) {
		t.Errorf("counted %+v", c)
	}
}
