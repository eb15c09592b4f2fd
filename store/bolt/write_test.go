package bolt

import (
	"context"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"berth/store"
)

const writtenID = "0123456789abcdef0123456789abcdef"

// A backup of another store can be restored and read, record by record, under that store's id.
func TestWrite(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	path := filepath.Join(dir, "shared.backup")
	const n = 2*writePage + 17
	key := make([]byte, 8)
	err := Write(ctx, path, writtenID, func(put func(key, value []byte) error) error {
		for i := range n {
			binary.BigEndian.PutUint64(key, uint64(i)) // one buffer for all of them
			if err := put(key, key[4:]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	copied := filepath.Join(dir, "copy", "berth.db")
	done, err := Restore(ctx, path, copied, false)
	if err != nil || done.Report.Records != n || done.Report.ID != writtenID {
		t.Fatalf("%+v, %v", done, err)
	}
	st, err := Open(ctx, Config{Path: copied})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	err = st.View(ctx, func(tx store.Tx) error {
		i := uint64(0)
		for rec, err := range tx.Scan(store.Range{}) {
			if err != nil {
				return err
			}
			if binary.BigEndian.Uint64(rec.Key) != i || binary.BigEndian.Uint32(rec.Value) != uint32(i) {
				t.Fatalf("record %d is %x %x", i, rec.Key, rec.Value)
			}
			i++
		}
		if i != n {
			t.Errorf("%d records", i)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := Write(ctx, path, writtenID, nil); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a file that is there: %v", err)
	}
}

// A backup that is not written completely leaves no file.
func TestWriteFails(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "shared.backup")
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	broken := errors.New("the reading failed")
	for _, tc := range []struct {
		ctx  context.Context
		id   string
		fill func(put func(key, value []byte) error) error
		want error
		text string
	}{
		{context.Background(), "no id", nil, nil, "not the id of a store"},
		{context.Background(), writtenID,
			func(put func(key, value []byte) error) error { return errors.Join(put([]byte("a"), nil), broken) }, broken,
			""},
		{ended, writtenID, func(put func(key, value []byte) error) error {
			for i := range writePage + 1 {
				if err := put(binary.BigEndian.AppendUint64(nil, uint64(i)), nil); err != nil {
					return err
				}
			}
			return nil
		}, context.Canceled, ""},
		{context.Background(), writtenID, func(put func(key, value []byte) error) error {
			return errors.Join(put([]byte("a"), nil), put([]byte("a"), nil))
		}, store.ErrCorrupt, "2 of"},
	} {
		err := Write(tc.ctx, path, tc.id, tc.fill)
		if err == nil || tc.want != nil && !errors.Is(err, tc.want) || !strings.Contains(err.Error(), tc.text) {
			t.Errorf("%v, want %v %q", err, tc.want, tc.text)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}
