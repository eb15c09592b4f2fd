// Package wholefile writes small files atomically: after a crash a file has its old or its new content.
package wholefile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Write puts a file of mode 0600 in the place of path. It returns when the file and its name are on the disk. A file has
// one writer at a time, which also removes what one left that was cut off. The file is made anew, so no link is followed.
func Write(path string, text []byte) error {
	temp := path + ".part"
	if err := os.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(temp, path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(temp))
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
