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

	"github.com/spf13/cobra"
)

// The modes of files that commands write, less what the umask takes away: one for whoever the caller lets see what he
// writes, and one for himself alone, of what says more than he may think.
const (
	openMode    fs.FileMode = 0o666
	PrivateMode fs.FileMode = 0o600
)

// WriteWhole has fn write a file, which gets its name when it is whole and on the disk; whatever goes wrong, what was
// there stays as it was. Without a name it writes to out.
func WriteWhole(out io.Writer, name string, fn func(io.Writer) error) error {
	return WriteWith(openMode, out, name, fn)
}

// WriteWith is WriteWhole for a file that has a mode where it is new. A file of the caller keeps its mode when it is
// replaced. One of somebody else does not, or its owner could have a secret written for him. No link is followed.
func WriteWith(mode fs.FileMode, out io.Writer, name string, fn func(io.Writer) error) error {
	if name == "" || name == "-" {
		return fn(out)
	}
	switch info, err := os.Stat(name); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is there and is not a regular file; give another name", name)
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
	defer os.Remove(temp.Name()) // after the renaming there is nothing of that name
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

func (p *Program) ReadFile(cmd *cobra.Command, file string) ([]byte, error) {
	in := cmd.InOrStdin()
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

// Named is what a document is called in messages.
func Named(file string) string {
	if file == "-" {
		return "standard input"
	}
	return file
}
