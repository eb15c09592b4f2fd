package crash

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"berth/test/lab"
)

// fault is a failing system call on the state file, with the words that a user must see.
type fault struct {
	call  string
	error string
	says  []string
	heals bool   // it continues by itself once the disk works again; false: it may need a restart
	when  string // which of a thread's calls fail, in strace's syntax; empty: all
}

// runtimeFaults are the calls of a running daemon on its file: writing pages, growing the file, and syncing after
// each.
var runtimeFaults = []fault{
	{"pwrite64", "ENOSPC", []string{"no space left", "make room", "continues by itself"}, true, ""},
	{"ftruncate", "ENOSPC", []string{"no space left", "make room", "continues by itself"}, true, ""},
	{"pwrite64", "EIO", []string{"input/output error", "unknown", "restarts"}, false, ""},
	{"ftruncate", "EIO", []string{"input/output error", "unknown", "restarts"}, false, ""},
	{"fdatasync", "EIO", []string{"input/output error", "unknown", "restarts"}, false, ""},
	{"fdatasync", "ENOSPC", []string{"no space left"}, false, ""},
	{"fsync", "EIO", []string{"input/output error", "unknown", "restarts"}, false, ""},
	{"fsync", "ENOSPC", []string{"no space left"}, false, ""},
	// In the middle of a commit: only some pages are written, or the pages are synced but the commit mark is not.
	{"fdatasync", "EIO", []string{"input/output error", "unknown", "restarts"}, false, "2+2"},
	{"fdatasync", "ENOSPC", []string{"no space left"}, false, "2+2"},
	{"pwrite64", "EIO", []string{"input/output error", "unknown", "restarts"}, false, "3+5"},
	{"pwrite64", "ENOSPC", []string{"no space left"}, false, "3+5"},
}

// TestDisk fails each kind of system call on the state file while 16 callers work. No acknowledged change is lost,
// the refusal says why and what to do, and after a restart everything is there.
func TestDisk(t *testing.T) {
	random := rand.New(rand.NewPCG(drawnSeed(t), 4))
	chosen := random.IntN(len(runtimeFaults))
	for i, f := range runtimeFaults {
		if testing.Short() && i != chosen && random.IntN(4) > 0 { // under -short a quarter, and at least one
			continue
		}
		t.Run(strings.TrimSpace(f.call+" "+f.error+" "+f.when), func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			l := newLedger(p)
			d := p.start()
			shared, err := l.attach("10.9.0.0/22", map[string]string{"sticky": "off"})
			lab.Must(t, err)
			busy(l, shared.id, 100)
			if f.call == "ftruncate" || f.call == "fsync" {
				fill(l)
			}

			release := d.inject(f)
			says := untilRefused(l, shared.id)
			// If only growing or only some writes fail, other calls still succeed.
			if partly := f.when != "" || f.call == "ftruncate" || f.call == "fsync"; !partly || f.error != "ENOSPC" {
				if err := wantAnswer(p, http.StatusServiceUnavailable, "not ready: "); err != nil {
					t.Errorf("the store refuses writes, and %v", err)
				}
				if status := d.berth("status"); !strings.Contains(status, "Store:     refuses writes: ") {
					t.Errorf("`berth status` says:\n%s", status)
				}
			}
			if !release() {
				t.Fatalf("the fault was not in force; refused with %q", says)
			}
			for _, part := range append(f.says, p.db()) {
				if !strings.Contains(says, part) {
					t.Errorf("the refusal says %q; want %q in it", says, part)
				}
			}
			le, err := l.take(shared.id, "")
			switch {
			case f.heals && err != nil:
				t.Errorf("the disk works again, and it does not go on: %v", err)
			case f.heals:
				l.mustGive(le)
				if err := wantAnswer(p, http.StatusOK, "ready"); err != nil {
					t.Errorf("it goes on, and %v", err)
				}
			case err == nil && strings.Contains(says, "unknown"):
				t.Error("it went on though it had said that it cannot know what the disk holds")
			}
			d.Kill()
			d = p.start()
			l.verify()
			d.fsck()
			busy(l, shared.id, 50)
			d.Stop(d.t)
		})
	}
}

// busy lets all callers work until n calls have been acknowledged.
func busy(l *ledger, shared string, n int) {
	l.t.Helper()
	stop := make(chan struct{})
	l.wakeAfter(n)
	wait := work(l, shared, 1, stop)
	select {
	case <-l.wake:
	case <-time.After(patience):
		l.t.Error("the callers hear nothing")
	}
	close(stop)
	wait()
}

// inject fails all further calls of one kind on the state file. The returned function ends that and reports
// whether any call failed.
func (d *daemon) inject(f fault) (release func() bool) {
	d.t.Helper()
	trace := filepath.Join(d.dir, "trace")
	inject := "inject=" + f.call + ":error=" + f.error
	if f.when != "" {
		inject += ":when=" + f.when
	}
	cmd := exec.Command("strace", "-f", "-o", trace, "-P", d.db(), "-e", "trace="+f.call, "-e", inject, "-p",
		strconv.Itoa(d.Cmd.Process.Pid))
	tracer := lab.Start(d.t, cmd)
	d.Await(d.t, func() error {
		if !strings.Contains(tracer.Log(), "attached") {
			return fmt.Errorf("strace has not attached: %s", tracer.Log())
		}
		return nil
	})
	return func() bool {
		tracer.Signal(d.t, syscall.SIGINT) // it detaches from the daemon
		select {
		case <-tracer.Ended():
		case <-time.After(patience):
			d.t.Error("strace does not end")
		}
		log, err := os.ReadFile(trace)
		lab.Check(d.t, err)
		return bytes.Contains(log, []byte("(INJECTED)"))
	}
}

// untilRefused lets all callers work, while networks with large tags grow the file. It returns the first refusal
// that names the state file, whichever caller got it: a single failure reaches only the callers of its batch.
func untilRefused(l *ledger, shared string) string {
	l.t.Helper()
	stop := make(chan struct{})
	wait := work(l, shared, 2, stop)
	defer wait()
	defer close(stop)
	deadline := time.Now().Add(patience)
	for i := 0; time.Now().Before(deadline); i++ {
		err := attachLarge(l, fmt.Sprintf("10.50.%d.0/24", i))
		if text, ok := refused(err); ok {
			return text
		}
		if text := l.noted(); text != "" {
			return text
		}
		if err != nil {
			l.t.Errorf("neither answered nor refused: %v", err)
			return err.Error()
		}
		if i == 250 {
			l.t.Error("250 large networks were made and nothing failed")
			return ""
		}
	}
	l.t.Error("nothing was refused")
	return ""
}

// attachLarge makes a network with 32 KB of tags.
func attachLarge(l *ledger, cidr string) error {
	large := map[string]string{}
	for i := range 128 {
		large[fmt.Sprintf("tag.note%d", i)] = strings.Repeat("n", 250)
	}
	_, err := l.attach(cidr, large)
	return err
}

// fill makes large networks until the file is about to grow. A traced daemon would be slow at that.
func fill(l *ledger) {
	l.t.Helper()
	for i := 0; i < 250; i++ {
		lab.Must(l.t, attachLarge(l, fmt.Sprintf("10.51.%d.0/24", i)))
		if unused(l.place) < 256<<10 {
			return
		}
	}
	l.t.Fatal("250 large networks do not fill the file")
}

// unused is the number of bytes at the file's end that bbolt has never used, by its meta pages.
func unused(p *place) int64 {
	p.t.Helper()
	f, err := os.Open(p.db())
	lab.Must(p.t, err)
	defer f.Close()
	info, err := f.Stat()
	lab.Must(p.t, err)
	page := int64(os.Getpagesize())
	var used int64
	for meta := range int64(2) {
		var pages [8]byte // after the page header: magic, version, size, flags, root, sequence, freelist
		if _, err := f.ReadAt(pages[:], meta*page+16+4*4+3*8); err != nil {
			p.t.Fatal(err)
		}
		used = max(used, int64(binary.NativeEndian.Uint64(pages[:]))*page)
	}
	return info.Size() - used
}

// startFaults are files and calls on them during a start: with a new state alone, or with a used one, too.
const startFaults = `
	berth.lock used openat flock ftruncate pwrite64
	berth.db used openat flock newfstatat fstat pread64 mmap
	berth.db new pwrite64 fdatasync
	berth.db.new new openat pwrite64 ftruncate fsync renameat
	berth.id used openat
	berth.id.new new openat write fsync renameat
	. new fsync
`

// TestDiskAtStart fails each call of a start, with a new state and with a used one. The daemon says which file and
// why, or starts anyway. The next start finds everything, and never an empty state.
func TestDiskAtStart(t *testing.T) {
	random := rand.New(rand.NewPCG(drawnSeed(t), 3)) // a fifth of the cases under -short
	for _, fresh := range []bool{true, false} {
		for row := range strings.Lines(strings.TrimSpace(startFaults)) {
			words := strings.Fields(row)
			on, used := words[0], words[1] == "used"
			for _, call := range words[2:] {
				for _, errno := range []string{"EIO", "ENOSPC"} {
					if !fresh && !used || errno == "ENOSPC" && used { // only calls that create a file need room
						continue
					}
					if testing.Short() && random.IntN(5) > 0 {
						continue
					}
					t.Run(fmt.Sprintf("fresh %v, %s %s %s", fresh, call, on, errno), func(t *testing.T) {
						t.Parallel()
						failsAtStart(t, fresh, call, on, errno)
					})
				}
			}
		}
	}
}

func failsAtStart(t *testing.T, fresh bool, call, on, errno string) {
	p := newPlace(t)
	l := newLedger(p)
	if !fresh {
		d := p.start()
		shared, err := l.attach("10.9.0.0/22", nil)
		lab.Must(t, err)
		busy(l, shared.id, 20)
		d.Kill()
	}
	p.startWith(call, filepath.Join(p.state(), on), errno)
	d := p.start()
	l.verify()
	d.fsck()
	d.Stop(d.t)
}

// startWith starts a daemon whose first call of one kind on one file fails, and ends it. The daemon must have
// refused, with the file or directory and the reason, or served.
func (p *place) startWith(call, path, errno string) {
	p.t.Helper()
	// -D: the daemon itself is the child, so its id can end it.
	d := p.launch("strace", "-D", "-f", "-qq", "-o", filepath.Join(p.dir, "trace"), "-P", path, "-e", "trace="+call,
		"-e", "inject="+call+":error="+errno+":when=1")
	defer func() {
		if log, err := os.ReadFile(filepath.Join(p.dir, "trace")); err != nil ||
			!bytes.Contains(log, []byte("(INJECTED)")) {
			p.t.Errorf("the fault was not in force: %v", err)
		}
	}()
	served := fmt.Errorf("not yet")
	deadline := time.Now().Add(patience)
	for served != nil && time.Now().Before(deadline) {
		if served = lab.Call(p.driver, "GetCapabilities", nil, nil); served == nil {
			break
		}
		select {
		case <-d.Ended():
			deadline = time.Time{}
		case <-time.After(2 * time.Millisecond):
		}
	}
	if served == nil {
		d.Kill()
		return
	}
	select {
	case <-d.Ended():
	default:
		p.t.Fatalf("neither served nor ended:\n%s", d.Log())
	}
	log := d.Log()
	why := map[string]string{"EIO": "input/output error", "ENOSPC": "no space left on device"}[errno]
	if d.Err() == nil || !strings.Contains(log, p.dir) || !strings.Contains(log, why) ||
		strings.Contains(log, "goroutine ") {
		p.t.Errorf("it ended with %v and does not say which file and why (%s):\n%s", d.Err(), why, log)
	}
}
