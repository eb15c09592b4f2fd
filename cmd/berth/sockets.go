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

// socket is a unix socket that this process listens on: one that it has bound itself, or one that systemd handed over.
type socket struct {
	net.Listener
	path string
	file fs.FileInfo // of the socket that we have bound; nil: it is systemd's
}

// socketSpec says where and for whom a socket is bound.
type socketSpec struct {
	name string // of the file descriptor, where systemd hands it over; for errors
	flag string // with which a person names another path
	path string // empty: none is bound
	gid  int    // group whose members may connect; -1: only our own user

	readGID int // another such group; 0 or -1: none
}

// maxSocketPath is what fits into sockaddr_un (unix(7)), its final zero taken off.
const maxSocketPath = 107

// bind listens on spec.path. What is there already is looked at first: only a socket on which nothing answers is
// removed, never one that answers and never anything that is not a socket.
func bind(spec socketSpec) (*socket, error) {
	path := spec.path
	if len(path) > maxSocketPath {
		return nil, fmt.Errorf("the path of the %s socket has %d bytes, and a socket's has at most %d: %s; choose a "+
			"shorter one with %s",
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
	s := &socket{Listener: l, path: path}
	if s.file, err = os.Lstat(path); err == nil && spec.gid >= 0 {
		err = share(path, spec.gid, 0o660)
	}
	if err == nil && spec.readGID > 0 {
		err = admit(path, spec.readGID, aclRead|aclWrite)
	}
	if err != nil {
		s.Close()
		return nil, fmt.Errorf("the %s socket %s: %w", spec.name, path, err)
	}
	return s, nil
}

// listenPrivate binds with a mask that leaves the socket to its owner alone from its first moment on: a mode that is
// set afterwards comes too late. The mask is the process's, so nothing else may create files meanwhile; serve binds its
// sockets before it starts anything that does.
func listenPrivate(path string) (*net.UnixListener, error) {
	defer syscall.Umask(syscall.Umask(0o177))
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, rootCause(err)
	}
	l.SetUnlinkOnClose(false) // Close below looks whose it is first
	return l, nil
}

// makeSocketDir makes the directory of a socket where it is missing; one that is there is somebody's decision.
func makeSocketDir(spec socketSpec) error {
	dir := filepath.Dir(spec.path)
	if _, err := os.Stat(dir); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("the directory of the %s socket: %w; choose another path with %s", spec.name, err, spec.flag)
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

// clearStale makes room for a socket at spec.path, or says what is in the way.
func clearStale(spec socketSpec) error {
	before, err := os.Lstat(spec.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if before.Mode().Type() != fs.ModeSocket {
		return fmt.Errorf("%s is in the way of the %s socket and is not a socket (%s): move it away, or choose "+
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
		return fmt.Errorf("something is at the %s socket %s and does not answer as a dead socket does: %w; stop it, "+
			"or choose another path with %s",
			spec.name, spec.path, rootCause(err), spec.flag)
	}
	if after, err := os.Lstat(spec.path); err != nil || !os.SameFile(before, after) {
		return fmt.Errorf("somebody else changes the %s socket %s at this moment: start one daemon only", spec.name,
			spec.path)
	}
	return os.Remove(spec.path)
}

// Close stops listening and removes the socket's file, unless it is not ours or not there any more.
func (s *socket) Close() error {
	err := s.Listener.Close()
	if errors.Is(err, net.ErrClosed) {
		err = nil // the server that served on it has closed it
	}
	if s.file == nil {
		return err
	}
	if now, statErr := os.Lstat(s.path); statErr == nil && os.SameFile(now, s.file) {
		err = errors.Join(err, os.Remove(s.path))
	}
	return err
}

// listener names the process at the other end of a connection: the kernel notes who called listen (unix(7),
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
	if pid == 0 { // of another pid namespace
		return "a process that cannot be seen from here"
	}
	name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	if err != nil {
		return fmt.Sprintf("process %d", pid)
	}
	return fmt.Sprintf("process %d (%s)", pid, strings.TrimSpace(string(name)))
}

// rootCause drops what net puts before the system's own word: the sentence around it names the path already.
func rootCause(err error) error {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return errno
	}
	return err
}
