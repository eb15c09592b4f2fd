package bolt

import (
	"context"
	"errors"
	"fmt"
	"os"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
	"golang.org/x/sys/unix"

	"berth/store"
)

// handle is an open state file. A Store has one at a time. One that Save has replaced lasts until its last reader has
// left.
type handle struct {
	db     *bbolt.DB
	file   *os.File // the file of db, which closes it
	reader *os.File // the same file opened again, to read what bbolt does not show
	users  int      // number of readers, guarded by Store.mu
}

// openHandle checks a whole file and opens it.
func openHandle(ctx context.Context, path string, cfg Config) (*handle, Report, error) {
	reader, err := openPlain(path, os.O_RDONLY)
	if err != nil {
		return nil, Report{}, fmt.Errorf("open the state: %w", err)
	}
	h := &handle{reader: reader}
	report, err := checkFile(ctx, path, reader)
	if err == nil {
		err = h.openBolt(path, cfg)
	}
	if err != nil {
		return nil, report, errors.Join(err, reader.Close())
	}
	return h, report, nil
}

// openBolt opens a checked file. bbolt would create a missing file and initialise an empty one, but it gets neither.
func (h *handle) openBolt(path string, cfg Config) (err error) {
	defer guard(&err, func(fault any) error {
		return fmt.Errorf("%w: %s cannot be opened (%v)%s", store.ErrCorrupt, path, fault, adviceRestore)
	})()
	h.db, err = bbolt.Open(path, 0o600, &bbolt.Options{
		Timeout:         cfg.LockTimeout,
		InitialMmapSize: mapSize,
		// Each commit writes the list of free pages. A map would have to be sorted for that: with 9,000 scattered free
		// pages a commit would take five times as long.
		FreelistType: bbolt.FreelistArrayType,
		NoStatistics: true,
		NoSync:       cfg.NoSync,
		NoGrowSync:   cfg.NoSync,
		OpenFile: func(name string, flag int, _ os.FileMode) (_ *os.File, err error) {
			h.file, err = openPlain(name, flag&^os.O_CREATE)
			return h.file, err
		},
	})
	if errors.Is(err, bolterrors.ErrTimeout) {
		return lockedError(path, path, "")
	}
	if err != nil {
		return fmt.Errorf("open the state %s: %w", path, err)
	}
	h.db.AllocSize = allocSize
	return nil
}

// close closes the file. If bbolt's locks may be held for ever, it does not call bbolt.
func (h *handle) close(stuck bool) error {
	if stuck {
		return h.reader.Close()
	}
	return errors.Join(h.db.Close(), h.reader.Close())
}

// dropPages removes the file's pages from this process's memory. The kernel keeps them cached, so a page returns
// quickly. A daemon reads its whole state at the start and little of it afterwards.
func (h *handle) dropPages() {
	// The mapping lasts as long as the handle has readers. A failure only costs memory.
	_, _, _ = unix.Syscall(unix.SYS_MADVISE, h.db.Info().Data, uintptr(min(fileSize(h.reader), mapSize)),
		unix.MADV_DONTNEED)
}

// isFault reports whether a panic is a fault in the mapped file, because it was cut or the disk cannot read it.
func (h *handle) isFault(p any) bool {
	a, ok := p.(interface{ Addr() uintptr })
	if !ok {
		return false
	}
	base := h.db.Info().Data
	return a.Addr() >= base && a.Addr() < base+max(mapSize, uintptr(fileSize(h.reader)))
}
