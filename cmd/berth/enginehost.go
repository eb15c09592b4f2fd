package main

import (
	"fmt"
	"strings"
	"syscall"
)

// defaultDockerHost is where the Docker Engine of this host answers.
const (
	defaultDockerHost   = "unix://" + defaultDockerSocket
	defaultDockerSocket = "/var/run/docker.sock"
)

// noDockerHost is the value of --docker-host for no engine at all.
const noDockerHost = "none"

// engineHost is which engine --docker-host means: where nothing is said the one of this host, if its socket is there and may
// be used. Empty: none.
func engineHost(said string) (string, error) {
	switch {
	case said == noDockerHost:
		return "", nil
	case said == "" && mayWrite(defaultDockerSocket):
		return defaultDockerHost, nil
	case said == "":
		return "", nil
	case !strings.Contains(said, "://"):
		return "", fmt.Errorf("--docker-host is %q and must be a URL such as %s, or none", said, defaultDockerHost)
	}
	return said, nil
}

// mayWrite tells whether a socket may be used. It does not connect: that would start an engine which systemd keeps waiting for
// whoever is first.
func mayWrite(path string) bool {
	const write = 2
	return syscall.Access(path, write) == nil
}
