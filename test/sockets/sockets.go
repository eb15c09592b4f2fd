// Package sockets makes unix sockets and finds free ports for tests of commands and daemons. Sockets close with the
// test.
//
// Listening returns a socket with a listener, and Dead returns one without a listener. FreeAddress and Free return
// addresses where another program may listen.
package sockets

import (
	"net"
	"os"
	"path/filepath"
	"testing"
)

// Listening has something take connections on a socket until the test ends.
func Listening(t testing.TB, path string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
}

// Dead leaves a socket on which nothing listens.
func Dead(t testing.TB, path string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
}
