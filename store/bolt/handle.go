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

// handle is a state's file that is open. A Store has one at a time; one that Save has replaced lives until its last
// reader has left.
type handle struct {
	db     *bbolt.DB
	file   *os.File // that of db, which closes it
	reader *os.File // the same file once more, for reading what bbolt does not show
	users  int      // readers, counted under Store.mu
}

// openHandle checks a file as a whole, then opens it.
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

// openBolt opens a file that has been checked. bbolt would make a file that is not there and initialise an empty one;
// it is not given the chance.
func (h *handle) openBolt(path string, cfg Config) (err error) {
	defer guard(&err, func(fault any) error {
		return fmt.Errorf("%w: %s cannot be opened (%v)%s", store.ErrCorrupt, path, fault, adviceRestore)
	})()
	h.db, err = bbolt.Open(path, 0o600, &bbolt.Options{
		Timeout:         cfg.LockTimeout,
		InitialMmapSize: mapSize,
		FreelistType:    bbolt.FreelistMapType,
		NoStatistics:    true,
		NoSync:          cfg.NoSync,
		NoGrowSync:      cfg.NoSync,
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

// close closes the file. bbolt is left as it is where its locks may be held for ever.
func (h *handle) close(stuck bool) error {
	if stuck {
		return h.reader.Close()
	}
	return errors.Join(h.db.Close(), h.reader.Close())
}

// dropPages takes the file's pages out of this process's memory; the kernel keeps them cached, and one that is read
// again comes back at once. A daemon reads its whole state when it starts, and afterwards little of it.
func (h *handle) dropPages() {
	// The mapping lives as long as the handle has readers, and what fails here costs only memory.
	_, _, _ = unix.Syscall(unix.SYS_MADVISE, h.db.Info().Data, uintptr(min(fileSize(h.reader), mapSize)),
		unix.MADV_DONTNEED)
}

// isFault tells a fault in the mapped file (it was cut short, or the disk cannot read it) from any other panic.
func (h *handle) isFault(p any) bool {
	a, ok := p.(interface{ Addr() uintptr })
	if !ok {
		return false
	}
	base := h.db.Info().Data
	return a.Addr() >= base && a.Addr() < base+max(mapSize, uintptr(fileSize(h.reader)))
}
