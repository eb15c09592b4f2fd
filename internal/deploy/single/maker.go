package single

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Maker makes containers of one project by its compose command.
type Maker struct {
	Compose []string // the command, such as docker compose
	Project string
	Files   []string // absolute paths
	Options []string // further ones of the command that come before the verb, such as --profile NAME
	Dial    func(ctx context.Context, network, address string) (net.Conn, error)
}

// Make makes a replica and starts it, once created has looked at it. What that refuses is there and does not run. The
// id is that of what was made, also with an error; empty: nothing was.
func (m *Maker) Make(ctx context.Context, r Replica, created func(ctx context.Context, id string) error) (string,
	error) {
	f := newFilter(r, m.Dial, created)
	defer f.close()
	dir, err := os.MkdirTemp("", "berth-deploy-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	socket := filepath.Join(dir, "engine.sock")
	l, err := net.Listen("unix", socket)
	if err != nil {
		return "", err
	}
	server := &http.Server{Handler: f, ReadHeaderTimeout: time.Minute}
	served := make(chan struct{})
	go func() { defer close(served); _ = server.Serve(l) }() // it ends by Close
	said, err := m.run(ctx, socket, r)
	_ = server.Close()
	<-served
	id, started, refused := f.result()
	switch {
	case len(refused) > 0:
		return id, errors.New(strings.Join(refused, "; "))
	case err != nil:
		return id, fmt.Errorf("%s: %w: %s", strings.Join(m.Compose, " "), err, lastLines(said))
	case id == "":
		return "", fmt.Errorf("%s has made no container for %s: %s", strings.Join(m.Compose, " "), r.title(),
			lastLines(said))
	case !started:
		return id, fmt.Errorf("%s has made a container for %s and did not start it: %s", strings.Join(m.Compose, " "),
			r.title(), lastLines(said))
	}
	return id, nil
}

// run runs the compose command for the one service, as if it had as many replicas as the wanted number.
func (m *Maker) run(ctx context.Context, socket string, r Replica) (said []byte, err error) {
	args := append([]string{}, m.Compose[1:]...)
	args = append(args, "--project-name", m.Project)
	for _, file := range m.Files {
		args = append(args, "--file", file)
	}
	args = append(args, m.Options...)
	args = append(args, "up", "--detach", "--no-deps", "--no-recreate", "--no-build", "--scale",
		r.Service+"="+strconv.Itoa(r.Number), r.Service)
	cmd := exec.CommandContext(ctx, m.Compose[0], args...)
	cmd.Env = append(os.Environ(), "DOCKER_HOST=unix://"+socket, "DOCKER_CONTEXT=", "DOCKER_TLS_VERIFY=",
		"COMPOSE_PROJECT_NAME=", "COMPOSE_FILE=")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err = cmd.Run()
	return out.Bytes(), err
}

// lastLines are the last of what a command has said.
func lastLines(said []byte) string {
	lines := strings.Split(strings.TrimSpace(string(said)), "\n")
	const shown = 5
	return strings.Join(lines[max(0, len(lines)-shown):], "\n")
}
