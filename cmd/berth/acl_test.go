package main

import (
	"encoding/binary"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// aclOf reads the access control list of a file: tag, permissions and id of each entry.
func aclOf(t *testing.T, path string) [][3]uint32 {
	t.Helper()
	list := make([]byte, 256)
	n, err := unix.Lgetxattr(path, "system.posix_acl_access", list)
	fine(t, err)
	var all [][3]uint32
	for e := list[4:n]; len(e) > 0; e = e[8:] {
		all = append(all, [3]uint32{uint32(binary.LittleEndian.Uint16(e)), uint32(binary.LittleEndian.Uint16(e[2:])),
			binary.LittleEndian.Uint32(e[4:])})
	}
	return all
}

// The socket lets a second group in, and its directory, where Berth makes it, too; nobody else.
func TestReadersReachTheSocket(t *testing.T) {
	const gid = 54321
	path := filepath.Join(t.TempDir(), "run", "admin.sock")
	s, err := bind(socketSpec{name: "admin", flag: "--admin-socket", path: path, gid: os.Getegid(), readGID: gid})
	fine(t, err)
	defer s.Close()
	const nobody = 1<<32 - 1
	for file, want := range map[string]struct {
		mode    os.FileMode
		entries [][3]uint32
	}{
		path: {0o660,
			[][3]uint32{{aclOwner, 6, nobody}, {aclOwnerGroup, 6, nobody}, {aclGroup, 6, gid}, {aclMask, 6, nobody},
				{aclOther, 0, nobody}}},
		filepath.Dir(path): {0o750,
			[][3]uint32{{aclOwner, 7, nobody}, {aclOwnerGroup, 5, nobody}, {aclGroup, 5, gid}, {aclMask, 5, nobody},
				{aclOther, 0, nobody}}},
	} {
		if mode, _ := owned(t, file); mode.Perm() != want.mode {
			t.Errorf("%s has the mode %v", file, mode)
		}
		if got := aclOf(t, file); !slices.Equal(got, want.entries) {
			t.Errorf("%s lets in %v, want %v", file, got, want.entries)
		}
	}
	conn, err := net.Dial("unix", path)
	fine(t, err)
	conn.Close()
}

// Without the group everything is as its mode says, also where only readers have a group.
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

// Where the file system keeps no such lists, the error says what to do.
func TestNoLists(t *testing.T) {
	err := admit("/proc/self/status", 54321, aclRead)
	if err == nil || !strings.Contains(err.Error(), "keeps no access control lists") {
		t.Errorf("a list in /proc: %v", err)
	}
}
