package main

import (
	"testing"
)

func TestEngineHost(t *testing.T) {
	for said, want := range map[string]string{"none": "", "unix:///run/docker.sock": "unix:///run/docker.sock",
		"tcp://127.0.0.1:2375": "tcp://127.0.0.1:2375"} {
		if got, err := engineHost(said); got != want || err != nil {
			t.Errorf("%q: %q, %v", said, got, err)
		}
	}
	const want = `--docker-host is "/run/docker.sock" and must be a URL such as unix:///var/run/docker.sock, or none`
	if _, err := engineHost("/run/docker.sock"); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// A socket that does not exist yet may be used later.
func TestMayUse(t *testing.T) {
	dir := t.TempDir()
	if !mayUse(dir + "/docker.sock") {
		t.Error("a socket that is not there yet is not waited for")
	}
	if !mayUse(dir) {
		t.Error("what is ours may not be used")
	}
}
