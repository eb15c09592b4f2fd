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

// Maker makes containers of one project by its compose command.
type Maker struct {
	Command
	Dial func(ctx context.Context, network, address string) (net.Conn, error) // the engine
}

// Make makes a replica and starts it, once created has looked at it. What that refuses is there and does not run. The
// id is that of what was made, also with an error; empty: nothing was.
func (m *Maker) Make(ctx context.Context, r Replica, created func(ctx context.Context, id string) error) (string,
	error) {
	f := newFilter(m.Project, r, m.Dial, created)
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
	scale := r.Service + "=" + strconv.Itoa(r.Number)
	_, err = m.run(ctx, []string{"DOCKER_HOST=unix://" + socket, "DOCKER_CONTEXT=", "DOCKER_TLS_VERIFY="},
		"up", "--detach", "--no-deps", "--no-recreate", "--no-build", "--scale", scale, r.Service)
	_ = server.Close()
	<-served
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
