package main

import (
	"fmt"
	"strings"
	"syscall"

	"berth/internal/admin/client"
	"berth/internal/cli"
	"berth/internal/docker"
)

// engineHost returns the engine for --docker-host. By default it is the engine of this host, unless its socket is not
// accessible. A missing socket is accepted, because Berth starts before the engine. Empty: none.
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

// mayUse reports whether a socket may be used once it exists. It does not connect, because that would start an engine
// with socket activation.
func mayUse(path string) bool {
	const write = 2
	return !client.IsDenied(syscall.Access(path, write))
}
