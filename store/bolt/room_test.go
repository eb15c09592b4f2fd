package bolt

import (
	"path/filepath"
	"testing"
	"time"

	"go.etcd.io/bbolt"
	"golang.org/x/sys/unix"

	"berth/store/internal/record"
)

// TestRoomIsAskedForSeldom: on a full disk, only one call a second writes something to test for room.
func TestRoomIsAskedForSeldom(t *testing.T) {
	dir := t.TempDir()
	must(t, unix.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"))
	defer func() { must(t, unix.Unmount(dir, 0)) }()
	now := time.Now()
	s, err := Open(t.Context(), Config{Path: filepath.Join(dir, "berth.db"), Now: func() time.Time { return now }})
	must(t, err)
	defer s.Close()
	for n := 0; writePair(s, n) == nil; n++ {
	}
	commit := func() uint64 {
		m, ok := readMetas(s.handle().reader).newest()
		if !ok {
			t.Fatal("no meta page")
		}
		return m.txid
	}
	if s.Writable(t.Context()) == nil {
		t.Fatal("writes are taken on a full disk")
	}
	must(t, unix.Mount("", dir, "", unix.MS_REMOUNT, "size=4m"))
	before := commit()
	for range 20 {
		if s.Writable(t.Context()) == nil {
			t.Fatal("it was tried again within a second")
		}
	}
	if got := commit(); got != before {
		t.Errorf("%d commits were made to find out", got-before)
	}
	now = now.Add(roomEvery)
	for range 20 {
		must(t, s.Writable(t.Context()))
	}
	if got := commit(); got != before+2 {
		t.Errorf("%d commits were made to find out, not 2", got-before)
	}
}

// TestRoomLeftBehind: what a crash has left from a test for room does no harm.
func TestRoomLeftBehind(t *testing.T) {
	path := filepath.Join(t.TempDir(), "berth.db")
	s := open(t, path)
	put(t, s, "a", "1")
	must(t, s.Close())
	db, err := bbolt.Open(path, 0o600, nil)
	must(t, err)
	must(t, db.Update(func(tx *bbolt.Tx) error {
		return tx.Bucket(bucketMeta).Put(keyRoom, record.AppendSealed(nil, keyRoom, make([]byte, roomBytes)))
	}))
	must(t, db.Close())
	if report, err := Check(t.Context(), path); err != nil || report.Records != 1 {
		t.Errorf("%+v, %v", report, err)
	}
	wantRecords(t, path, s.ID(), "a 1")
}
