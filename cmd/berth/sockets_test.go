package main

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"berth/test/lab"
)

func spec(path string, gid int) socketSpec {
	return socketSpec{name: "plugin", flag: "--plugin-socket", path: path, gid: gid}
}

// owned returns the mode and the group of a file.
func owned(t *testing.T, path string) (fs.FileMode, int) {
	t.Helper()
	info, err := os.Lstat(path)
	fine(t, err)
	return info.Mode(), int(info.Sys().(*syscall.Stat_t).Gid)
}

// bound binds a socket until the end of the test.
func bound(t *testing.T, path string, gid int) *socket {
	t.Helper()
	s, err := bind(spec(path, gid))
	fine(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// reached connects to a socket.
func reached(t *testing.T, path string) {
	t.Helper()
	conn, err := net.Dial("unix", path)
	fine(t, err)
	conn.Close()
}

func TestBind(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "berth.sock")
	before := syscall.Umask(0o022)
	defer syscall.Umask(before)
	s := bound(t, path, -1)
	if mask := syscall.Umask(0o022); mask != 0o022 {
		t.Errorf("the mask is %o afterwards", mask)
	}
	if mode, _ := owned(t, path); mode != fs.ModeSocket|0o600 {
		t.Errorf("the socket's mode is %v", mode)
	}
	if mode, _ := owned(t, filepath.Dir(path)); mode != fs.ModeDir|0o700 {
		t.Errorf("the directory's mode is %v", mode)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the socket is still there: %v", err)
	}
}

// Members of a socket's group can reach it and connect, nobody else can. An existing directory is not changed.
func TestBindForGroup(t *testing.T) {
	gid := os.Getegid()
	dir := t.TempDir()
	path := filepath.Join(dir, "new", "admin.sock")
	bound(t, path, gid)
	if mode, got := owned(t, path); mode != fs.ModeSocket|0o660 || got != gid {
		t.Errorf("the socket's mode is %v, its group %d", mode, got)
	}
	if mode, got := owned(t, filepath.Dir(path)); mode != fs.ModeDir|0o750 || got != gid {
		t.Errorf("the directory's mode is %v, its group %d", mode, got)
	}
	there := filepath.Join(dir, "there")
	fine(t, os.Mkdir(there, 0o711))
	fine(t, os.Chmod(there, 0o711))
	bound(t, filepath.Join(there, "admin.sock"), gid)
	if mode, _ := owned(t, there); mode != fs.ModeDir|0o711 {
		t.Errorf("the mode of a directory that was there is now %v", mode)
	}
}

// Anything that is not a socket is never followed and never removed.
func TestBindOverOtherThings(t *testing.T) {
	dir := t.TempDir()
	target := filepath.Join(dir, "target.sock")
	lab.Dead(t, target)
	for name, make := range map[string]func(path string) error{
		"file":      func(path string) error { return os.WriteFile(path, []byte("precious"), 0o600) },
		"directory": func(path string) error { return os.Mkdir(path, 0o700) },
		"fifo":      func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"link":      func(path string) error { return os.Symlink(target, path) },
		"dangling":  func(path string) error { return os.Symlink(filepath.Join(dir, "nowhere"), path) },
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(dir, name)
			fine(t, make(path))
			before, err := os.Lstat(path)
			fine(t, err)
			if _, err := bind(spec(path, -1)); err == nil || !strings.Contains(err.Error(), "is not a socket") {
				t.Errorf("over a %s: %v", name, err)
			}
			if after, err := os.Lstat(path); err != nil || !os.SameFile(before, after) ||
				before.Mode() != after.Mode() {
				t.Errorf("the %s was touched: %v", name, err)
			}
		})
	}
	if _, err := os.Lstat(target); err != nil {
		t.Errorf("what a link pointed to was touched: %v", err)
	}
}

func TestBindPathTooLong(t *testing.T) {
	path := filepath.Join(t.TempDir(), strings.Repeat("x", maxSocketPath), "berth.sock")
	if _, err := bind(spec(path, -1)); err == nil || !strings.Contains(err.Error(), "at most 107") {
		t.Errorf("a path that is too long: %v", err)
	}
	if _, err := os.Stat(filepath.Dir(path)); err == nil {
		t.Error("its directory was made")
	}
}

// A daemon removes only its own socket at its end. Another socket may have taken its place.
func TestCloseLeavesAnothersSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "berth.sock")
	s := bound(t, path, -1)
	fine(t, os.Remove(path))
	lab.Listening(t, path)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(path); err != nil {
		t.Errorf("another's socket is gone: %v", err)
	}
}
