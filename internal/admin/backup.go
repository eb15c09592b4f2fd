package admin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"berth/internal/admin/api"
)

// backupName is the temporary name of the copy. A copy that a crash left is removed before the next backup.
const backupName = "backup.sending"

// backup sends a snapshot of the state. It first copies the state to a file, so that a slow client holds no read
// transaction. The file is unlinked before it is sent, so it never remains.
func (s *Server) backup(w http.ResponseWriter, r *http.Request, req api.BackupRequest) error {
	write, err := s.backupOf(req.Store)
	if err != nil {
		return err
	}
	f, id, err := s.copyState(r, write)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	w.Header().Set("Content-Length", strconv.FormatInt(info.Size(), 10))
	w.Header().Set(api.StoreIDHeader, id)
	begin(w, "application/octet-stream")
	if _, err := io.Copy(&patient{w, http.NewResponseController(w)}, f); err != nil {
		s.log.WithError(err).WithField("peer", r.RemoteAddr).Info("a client did not receive the whole backup")
		panic(http.ErrAbortHandler)
	}
	return nil
}

// backupOf returns the function that writes the state of a store to a new file and returns the store's id.
func (s *Server) backupOf(name string) (func(ctx context.Context, path string) (id string, err error), error) {
	switch name {
	case "own":
		return func(ctx context.Context, path string) (string, error) {
			return s.cfg.Version.StoreID, s.cfg.Backup(ctx, path)
		}, nil
	case "shared":
		if s.cfg.BackupShared == nil {
			return nil, problem(http.StatusConflict, api.CodeNoCluster,
				"this Berth shares no store with other hosts: all its data is in its own store")
		}
		return s.cfg.BackupShared, nil
	}
	return nil, invalid("there is no store %q; give own or shared", name)
}

// copyState returns an open, unlinked copy of a state. It makes one copy at a time, because the copy has a name until
// it is complete.
func (s *Server) copyState(r *http.Request,
	write func(ctx context.Context, path string) (id string, err error)) (f *os.File, id string, err error) {
	select {
	case s.backups <- struct{}{}:
		defer func() { <-s.backups }()
	default:
		return nil, "", problem(http.StatusConflict, api.CodeBusy,
			"another backup is running; try again when it is done")
	}
	dir := s.cfg.TempDir
	if _, err := os.Stat(dir); err != nil { // it was removed with the state, and then a backup matters most
		if err := os.MkdirAll(os.TempDir(), 0o700); err != nil { // the root of a managed plugin has no such directory
			return nil, "", err
		}
		if dir, err = os.MkdirTemp("", "berth-backup-"); err != nil {
			return nil, "", err
		}
		defer os.Remove(dir)
	}
	path := filepath.Join(dir, backupName)
	rest, err := filepath.Glob(filepath.Join(dir, "."+backupName+".*.part")) // the store's own temporary name
	if err != nil {
		return nil, "", err
	}
	for _, old := range append(rest, path) {
		if err := os.Remove(old); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, "", fmt.Errorf("cannot remove the rest of an earlier backup: %w", err)
		}
	}
	if id, err = write(r.Context(), path); err != nil {
		return nil, "", err
	}
	f, err = os.Open(path)
	return f, id, errors.Join(err, os.Remove(path))
}

// patient is a stream. Its client has stallTimeout for each piece, and unlimited time for the whole.
type patient struct {
	http.ResponseWriter
	control *http.ResponseController
}

func (p *patient) Write(b []byte) (int, error) {
	if err := p.control.SetWriteDeadline(time.Now().Add(stallTimeout)); err != nil {
		return 0, err
	}
	return p.ResponseWriter.Write(b)
}
