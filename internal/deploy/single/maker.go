package single

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Maker creates containers of one project with its compose command.
type Maker struct {
	Command
	Dial func(ctx context.Context, network, address string) (net.Conn, error) // connects to the engine

	Declared map[string]Declared // volumes that this deploy recreates
}

// Make creates a replica and starts it after created has checked it. If created refuses, the container exists but does
// not run. The id is that of the created container, even with an error; empty: none was created.
func (m *Maker) Make(ctx context.Context, r Replica, created func(ctx context.Context, id string) error) (string,
	error) {
	f := newFilter(m.Project, r, m.Dial, created)
	f.declared = m.Declared
	defer f.close()
	scale := r.Service + "=" + strconv.Itoa(r.Number)
	err := m.through(ctx, f, "up", "--detach", "--no-deps", "--no-recreate", "--no-build", "--scale", scale, r.Service)
	id, started, refused := f.result()
	switch {
	case len(refused) > 0:
		return id, errors.New(strings.Join(refused, "; "))
	case err != nil:
		return id, err
	case id == "":
		return "", fmt.Errorf("%s has made no container for %s", strings.Join(m.Words, " "), r.title())
	case !started:
		return id, fmt.Errorf("%s has made a container for %s and did not start it", strings.Join(m.Words, " "),
			r.title())
	}
	return id, nil
}

// through runs a verb of the compose command against a handler in front of the engine.
func (m *Maker) through(ctx context.Context, h http.Handler, verb ...string) error {
	dir, err := os.MkdirTemp("", "berth-deploy-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	socket := filepath.Join(dir, "engine.sock")
	l, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: h, ReadHeaderTimeout: time.Minute}
	served := make(chan struct{})
	go func() { defer close(served); _ = server.Serve(l) }() // Close ends it
	_, err = m.run(ctx, []string{"DOCKER_HOST=unix://" + socket, "DOCKER_CONTEXT=", "DOCKER_TLS_VERIFY="}, verb...)
	_ = server.Close()
	<-served
	return err
}
