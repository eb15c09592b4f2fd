package scene

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/moby/moby/client"
)

// Image is an image in the engine.
type Image struct {
	ID      string
	Digests []string // in the registries that it came from; none: it was built here
}

// Image reads the image of a reference. It returns false if there is none.
func (e *Engine) Image(ctx context.Context, ref string) (Image, bool, error) {
	shown, err := e.api.ImageInspect(ctx, ref)
	if errdefs.IsNotFound(err) {
		return Image{}, false, nil
	}
	if err != nil {
		return Image{}, false, fmt.Errorf("the image %s cannot be inspected: %w", ref, err)
	}
	return Image{ID: shown.ID, Digests: shown.RepoDigests}, true, nil
}

// IsGone reports whether an error says that a container does not exist.
func IsGone(err error) bool { return errdefs.IsNotFound(err) }

// Stop stops a container with its own signal, and kills it when its own grace period is over. A missing container is
// not an error.
func (e *Engine) Stop(ctx context.Context, id string) error {
	_, err := e.api.ContainerStop(ctx, id, client.ContainerStopOptions{})
	if errdefs.IsNotFound(err) {
		return nil
	}
	return err
}

// Start starts an existing container.
func (e *Engine) Start(ctx context.Context, id string) error {
	_, err := e.api.ContainerStart(ctx, id, client.ContainerStartOptions{})
	return err
}

// Remove removes a stopped container and none of its volumes. A missing container is not an error.
func (e *Engine) Remove(ctx context.Context, id string) error {
	_, err := e.api.ContainerRemove(ctx, id, client.ContainerRemoveOptions{})
	if err == nil || errdefs.IsNotFound(err) {
		e.places.Mover().Done(id)
		return nil
	}
	return err
}

// Rename renames a container.
func (e *Engine) Rename(ctx context.Context, id, name string) error {
	_, err := e.api.ContainerRename(ctx, id, client.ContainerRenameOptions{NewName: name})
	return err
}

// LastLines returns the last lines of a container's output.
func (e *Engine) LastLines(ctx context.Context, id string, lines int) ([]string, error) {
	logs, err := e.api.ContainerLogs(ctx, id, client.ContainerLogsOptions{ShowStdout: true, ShowStderr: true,
		Tail: fmt.Sprint(lines)})
	if err != nil {
		return nil, err
	}
	defer logs.Close()
	shown, err := e.api.ContainerInspect(ctx, id, client.ContainerInspectOptions{})
	if err != nil {
		return nil, err
	}
	var said bytes.Buffer
	if shown.Container.Config != nil && shown.Container.Config.Tty {
		_, err = io.Copy(&said, logs)
	} else {
		_, err = stdcopy.StdCopy(&said, &said, logs)
	}
	text := strings.TrimRight(said.String(), "\n")
	if text == "" {
		return nil, err
	}
	all := strings.Split(text, "\n")
	return all[max(0, len(all)-lines):], err
}
