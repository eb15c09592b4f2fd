package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// socket is a unix socket that this process listens on. It has bound the socket itself, or got it from systemd.
type socket struct {
	*net.UnixListener
	path string
	file fs.FileInfo // of a socket that we have bound; nil: systemd's
}

// boundSocket is a socket that this process has bound.
type boundSocket struct{ *socket }

// listener returns the listener of the socket, for a server. One from systemd is no drain.Bound.
func (s *socket) listener() net.Listener {
	if s.file == nil {
		return s.UnixListener
	}
	return boundSocket{s}
}

// Unlink removes the socket's file if it is still ours, so that nobody can connect any more.
func (b boundSocket) Unlink() error { return b.unlink() }

// socketSpec describes a socket to bind.
type socketSpec struct {
	name string // of the file descriptor from systemd; also used in errors
	flag string // the flag for another path
	path string // empty: none
	gid  int    // the group whose members may connect; -1: only our own user

	readGID int // another such group; 0 or -1: none
}

// maxSocketPath is the size of the path in sockaddr_un (unix(7)) without its final zero.
const maxSocketPath = 107

// bind listens on spec.path. It removes an existing socket only if nothing answers there, and never removes anything
// else.
func bind(spec socketSpec) (*socket, error) {
	path := spec.path
	if len(path) > maxSocketPath {
		return nil, fmt.Errorf("the path of the %s socket has %d bytes, but at most %d are possible: %s; choose a "+
			"shorter path with %s",
			spec.name, len(path), maxSocketPath, path, spec.flag)
	}
	if err := makeSocketDir(spec); err != nil {
		return nil, err
	}
	if err := clearStale(spec); err != nil {
		return nil, err
	}
	l, err := listenPrivate(path)
	if err != nil {
		return nil, fmt.Errorf("cannot listen on the %s socket %s: %w; choose another path with %s", spec.name, path,
			err, spec.flag)
	}
	s := &socket{UnixListener: l, path: path}
	if s.file, err = os.Lstat(path); err == nil && spec.gid >= 0 {
		err = share(path, spec.gid, 0o660)
	}
	if err == nil && spec.readGID > 0 {
		err = admit(path, spec.readGID, aclRead|aclWrite)
	}
	if err != nil {
		s.Close()
		return nil, fmt.Errorf("cannot set up the %s socket %s: %w", spec.name, path, err)
	}
	return s, nil
}

// listenPrivate binds with a umask that gives access only to the owner from the first moment. A later change of the
// mode would be too late. The umask applies to the whole process, so nothing else may create files meanwhile. serve
// binds its sockets before it starts such tasks.
func listenPrivate(path string) (*net.UnixListener, error) {
	defer syscall.Umask(syscall.Umask(0o177))
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, rootCause(err)
	}
	l.SetUnlinkOnClose(false) // Close checks first whether the file is ours
	return l, nil
}

// makeSocketDir creates the directory of a socket if it is missing. An existing one keeps its mode.
func makeSocketDir(spec socketSpec) error {
	dir := filepath.Dir(spec.path)
	if _, err := os.Stat(dir); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("cannot make the directory of the %s socket: %w; choose another path with %s", spec.name, err,
			spec.flag)
	}
	if spec.gid >= 0 { // its members must be able to reach the socket
		if err := share(dir, spec.gid, 0o750); err != nil {
			return err
		}
	}
	if spec.readGID > 0 {
		return admit(dir, spec.readGID, aclRead|aclExecute)
	}
	return nil
}

func share(path string, gid int, mode fs.FileMode) error {
	if err := os.Lchown(path, -1, gid); err != nil {
		return err
	}
	return os.Chmod(path, mode)
}

// clearStale removes a stale socket at spec.path, or returns what is in the way.
func clearStale(spec socketSpec) error {
	before, err := os.Lstat(spec.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if before.Mode().Type() != fs.ModeSocket {
		return fmt.Errorf("%s is at the path of the %s socket but is not a socket (%s): move it away, or choose "+
			"another path with %s",
			spec.path, spec.name, before.Mode().Type(), spec.flag)
	}
	conn, err := net.DialTimeout("unix", spec.path, time.Second)
	if err == nil {
		defer conn.Close()
		return fmt.Errorf("%s answers on the %s socket %s: stop it first, or choose another path with %s",
			listener(conn), spec.name, spec.path, spec.flag)
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return fmt.Errorf("cannot tell whether a process still uses the %s socket %s: %w; stop that process, "+
			"or choose another path with %s",
			spec.name, spec.path, rootCause(err), spec.flag)
	}
	if after, err := os.Lstat(spec.path); err != nil || !os.SameFile(before, after) {
		return fmt.Errorf("another process is changing the %s socket %s right now: start only one daemon", spec.name,
			spec.path)
	}
	return os.Remove(spec.path)
}

// Close stops listening and removes the socket's file if it is still ours.
func (s *socket) Close() error {
	err := s.UnixListener.Close()
	if errors.Is(err, net.ErrClosed) {
		err = nil // the server on it has closed it
	}
	return errors.Join(err, s.unlink())
}

// unlink removes the file of a socket that we have bound, once.
func (s *socket) unlink() error {
	ours := s.file
	if ours == nil {
		return nil
	}
	s.file = nil
	if now, err := os.Lstat(s.path); err != nil || !os.SameFile(now, ours) {
		return nil
	}
	return os.Remove(s.path)
}

// listener names the process that listens at the other end of a connection, as the kernel recorded it (unix(7),
// SO_PEERCRED).
func listener(c net.Conn) string {
	pid := 0
	if raw, err := c.(*net.UnixConn).SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) {
			if cred, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
				pid = int(cred.Pid)
			}
		})
	}
	if pid == 0 { // it is in another pid namespace
		return "a process that cannot be seen from here"
	}
	name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	if err != nil {
		return fmt.Sprintf("process %d", pid)
	}
	return fmt.Sprintf("process %d (%s)", pid, strings.TrimSpace(string(name)))
}

// rootCause returns the system's own error without net's prefix, because the sentence around it has the path.
func rootCause(err error) error {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return errno
	}
	return err
}
