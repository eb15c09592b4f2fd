package hook

import (
	"context"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
	"berth/internal/ipam/service"
	"berth/store/storetest"
)

// TestMain also runs the hooks of the tests: a copy of this program does what its name says, with the files beside
// its directory. A shell would drop the variables whose names it cannot express.
func TestMain(m *testing.M) {
	dir, name := filepath.Split(os.Args[0])
	out := filepath.Join(dir, "..", "out")
	switch _, act, _ := strings.Cut(name, "-"); act {
	case "dump":
		appendTo(out, name+"\n"+strings.Join(os.Environ(), "\n")+"\n\n")
	case "fail":
		fmt.Println("it hurts")
		os.Exit(3)
	case "noise":
		fmt.Print(strings.Repeat("x", 1<<20))
	case "binary":
		os.Stdout.WriteString("a\xff\x00\nb")
	case "hang": // its child keeps a lock and the output while it lives; the pipe then gets a byte
		child := exec.Command(filepath.Join(dir, "..", "99-hold"))
		child.Stdout = os.Stdout
		ready, err := child.StderrPipe()
		check(err)
		check(child.Start())
		_, err = io.ReadFull(ready, make([]byte, 1))
		check(err)
		fmt.Println("hanging")
		check(os.WriteFile(filepath.Join(dir, "..", "fifo"), []byte("."), 0))
		unix.Pause()
	case "hold":
		lock(filepath.Join(dir, "lock"))
		os.Stderr.WriteString(".")
		unix.Pause()
	case "leave": // the same, but it ends before its child
		child := exec.Command(filepath.Join(dir, "..", "99-hold"))
		ready, err := child.StderrPipe()
		check(err)
		check(child.Start())
		_, err = io.ReadFull(ready, make([]byte, 1))
		check(err)
	case "wait": // until somebody writes to the pipe
		_, err := os.ReadFile(filepath.Join(dir, "..", "fifo"))
		check(err)
	default:
		goleak.VerifyTestMain(m)
	}
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(9)
	}
}

func appendTo(path, text string) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	check(err)
	_, err = f.WriteString(text)
	check(err)
	check(f.Close())
}

// lock waits for the lock of a file, and keeps it.
func lock(path string) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	check(err)
	check(unix.Flock(int(f.Fd()), unix.LOCK_EX)) // until f is closed, at the end of the process
	kept = f
}

var kept *os.File

// harness is a service with hooks that follow it.
type harness struct {
	service *service.Service
	root    string // holds the directory of the hooks, and what they write
	dir     string
	hooks   *Hooks
	log     chan *logrus.Entry
	cancel  func() // tells the hooks to end
	stop    func() // tells them, and waits for the end
}

// start opens a service with a network, and hooks on an empty directory, which do not run yet.
func start(t *testing.T) *harness {
	t.Helper()
	root := t.TempDir()
	h := &harness{root: root, dir: filepath.Join(root, "hooks"), log: make(chan *logrus.Entry, 10_000)}
	must(t, os.Mkdir(h.dir, 0o755))
	st := storetest.NewModel()
	t.Cleanup(func() { st.Close() })
	var err error
	h.service, err = service.Open(t.Context(), service.Config{Store: st, Host: "alpha"})
	must(t, err)
	ctx := ipam.WithActor(t.Context(), "root (uid 0)")
	_, err = h.service.Edit(ctx, ipam.EditOptions{},
		&ipam.CreateNetwork{Name: "net1", Tags: map[string]string{"site": "a"},
			Subnets: []ipam.SubnetSpec{{CIDR: netip.MustParsePrefix("10.1.0.0/16"),
				Gateway: netip.MustParseAddr("10.1.0.1"), Pool: true}}})
	must(t, err)
	h.take(t, "before")
	log := logrus.New()
	log.SetOutput(io.Discard)
	log.SetLevel(logrus.DebugLevel)
	log.AddHook(entries(h.log))
	h.hooks, err = Open(t.Context(),
		Config{Service: h.service, Dir: h.dir, Log: logrus.NewEntry(log), Bound: time.Minute})
	must(t, err)
	return h
}

// follow lets the hooks run until stop, or the end of the test.
func (h *harness) follow(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- h.hooks.Run(ctx) }()
	h.cancel = cancel
	h.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(h.stop)
}

// entries passes on log entries.
type entries chan *logrus.Entry

func (e entries) Levels() []logrus.Level { return logrus.AllLevels }
func (e entries) Fire(entry *logrus.Entry) error {
	e <- entry
	return nil
}

// logged waits for the next entry that holds a text.
func (h *harness) logged(t *testing.T, text string) *logrus.Entry {
	t.Helper()
	late := time.After(30 * time.Second)
	for {
		select {
		case e := <-h.log:
			if strings.Contains(e.Message, text) {
				return e
			}
		case <-late:
			t.Fatalf("nothing was logged that holds %q", text)
		}
	}
}

// install puts copies of this program into the directory. A copy does what its name says after the hyphen.
func (h *harness) install(t *testing.T, names ...string) {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	program, err := os.ReadFile(self)
	must(t, err)
	for _, name := range names {
		must(t, os.WriteFile(filepath.Join(h.dir, name), program, 0o755))
	}
}

// script puts a shell script into the directory.
func (h *harness) script(t *testing.T, name, text string) {
	t.Helper()
	must(t, os.WriteFile(filepath.Join(h.dir, name), []byte("#!/bin/sh\n"+text), 0o755))
}

func (h *harness) take(t *testing.T, owner string) netip.Addr {
	t.Helper()
	out, err := h.service.Edit(ipam.WithActor(t.Context(), "root (uid 0)"), ipam.EditOptions{},
		&ipam.TakeAddress{Network: "net1", Owner: owner})
	must(t, err)
	return out.Results[0].Addresses[0]
}

func (h *harness) release(t *testing.T, owner string) {
	t.Helper()
	_, err := h.service.Edit(t.Context(), ipam.EditOptions{}, &ipam.ReleaseAddress{Network: "net1", Owner: owner})
	must(t, err)
}

func (h *harness) out(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(h.root, "out"))
	must(t, err)
	return string(text)
}

var must = ipamtest.Must
