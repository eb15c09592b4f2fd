package hook

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// programs lists the programs in the directory by name. It reads the directory for each event, so a new file counts
// from the next event on. It logs each unsafe file once.
func (h *Hooks) programs() ([]string, error) {
	if err := checkDir(h.cfg.Dir); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(h.cfg.Dir)
	if err != nil {
		return nil, err
	}
	var all []string
	there := map[string]bool{}
	for _, entry := range entries {
		file := filepath.Join(h.cfg.Dir, entry.Name())
		there[file] = true
		err := trusted(file, os.Geteuid())
		if errors.Is(err, fs.ErrNotExist) {
			continue // it was removed meanwhile
		}
		if err == nil {
			all = append(all, file)
			delete(h.told, file)
			continue
		}
		if h.told[file] != err.Error() {
			h.told[file] = err.Error()
			h.log.WithField("file", file).Warn("this file does not run as a hook: it " + err.Error())
		}
	}
	for file := range h.told {
		if !there[file] {
			delete(h.told, file)
		}
	}
	return all, nil
}

// trusted returns why the daemon's user must not run a file. Its error is the end of a sentence about the file. It
// refuses symbolic links, because it does not check who can change the target.
func trusted(file string, uid int) error {
	info, err := os.Lstat(file)
	if err != nil {
		return fmt.Errorf("cannot be examined: %w", err)
	}
	switch {
	case !info.Mode().IsRegular():
		return errors.New("is not a regular file")
	case !ownedBy(info, uid):
		return errors.New("belongs to neither root nor the daemon's user: chown it")
	case info.Mode().Perm()&0o022 != 0:
		return errors.New("is writable for users other than its owner: chmod go-w it")
	case info.Mode().Perm()&0o111 == 0:
		return errors.New("is not executable: chmod +x it")
	}
	return nil
}

// ownedBy reports whether a file belongs to root or to a user.
func ownedBy(info fs.FileInfo, uid int) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && (st.Uid == 0 || int(st.Uid) == uid)
}
