package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"berth/internal/plan"
)

// Modes of files that commands write, before the umask: one for files that others may read, and a private one for files
// that may hold secrets.
const (
	OpenMode    fs.FileMode = 0o666
	PrivateMode fs.FileMode = 0o600
)

// WriteWhole writes a file through fn. The file gets its name when it is complete and on disk; after an error the old
// file stays. Without a name fn writes to out.
func WriteWhole(out io.Writer, name string, fn func(io.Writer) error) error {
	return WriteWith(OpenMode, out, name, fn)
}

// WriteText writes a whole file with a text.
func WriteText(mode fs.FileMode, out io.Writer, name string, text []byte) error {
	return WriteWith(mode, out, name, func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	})
}

// WriteWith is WriteWhole with the mode of a new file. A file of the caller keeps its mode when it is replaced. A file
// of somebody else does not: its owner could otherwise read a secret. It follows no link.
func WriteWith(mode fs.FileMode, out io.Writer, name string, fn func(io.Writer) error) error {
	if name == "" || name == "-" {
		return fn(out)
	}
	switch info, err := os.Stat(name); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s exists and is not a regular file; give another name", name)
	}
	info, err := os.Lstat(name)
	if err == nil && info.Mode().IsRegular() && info.Sys().(*syscall.Stat_t).Uid == uint32(os.Geteuid()) {
		mode = info.Mode().Perm()
	}
	temp, err := os.OpenFile(fmt.Sprintf("%s/.%s.%d.part", filepath.Dir(name), filepath.Base(name), os.Getpid()),
		os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	defer os.Remove(temp.Name()) // fails after the rename, which is harmless
	err = fn(temp)
	if err == nil {
		err = temp.Sync()
	}
	if err = errors.Join(err, temp.Close()); err != nil {
		return err
	}
	if err := os.Rename(temp.Name(), name); err != nil {
		return err
	}
	return SyncDir(filepath.Dir(name))
}

func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func (r *Run) ReadFile(file string) ([]byte, error) {
	in := r.Cmd.InOrStdin()
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	text, err := io.ReadAll(io.LimitReader(in, plan.MaxSize+1))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", Named(file), err)
	}
	return text, nil
}

// Named is a document's name in messages.
func Named(file string) string {
	if file == "-" {
		return "standard input"
	}
	return file
}
