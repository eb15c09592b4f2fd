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
	"syscall"
	"testing"

	"berth/internal/admin/api"
	"berth/internal/admin/client"
	"berth/internal/ipam"
	"berth/internal/ipam/service"
	"berth/store"
	"berth/store/bolt"
)

func own(t *testing.T) (uid, gid, pid int, groups []int) {
	t.Helper()
	groups, err := syscall.Getgroups()
	must(t, err)
	return os.Geteuid(), os.Getegid(), os.Getpid(), groups
}

// TestFollowMissesNothing: a follower gets what Events lists, each once and in order, though events come in while it
// begins.
func TestFollowMissesNothing(t *testing.T) {
	h := start(t, nil)
	h.furnish(t)
	pool, err := h.service.RequestPool(t.Context(),
		ipam.PoolRequest{Space: ipam.LocalSpace, CIDR: netip.MustParsePrefix("10.9.0.0/16")})
	must(t, err)
	const callers, each = 4, 50
	var wg sync.WaitGroup
	for caller := range byte(callers) {
		wg.Go(func() {
			for i := range byte(each) {
				if _, err := h.service.RequestAddress(t.Context(),
					ipam.AddressRequest{Pool: pool.ID, MAC: ipam.MAC{2, 0, 0, 0, caller, i}}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	var got []uint64
	for e, err := range h.client.Follow(t.Context(), ipam.EventFilter{Last: api.MaxEvents}) {
		must(t, err)
		got = append(got, e.ID)
		if e.Subnet == netip.MustParsePrefix("10.9.0.0/16") && e.Verb == ipam.LeaseTaken && len(got) >= callers*each+
			10 {
			if list, err := h.service.Events(t.Context(), ipam.EventFilter{}); err == nil && len(list) == len(got) &&
				taken(list) == callers*each+4 {
				break
			}
		}
	}
	wg.Wait()
	list, err := h.service.Events(t.Context(), ipam.EventFilter{})
	must(t, err)
	var want []uint64
	for _, e := range list {
		want = append(want, e.ID)
	}
	if !slices.Equal(got, want) {
		t.Errorf("%d events were followed, %d are stored, or their order differs", len(got), len(want))
	}
}

func taken(events []ipam.Event) (n int) {
	for _, e := range events {
		if e.Verb == ipam.LeaseTaken {
			n++
		}
	}
	return n
}

// Without past events, a follower begins behind the last one there is.
func TestFollowOnlyNew(t *testing.T) {
	h := start(t, nil)
	h.furnish(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for e, err := range h.client.Follow(ctx, ipam.EventFilter{Last: 1}) {
		must(t, err)
		if e.Space == "new" {
			break
		}
		// The first line is here, so the follower is there: what comes now is new to it.
		_, err = h.service.RequestPool(t.Context(), ipam.PoolRequest{Space: "new"})
		must(t, err)
	}
}

// A server that ends ends its streams, and the follower hears of it.
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

func TestBackup(t *testing.T) {
	h := start(t, nil)
	h.furnish(t)
	want, err := h.client.Leases(t.Context(), ipam.LeaseFilter{Remembered: true})
	must(t, err)
	var copied bytes.Buffer
	size, id, err := h.client.Backup(t.Context(), &copied, false)
	must(t, err)
	if id != h.store.ID() || size != int64(copied.Len()) || size == 0 {
		t.Errorf("%d bytes of the store %s; %d arrived, the store is %s", size, id, copied.Len(), h.store.ID())
	}
	leftOvers(t, h)
	file := filepath.Join(t.TempDir(), "backup.db")
	must(t, os.WriteFile(file, copied.Bytes(), 0o600))
	state := filepath.Join(t.TempDir(), "berth.db")
	_, err = bolt.Restore(t.Context(), file, state, false)
	must(t, err)
	st, err := bolt.Open(t.Context(), bolt.Config{Path: state})
	must(t, err)
	defer st.Close()
	service, err := service.Open(t.Context(), service.Config{Store: st, Host: "beta"})
	must(t, err)
	var got []ipam.LeaseInfo
	for l, err := range service.Leases(t.Context(), ipam.LeaseFilter{Remembered: true}) {
		must(t, err)
		got = append(got, l)
	}
	if len(got) != len(want) || len(got) == 0 {
		t.Fatalf("the backup has %d leases, the store %d", len(got), len(want))
	}
	for i := range got {
		if got[i].Address != want[i].Address || got[i].ID != want[i].ID || got[i].State != want[i].State {
			t.Errorf("lease %d is %+v, want %+v", i, got[i], want[i])
		}
	}
}

// The shared store's backup is another file, with that store's id.
func TestSharedBackup(t *testing.T) {
	refused := error(nil)
	h := start(t, func(s *Server) {
		s.cfg.BackupShared = func(_ context.Context, path string) (string, error) {
			return "c1", errors.Join(os.WriteFile(path, []byte("of all"), 0o600), refused)
		}
	})
	var copied bytes.Buffer
	if _, id, err := h.client.Backup(t.Context(), &copied, true); err != nil || id != "c1" ||
		copied.String() != "of all" {
		t.Errorf("%q of the store %s, %v", copied.String(), id, err)
	}
	leftOvers(t, h)
	refused = store.ErrAway
	var p *api.Problem
	if _, _, err := h.client.Backup(t.Context(), &copied, true); !errors.As(err, &p) || p.Code != api.CodeAway {
		t.Errorf("out of reach: %v", err)
	}
}

// leftOvers finds what a backup has left in the daemon's directory.
func leftOvers(t *testing.T, h *house) {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(h.temp, "*backup*"))
	must(t, err)
	hidden, err := filepath.Glob(filepath.Join(h.temp, ".*"))
	must(t, err)
	if all = append(all, hidden...); len(all) > 0 {
		t.Errorf("left behind: %q", all)
	}
}

// One backup at a time, and a client that does not read holds no other reader up: the file is sent, not the store.
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
	_, _, err := h.client.Backup(t.Context(), &bytes.Buffer{}, false)
	var p *api.Problem
	if !errors.As(err, &p) || p.Code != api.CodeBusy {
		t.Errorf("a second backup meanwhile: %v", err)
	}
	close(goOn)
	must(t, <-first)
}

// What a crash in the middle of a backup has left does not keep the next one from its place.
func TestBackupAfterACrash(t *testing.T) {
	h := start(t, nil)
	for _, name := range []string{backupName, "." + backupName + ".12345.part"} {
		must(t, os.WriteFile(filepath.Join(h.temp, name), []byte("half"), 0o600))
	}
	_, _, err := h.client.Backup(t.Context(), &bytes.Buffer{}, false)
	must(t, err)
	leftOvers(t, h)
}

// A refused write of the client ends the backup, and the server is as it was.
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

func TestBackupFailure(t *testing.T) {
	h := start(t, func(s *Server) {
		s.cfg.Backup = func(context.Context, string) error { return errors.New("the disk is gone") }
	})
	_, _, err := h.client.Backup(t.Context(), &bytes.Buffer{}, false)
	var p *api.Problem
	if !errors.As(err, &p) || p.Code != api.CodeInternal || p.Detail != "the disk is gone" {
		t.Errorf("the answer: %v", err)
	}
}

func TestClientErrors(t *testing.T) {
	c := client.New(filepath.Join(t.TempDir(), "nobody.sock"))
	defer c.Close()
	_, err := c.Version(t.Context())
	if err == nil || !strings.Contains(err.Error(), "no Berth answers on "+c.Socket()) ||
		strings.Contains(err.Error(), "http://") {
		t.Errorf("a socket that is not there: %v", err)
	}
}
