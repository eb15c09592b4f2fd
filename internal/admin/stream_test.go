package admin

import (
	"bytes"
	"context"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"berth/internal/admin/api"
	"berth/internal/ipam"
	"berth/store"
)

// TestFollowMissesNothing: a follower gets what Events lists, each event once and in order, even if events arrive
// while it starts.
func TestFollowMissesNothing(t *testing.T) {
	h := start(t, nil)
	h.furnish(t)
	records := h.server.cfg.Service.(engine)
	pool, err := records.RequestPool(t.Context(),
		ipam.PoolRequest{Space: ipam.GlobalSpace, CIDR: netip.MustParsePrefix("10.9.0.0/16")})
	must(t, err)
	const callers, each = 4, 50
	var wg sync.WaitGroup
	for caller := range byte(callers) {
		wg.Go(func() {
			for i := range byte(each) {
				if _, err := records.RequestAddress(t.Context(),
					ipam.AddressRequest{Pool: pool.ID, MAC: ipam.MAC{2, 0, 0, 0, caller, i}}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	var got, want []uint64
	found := 0
	for e, err := range h.client.Follow(t.Context(), ipam.EventFilter{Last: api.MaxEvents}) {
		must(t, err)
		if got = append(got, e.ID); e.Subnet == pool.CIDR && e.Verb == ipam.LeaseTaken {
			found++
		}
		if found == callers*each {
			break
		}
	}
	wg.Wait()
	list, err := h.client.Events(t.Context(), ipam.EventFilter{Last: api.MaxEvents})
	must(t, err)
	for _, e := range list.Events {
		want = append(want, e.ID)
	}
	if !slices.Equal(got, want) {
		t.Errorf("%d events were followed, %d are stored, or their order differs", len(got), len(want))
	}
}

// A server that ends closes its streams, and the follower notices.
func TestFollowEndsWithTheServer(t *testing.T) {
	h := start(t, nil)
	stopped := make(chan error, 1)
	for _, err := range h.client.Follow(t.Context(), ipam.EventFilter{Last: 1}) {
		if err != nil {
			must(t, <-stopped)
			if !strings.Contains(err.Error(), "stopped sending") {
				t.Errorf("the stream ended with %v", err)
			}
			return
		}
		go func() { stopped <- h.stop() }()
	}
	t.Error("the stream ended without an error")
}

// TestBackup sends the state of each kind of store, with its id, and leaves no files.
func TestBackup(t *testing.T) {
	var refused error
	h := start(t, func(s *Server) {
		s.cfg.Backup = func(_ context.Context, path string) error { return os.WriteFile(path, []byte("own"), 0o600) }
		s.cfg.BackupShared = func(_ context.Context, path string) (string, error) {
			return "c1", errors.Join(os.WriteFile(path, []byte("of all"), 0o600), refused)
		}
	})
	for want, shared := range map[string]bool{h.store.ID() + " own": false, "c1 of all": true} {
		var copied bytes.Buffer
		size, id, err := h.client.Backup(t.Context(), &copied, shared)
		if err != nil || id+" "+copied.String() != want || size != int64(copied.Len()) {
			t.Errorf("%d bytes, %q of the store %s, %v", size, copied.String(), id, err)
		}
		leftOvers(t, h)
	}
	refused = store.ErrAway
	h.plays(t, `POST /v1/backup?store=shared -> 503 store_away`)
	h.server.cfg.Backup = func(context.Context, string) error { return errors.New("the disk is gone") }
	h.plays(t, `POST /v1/backup -> 500 "code":"internal" && "detail":"the disk is gone"`)
}

// leftOvers finds the files that a backup has left in the daemon's directory.
func leftOvers(t *testing.T, h *harness) {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(h.temp, "*backup*"))
	must(t, err)
	hidden, err := filepath.Glob(filepath.Join(h.temp, ".*"))
	must(t, err)
	if all = append(all, hidden...); len(all) > 0 {
		t.Errorf("left behind: %q", all)
	}
}

// One backup runs at a time. A client that does not read blocks no other reader: the file is sent, not the store.
func TestBackupBusy(t *testing.T) {
	begun, goOn := make(chan struct{}), make(chan struct{})
	h := start(t, func(s *Server) {
		backup := s.cfg.Backup
		s.cfg.Backup = func(ctx context.Context, path string) error {
			close(begun)
			<-goOn
			return backup(ctx, path)
		}
	})
	first := make(chan error, 1)
	go func() {
		_, _, err := h.client.Backup(t.Context(), &bytes.Buffer{}, false)
		first <- err
	}()
	<-begun
	h.plays(t, `POST /v1/backup -> 409 busy`)
	close(goOn)
	must(t, <-first)
}

// Files left by a crash during a backup do not prevent the next one.
func TestBackupAfterACrash(t *testing.T) {
	h := start(t, nil)
	for _, name := range []string{backupName, "." + backupName + ".12345.part"} {
		must(t, os.WriteFile(filepath.Join(h.temp, name), []byte("half"), 0o600))
	}
	_, _, err := h.client.Backup(t.Context(), &bytes.Buffer{}, false)
	must(t, err)
	leftOvers(t, h)
}

// A failed write to the client ends the backup. The server continues as before.
func TestBackupBrokenOff(t *testing.T) {
	h := start(t, nil)
	full := errors.New("no room here")
	if _, _, err := h.client.Backup(t.Context(), failing{full}, false); !errors.Is(err, full) {
		t.Errorf("a backup into a full disk: %v", err)
	}
	_, _, err := h.client.Backup(t.Context(), &bytes.Buffer{}, false)
	must(t, err)
	leftOvers(t, h)
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }
