package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"berth/internal/admin/client"
	"berth/internal/cli"
	"berth/internal/ipam"
	"berth/test/lab"

	"github.com/sirupsen/logrus"
)

// announced listens for a daemon's report that it is ready.
func announced(t *testing.T) (path string, wait func()) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "notify")
	notify, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	fine(t, err)
	t.Cleanup(func() { notify.Close() })
	return path, func() {
		t.Helper()
		fine(t, notify.SetReadDeadline(time.Now().Add(20*time.Second)))
		if _, err := notify.Read(make([]byte, 64)); err != nil {
			t.Fatalf("the daemon is not ready: %v", err)
		}
	}
}

// serves runs the daemon in this process, in a directory, and waits until it is ready. stop ends it, and ended
// waits until it has ended. No goroutine stays (TestMain checks).
func serves(t *testing.T, dir string, flags ...string) (c *client.Client, stop, ended func()) {
	t.Helper()
	notify, wait := announced(t)
	t.Setenv("NOTIFY_SOCKET", notify)
	var log bytes.Buffer
	p := &cli.Program{Out: io.Discard, Stderr: &log, Env: func(string) string { return "" }, Now: time.Now,
		Started: time.Now()}
	args := append([]string{"serve", "--state", "DIR/state", "--host", "alpha", "--plugin-socket", "DIR/plugin.sock",
		"--admin-socket", "DIR/admin.sock"}, flags...)
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], "DIR", dir)
	}
	ctx, cancel := context.WithCancel(t.Context())
	code := make(chan int, 1)
	go func() { code <- p.Run(ctx, rootCommand(p, emptyHost()), args) }()
	wait()
	c = client.New(filepath.Join(dir, "admin.sock"))
	return c, cancel, func() {
		t.Helper()
		cancel()
		if got := <-code; got != 0 {
			t.Errorf("%v: code %d:\n%s", flags, got, log.String())
		}
		c.Close()
	}
}

// TestServeEnds uses a daemon and ends it. Only the state's own files remain, no socket. The same address works
// the next time.
func TestServeEnds(t *testing.T) {
	dir := t.TempDir()
	for round := range 2 {
		c, stop, ended := serves(t, dir)
		spaces, err := c.Spaces(t.Context())
		if err != nil || len(spaces) != 2 {
			t.Errorf("round %d: %v, %v", round, spaces, err)
		}
		following := make(chan error, 1)
		go func() { // an open stream must not delay the end
			for _, err := range c.Follow(context.Background(), ipam.EventFilter{Last: 1}) {
				if err != nil {
					following <- err
					return
				}
				stop()
			}
			following <- nil
		}()
		if err := <-following; err == nil {
			t.Error("the stream ended without a word")
		}
		ended()
		left, err := filepath.Glob(filepath.Join(dir, "*"))
		if err != nil || len(left) != 1 {
			t.Errorf("round %d left behind %q, %v", round, left, err)
		}
	}
}

// Berth serves on sockets from systemd, and does not remove them at the end: they belong to their units.
func TestSocketActivation(t *testing.T) {
	dir := t.TempDir()
	notify, wait := announced(t)
	var files []*os.File
	for _, name := range []string{"plugin", "mac", "admin"} {
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, name), Net: "unix"})
		fine(t, err)
		l.SetUnlinkOnClose(false)
		f, err := l.File()
		fine(t, err)
		l.Close()
		files = append(files, f)
	}
	var log bytes.Buffer
	cmd := exec.Command("sh", "-c",
		`LISTEN_PID=$$ exec berth serve --state "$0" --plugin-socket /nowhere/a --admin-socket /nowhere/b`,
		filepath.Join(dir, "state"))
	cmd.Env = append(os.Environ(), "LISTEN_FDS=3", "LISTEN_FDNAMES=plugin:mac:admin", "NOTIFY_SOCKET="+notify)
	cmd.ExtraFiles, cmd.Stdout, cmd.Stderr = files, &log, &log
	fine(t, cmd.Start())
	for _, f := range files {
		f.Close()
	}
	wait()
	c := client.New(filepath.Join(dir, "admin"))
	if v, err := c.Version(t.Context()); err != nil || !slices.Equal(v.Drivers, []string{"a", "mac"}) {
		t.Errorf("%+v, %v", v, err)
	}
	c.Close()
	if got := asksMAC(t, filepath.Join(dir, "mac")); !got {
		t.Error("the socket for MACs asks for none")
	}
	if asksMAC(t, filepath.Join(dir, "plugin")) {
		t.Error("the plugin socket asks for MACs")
	}
	fine(t, cmd.Process.Signal(syscall.SIGTERM))
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v:\n%s", err, log.String())
	}
	for _, name := range []string{"plugin", "mac", "admin"} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err != nil {
			t.Errorf("the daemon removed a socket of systemd: %v", err)
		}
	}
}

// asksMAC tells whether the driver on a socket asks the engine for MACs.
func asksMAC(t *testing.T, socket string) bool {
	t.Helper()
	var answer struct{ RequiresMACAddress *bool }
	fine(t, lab.Call(lab.Over(socket), "GetCapabilities", nil, &answer))
	if answer.RequiresMACAddress == nil {
		t.Fatal("the answer says nothing of MACs")
	}
	return *answer.RequiresMACAddress
}

// If a task fails the others end, and the result is its error.
func TestTogether(t *testing.T) {
	failed := errors.New("failed")
	ended := false
	err := together(t.Context(),
		func(ctx context.Context) error { <-ctx.Done(); ended = true; return nil },
		func(context.Context) error { return failed })
	if !errors.Is(err, failed) || !ended {
		t.Errorf("together: %v, the other task ended: %v", err, ended)
	}
}

func TestPrepareState(t *testing.T) {
	var log bytes.Buffer
	l := logrus.New()
	l.SetOutput(&log)
	dir := filepath.Join(t.TempDir(), "a", "state")
	cfg := serveConfig{state: dir}
	fine(t, cfg.prepareState(logrus.NewEntry(l)))
	if mode, _ := owned(t, dir); mode.Perm() != 0o700 {
		t.Errorf("the mode is %v", mode)
	}
	if err := cfg.prepareState(logrus.NewEntry(l)); err != nil || log.Len() > 0 {
		t.Errorf("the second time: %v, %s", err, log.String())
	}
	fine(t, os.Chmod(dir, 0o777))
	if err := cfg.prepareState(logrus.NewEntry(l)); err != nil || !strings.Contains(log.String(), "other users may "+
		"write") {
		t.Errorf("a directory that everybody may write to: %v, %s", err, log.String())
	}
}

// TestNewLog: an entry of the log is one line, whatever others have written, and moves no cursor.
func TestNewLog(t *testing.T) {
	for _, c := range []struct {
		format  string
		journal bool
		has     string
		hasNot  string
	}{
		{"text", false, "time=", "{"},
		{"text", true, "level=info", "time="},
		{"json", false, `"time":"`, "level=info"},
	} {
		var b bytes.Buffer
		log, err := cli.NewLog(&b, "info", c.format, c.journal)
		fine(t, err)
		log.Debug("hidden")
		log.WithField("name", "a\nmsg=\"another\" \x1b[2J").Info("a line\nand another\r\x1b[2J")
		if got := b.String(); strings.ContainsAny(got, "\r\x1b") || !strings.Contains(got, c.has) ||
			strings.Contains(got, c.hasNot) ||
			strings.Contains(got, "hidden") || strings.Count(got, "\n") != 1 {
			t.Errorf("%+v: %q", c, got)
		}
	}
}

// A process may inherit the variable although its standard error is something else.
func TestIsJournal(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "log"))
	fine(t, err)
	defer f.Close()
	info, err := f.Stat()
	fine(t, err)
	st := info.Sys().(*syscall.Stat_t)
	own := fmt.Sprintf("%d:%d", st.Dev, st.Ino)
	for _, c := range []struct {
		w      io.Writer
		stream string
		want   bool
	}{{f, own, true}, {f, "1:2", false}, {f, "", false}, {io.Discard, own, false}} {
		if got := cli.IsJournal(c.w, c.stream); got != c.want {
			t.Errorf("%T, %q: %v", c.w, c.stream, got)
		}
	}
}
