package main

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// aclOf reads the access control list of a file: tag, permissions and id of each entry.
func aclOf(t *testing.T, path string) (all string) {
	t.Helper()
	list := make([]byte, 256)
	n, err := unix.Lgetxattr(path, "system.posix_acl_access", list)
	fine(t, err)
	for e := list[4:n]; len(e) > 0; e = e[8:] {
		tag := map[uint16]string{aclOwner: "owner", aclOwnerGroup: "its-group", aclGroup: "group", aclMask: "mask",
			aclOther: "other"}[binary.LittleEndian.Uint16(e)]
		all += fmt.Sprintf("%s:%d:%d ", tag, binary.LittleEndian.Uint16(e[2:]),
			int32(binary.LittleEndian.Uint32(e[4:])))
	}
	return strings.TrimSpace(all)
}

// The group of readers can reach the socket, and its directory if Berth creates that. Nobody else gains access.
func TestReadersReachTheSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run", "admin.sock")
	s, err := bind(socketSpec{name: "admin", flag: "--admin-socket", path: path, gid: os.Getegid(), readGID: 54321})
	fine(t, err)
	defer s.Close()
	for file, want := range map[string]string{
		path:               "-rw-rw---- owner:6:-1 its-group:6:-1 group:6:54321 mask:6:-1 other:0:-1",
		filepath.Dir(path): "-rwxr-x--- owner:7:-1 its-group:5:-1 group:5:54321 mask:5:-1 other:0:-1",
	} {
		mode, _ := owned(t, file)
		if got := mode.Perm().String() + " " + aclOf(t, file); got != want {
			t.Errorf("%s lets in %s, want %s", file, got, want)
		}
	}
	reached(t, path)
}

// Without a group for readers, the file mode alone decides.
func TestNoReaders(t *testing.T) {
	for _, readGID := range []int{-1, 0} {
		path := filepath.Join(t.TempDir(), "run", "admin.sock")
		s, err := bind(socketSpec{name: "admin", flag: "--admin-socket", path: path, gid: -1, readGID: readGID})
		fine(t, err)
		defer s.Close()
		if n, err := unix.Lgetxattr(path, "system.posix_acl_access", nil); err == nil {
			t.Errorf("the socket has a list of %d bytes", n)
		}
	}
}

// If the file system has no access control lists, the error says what to do.
func TestNoLists(t *testing.T) {
	err := admit("/proc/self/status", 54321, aclRead)
	if err == nil || !strings.Contains(err.Error(), "has no access control lists") {
		t.Errorf("a list in /proc: %v", err)
	}
}
