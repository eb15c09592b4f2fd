package main

import (
	"syscall"
	"testing"
	"time"

	"berth/internal/admin/client"
	"berth/internal/ipam"
)

// TestServeEndsShared runs a daemon on an etcd and ends it, with the etcd up and with the etcd down. The plan is
// still there the next time.
func TestServeEndsShared(t *testing.T) {
	dir, begun := t.TempDir(), time.Now()
	e := &scriptEtcd{dir: dir}
	fine(t, e.choose(nil))
	fine(t, e.start())
	t.Cleanup(e.end)
	for _, stopped := range []bool{false, true, false} {
		c, _, ended := serves(t, dir, "--store", "etcd", "--etcd-endpoints", e.url, "--docker-host", "none")
		networks, err := c.Networks(t.Context(), "")
		if err != nil {
			t.Error(err)
		}
		for len(networks) == 0 { // under load etcd is slow, and out of reach meanwhile
			_, err := c.Edit(t.Context(), client.EditOptions{}, &ipam.CreateNetwork{Name: "lan", Space: ipam.GlobalSpace})
			if again, _ := c.Networks(t.Context(), ""); err == nil || len(again) > 0 {
				break
			}
			if time.Since(begun) > time.Minute {
				t.Fatal(err)
			}
			time.Sleep(100 * time.Millisecond)
		}
		if stopped {
			fine(t, e.process.Process.Signal(syscall.SIGSTOP))
		}
		ended()
		if stopped {
			fine(t, e.process.Process.Signal(syscall.SIGCONT))
			if len(networks) != 1 || networks[0].Name != "lan" {
				t.Errorf("the second daemon finds %v", networks)
			}
		}
	}
}
