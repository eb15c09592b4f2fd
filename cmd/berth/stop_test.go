package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// asker sends calls to a plugin socket while its daemon is restarted.
type asker struct {
	socket                string
	kept                  bool // on one connection for as long as the daemon keeps it
	answered, lost, dials atomic.Int64
	over                  atomic.Bool
	answers               chan struct{} // receives a token for each answer, while somebody waits for it
}

const plainCall = "POST /IpamDriver.GetCapabilities HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"

// run asks until over is set. A refused dial is repeated, as the engine does.
func (a *asker) run() {
	for !a.over.Load() {
		conn, err := net.Dial("unix", a.socket)
		if err != nil {
			a.dials.Add(1)
			time.Sleep(time.Millisecond) // leaves the processor to the daemon's start
			continue
		}
		for a.ask(conn) && a.kept && !a.over.Load() {
		}
		conn.Close()
	}
}

// ask sends one call, and returns whether the connection can have another one.
func (a *asker) ask(conn net.Conn) bool {
	if _, err := io.WriteString(conn, plainCall); err != nil {
		return false // nobody has read it
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err == nil {
		_, err = io.ReadAll(res.Body)
	}
	if err != nil {
		a.lost.Add(1)
		return false
	}
	a.answered.Add(1)
	select {
	case a.answers <- struct{}{}:
	default:
	}
	return !res.Close
}

// TestRestarts restarts the daemon 25 times by SIGTERM, on sockets of its own and on those of systemd, while six
// clients send calls. Each call that is written is answered.
func TestRestarts(t *testing.T) {
	restarts := 25
	if testing.Short() {
		restarts = 8
	}
	for _, handed := range []bool{false, true} {
		name := map[bool]string{false: "own sockets", true: "sockets of systemd"}[handed]
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			socket := filepath.Join(dir, "plugin")
			var files []*os.File
			if handed {
				files = handedSockets(t, dir, "plugin", "admin")
			}
			var clients sync.WaitGroup
			var all []*asker
			for i := range 6 {
				a := &asker{socket: socket, kept: i%2 == 0, answers: make(chan struct{})}
				all = append(all, a)
				clients.Go(a.run)
			}
			end := func() {
				for _, a := range all {
					a.over.Store(true)
				}
				clients.Wait()
			}
			for i := range restarts {
				stop := startAgain(t, dir, files)
				for range 20 {
					<-all[i%len(all)].answers
				}
				if i == restarts-1 {
					end() // the last daemon answers all
				}
				stop()
			}
			for i, a := range all {
				t.Logf("client %d, kept connection %t: %d answered, %d lost, %d dials refused", i, a.kept,
					a.answered.Load(), a.lost.Load(), a.dials.Load())
				if a.lost.Load() > 0 {
					t.Error("calls were lost")
				}
			}
		})
	}
}

// handedSockets binds sockets like systemd: they stay when a daemon ends.
func handedSockets(t *testing.T, dir string, names ...string) (files []*os.File) {
	t.Helper()
	for _, name := range names {
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, name), Net: "unix"})
		fine(t, err)
		l.SetUnlinkOnClose(false)
		f, err := l.File()
		fine(t, err)
		fine(t, l.Close())
		t.Cleanup(func() { f.Close() })
		files = append(files, f)
	}
	return files
}

// startAgain starts a daemon and waits until it is ready. files are the plugin and admin sockets, or none. stop ends
// it with SIGTERM.
func startAgain(t *testing.T, dir string, files []*os.File) (stop func()) {
	t.Helper()
	notify, wait := announced(t)
	var log bytes.Buffer
	cmd := exec.Command("sh", "-c", `LISTEN_PID=$$ exec berth serve --state "$0/state" --docker-host none \
		--plugin-socket "$0/plugin" --admin-socket "$0/admin"`, dir)
	cmd.Env = append(os.Environ(), "NOTIFY_SOCKET="+notify)
	if files != nil {
		cmd.Env = append(cmd.Env, "LISTEN_FDS=2", "LISTEN_FDNAMES=plugin:admin")
	}
	cmd.ExtraFiles, cmd.Stdout, cmd.Stderr = files, &log, &log
	fine(t, cmd.Start())
	wait()
	return func() {
		t.Helper()
		fine(t, cmd.Process.Signal(syscall.SIGTERM))
		if err := cmd.Wait(); err != nil {
			t.Errorf("%v:\n%s", err, log.String())
		}
		if _, err := os.Lstat(filepath.Join(dir, "plugin")); files == nil && !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the plugin socket is still there: %v", err)
		}
	}
}

// TestInOrder: the tasks of each group end after those of the groups before it, also if one of them fails.
func TestInOrder(t *testing.T) {
	failed := errors.New("failed")
	for _, c := range []struct {
		name  string
		fails int // the group whose task fails; 0: the context ends
	}{
		{name: "the context ends"},
		{name: "the first fails", fails: 1},
		{name: "the second fails", fails: 2},
		{name: "the third fails", fails: 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if c.fails == 0 {
				cancel()
			}
			var ended [4]atomic.Bool // by group
			ended[0].Store(true)
			var early atomic.Int32 // a group that ended before the one that needs it
			group := func(n int) []func(context.Context) error {
				return []func(context.Context) error{func(ctx context.Context) error {
					defer ended[n].Store(true)
					if c.fails == n {
						return failed
					}
					<-ctx.Done()
					if !ended[n-1].Load() {
						early.Store(int32(n))
					}
					return nil
				}}
			}
			err := inOrder(ctx, group(1), group(2), group(3))
			if errors.Is(err, failed) != (c.fails != 0) || early.Load() != 0 || !ended[3].Load() {
				t.Errorf("%v; group %d ended before the one that needs it; the last ended: %t", err, early.Load(),
					ended[3].Load())
			}
		})
	}
}
