package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"berth/internal/admin/client"
	"berth/internal/ipam"
	"berth/test/lab"

	"golang.org/x/sys/unix"
)

// TestReleasesOnFullDisk: on a full disk each release of the engine succeeds. It is made when there is room again.
func TestReleasesOnFullDisk(t *testing.T) {
	dir := t.TempDir()
	state := filepath.Join(dir, "state")
	fine(t, os.Mkdir(state, 0o700))
	fine(t, unix.Mount("tmpfs", state, "tmpfs", 0, "size=1m"))
	t.Cleanup(func() { fine(t, unix.Unmount(state, 0)) })
	c, _, ended := serves(t, dir)
	defer ended()
	engine := lab.Over(filepath.Join(dir, "plugin.sock"))
	defer engine.CloseIdleConnections()
	var pool struct{ PoolID string }
	fine(t, lab.Call(engine, "RequestPool", map[string]string{"AddressSpace": "local", "Pool": "10.1.0.0/16"}, &pool))
	addresses := 0
	for ; ; addresses++ {
		wish := map[string]string{"PoolID": pool.PoolID, "Address": nth(addresses)}
		if err := lab.Call(engine, "RequestAddress", wish, nil); err != nil {
			break // the disk is full
		}
	}
	if held := held(t, c); held != addresses || held < 100 {
		t.Fatalf("%d addresses are leased, and %d were given", held, addresses)
	}
	for i := range addresses {
		fine(t, lab.Call(engine, "ReleaseAddress", map[string]string{"PoolID": pool.PoolID, "Address": nth(i)}, nil))
	}
	st, err := c.Status(t.Context())
	fine(t, err)
	if st.Waiting == 0 || st.Waiting != held(t, c) {
		t.Errorf("%d releases wait, and %d addresses are leased", st.Waiting, held(t, c))
	}
	fine(t, unix.Mount("", state, "", unix.MS_REMOUNT, "size=8m"))
	lab.Await(t, lab.Patient(10*time.Second), func() error {
		if n := held(t, c); n > 0 {
			return fmt.Errorf("%d addresses are still leased", n)
		}
		return nil
	})
}

// nth is the nth address that the test asks for.
func nth(i int) string { return fmt.Sprintf("10.1.%d.%d", 1+i/250, 1+i%250) }

// held counts the leased addresses.
func held(t *testing.T, c *client.Client) (n int) {
	t.Helper()
	all, err := c.Leases(t.Context(), ipam.LeaseFilter{})
	fine(t, err)
	for i := range all {
		if all[i].Released.IsZero() {
			n++
		}
	}
	return n
}
