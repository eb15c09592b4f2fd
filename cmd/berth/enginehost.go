package main

import (
	"fmt"
	"strings"
	"syscall"

	"berth/internal/cli"
	"berth/internal/docker"
)

// engineHost is which engine --docker-host means: where nothing is said the one of this host, unless its socket is not
// for us to use. One that is not there yet is waited for: Berth is started before the engine. Empty: none.
func engineHost(said string) (string, error) {
	switch {
	case said == cli.NoDockerHost:
		return "", nil
	case said == "" && mayUse(strings.TrimPrefix(docker.DefaultHost, "unix://")):
		return docker.DefaultHost, nil
	case said == "":
		return "", nil
	case !strings.Contains(said, "://"):
		return "", fmt.Errorf("--docker-host is %q and must be a URL such as %s, or none", said, docker.DefaultHost)
	}
	return said, nil
}

// mayUse tells whether a socket may be used, once it is there. It does not connect: that would start an engine which
// systemd keeps waiting for whoever is first.
func mayUse(path string) bool {
	const write = 2
	return !cli.IsDenied(syscall.Access(path, write))
}
