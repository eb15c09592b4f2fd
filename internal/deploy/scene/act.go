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

// Image is what the engine has of an image.
type Image struct {
	ID      string
	Digests []string // of the registries that it came from; none: it was made here
}

// Image reads what the engine has by a reference; false where it has nothing.
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

// IsGone tells whether an error says that there is no such container.
func IsGone(err error) bool { return errdefs.IsNotFound(err) }

// Stop ends a container by its own signal, and kills it when its own time for that is over. One that is gone is no
// error.
func (e *Engine) Stop(ctx context.Context, id string) error {
	_, err := e.api.ContainerStop(ctx, id, client.ContainerStopOptions{})
	if errdefs.IsNotFound(err) {
		return nil
	}
	return err
}

// Start starts a container that is there.
func (e *Engine) Start(ctx context.Context, id string) error {
	_, err := e.api.ContainerStart(ctx, id, client.ContainerStartOptions{})
	return err
}

// Remove removes a container that was stopped, and none of its volumes. One that is gone is no error.
func (e *Engine) Remove(ctx context.Context, id string) error {
	_, err := e.api.ContainerRemove(ctx, id, client.ContainerRemoveOptions{})
	if err == nil || errdefs.IsNotFound(err) {
		e.mover.Done(id)
		return nil
	}
	return err
}

// Rename gives a container another name.
func (e *Engine) Rename(ctx context.Context, id, name string) error {
	_, err := e.api.ContainerRename(ctx, id, client.ContainerRenameOptions{NewName: name})
	return err
}

// LastLines are the last that a container has said.
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
