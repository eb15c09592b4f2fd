package main

import (
	"bytes"
	"context"
	"io"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"berth/internal/admin/client"
	"berth/internal/cli"
	"berth/internal/ipam"
)

// TestServeEndsShared runs a daemon on an etcd in this process, and ends it, while that answers and while it does not:
// no goroutine stays (TestMain looks), and what it had planned is there the next time.
func TestServeEndsShared(t *testing.T) {
	dir := t.TempDir()
	notify, wait := announced(t)
	t.Setenv("NOTIFY_SOCKET", notify)
	e := &scriptEtcd{dir: dir}
	fine(t, e.choose(nil))
	fine(t, e.start())
	t.Cleanup(e.end)
	for _, stopped := range []bool{false, true, false} {
		var log bytes.Buffer
		p := &cli.Program{Out: io.Discard, Err: &log, Env: func(string) string { return "" }, Now: time.Now,
			Started: time.Now()}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan int, 1)
		go func() {
			ended <- p.Run(ctx, rootCommand(p, emptyHost()),
				[]string{"serve", "--store", "etcd", "--etcd-endpoints", e.url, "--state", filepath.Join(dir, "state"),
					"--host", "alpha",
					"--docker-host", "none", "--plugin-socket", filepath.Join(dir, "plugin.sock"), "--admin-socket",
					filepath.Join(dir, "admin.sock")})
		}()
		wait()
		c := client.New(filepath.Join(dir, "admin.sock"))
		networks, err := c.Networks(t.Context(), "")
		if err != nil {
			t.Error(err)
		}
		for len(networks) == 0 { // an etcd beside much else takes its time, and is out of reach meanwhile
			_, err := c.Edit(t.Context(), client.EditOptions{}, &ipam.CreateNetwork{Name: "lan", Space: ipam.GlobalSpace})
			if again, _ := c.Networks(t.Context(), ""); err == nil || len(again) > 0 {
				break
			}
			if time.Since(p.Started) > time.Minute {
				t.Fatal(err)
			}
			time.Sleep(100 * time.Millisecond)
		}
		if stopped {
			fine(t, e.process.Process.Signal(syscall.SIGSTOP))
		}
		cancel()
		if code := <-ended; code != 0 {
			t.Errorf("code %d:\n%s", code, log.String())
		}
		c.Close()
		if stopped {
			fine(t, e.process.Process.Signal(syscall.SIGCONT))
			if len(networks) != 1 || networks[0].Name != "lan" {
				t.Errorf("the second daemon finds %v", networks)
			}
		}
	}
}
