// Package sockets makes the unix sockets that tests of commands and daemons come upon, and finds them ports. It
// promises that what it leaves open is closed with the test.
//
// Listening is one on which somebody listens; Dead is one that was left behind. FreeAddress, and Free, are where a
// program that is not of the test may listen.
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
