package main

import (
	"testing"
)

func TestEngineHost(t *testing.T) {
	for _, c := range []struct{ said, want, err string }{
		{"none", "", ""},
		{"unix:///run/docker.sock", "unix:///run/docker.sock", ""},
		{"tcp://127.0.0.1:2375", "tcp://127.0.0.1:2375", ""},
		{"/run/docker.sock", "",
			`--docker-host is "/run/docker.sock" and must be a URL such as unix:///var/run/docker.sock, or none`},
	} {
		got, err := engineHost(c.said)
		text := ""
		if err != nil {
			text = err.Error()
		}
		if got != c.want || text != c.err {
			t.Errorf("%q: %q, %q; want %q, %q", c.said, got, text, c.want, c.err)
		}
	}
}

// What is not there yet may be used once it is.
func TestMayUse(t *testing.T) {
	dir := t.TempDir()
	if !mayUse(dir + "/docker.sock") {
		t.Error("a socket that is not there yet is not waited for")
	}
	if !mayUse(dir) {
		t.Error("what is ours may not be used")
	}
}
