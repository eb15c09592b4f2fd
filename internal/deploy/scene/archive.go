package scene

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path"
	"time"

	"berth/internal/docker"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/client"
)

// The mount point of a volume in its copier's container. All volumes use the same path, so an archive of one volume can
// be extracted into another, with the mode and owner of the volume itself.
const (
	copierDir  = "/berth"
	copierPart = "volume"
)

// neverStarted is the entry point of containers that only hold volumes.
const neverStarted = "/never-started"

// Copier is two containers that never start. Through them the engine reads one volume and writes another. There are
// two, because an engine does one thing at a time with a container's files.
type Copier struct {
	engine   *Engine
	from, to string // volumes
	ids      []string
}

// NewCopier creates the containers from an image. The image's own files are not copied into the volumes. The caller
// closes the Copier; RemoveCopiers removes one that was not closed.
func (e *Engine) NewCopier(ctx context.Context, project, image, from, to string) (*Copier, error) {
	c := &Copier{engine: e, from: from, to: to}
	for _, volume := range []string{from, to} {
		id, err := e.holder(ctx, project, image, volume, volume == from)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("cannot create a container that copies %s to %s: %w", from, to, err),
				c.Close(ctx))
		}
		c.ids = append(c.ids, id)
	}
	return c, nil
}

// holder creates a container with a volume.
func (e *Engine) holder(ctx context.Context, project, image, volume string, reads bool) (string, error) {
	name := make([]byte, 6)
	_, _ = rand.Read(name) // never fails
	made, err := e.api.ContainerCreate(ctx, client.ContainerCreateOptions{
		Name: "berth-copier-" + hex.EncodeToString(name),
		Config: &container.Config{Image: image, Entrypoint: []string{neverStarted},
			// A built image has Compose's labels, but this container is not Compose's.
			Labels: map[string]string{labelCopier: project, docker.LabelProject: "", docker.LabelService: ""}},
		HostConfig: &container.HostConfig{NetworkMode: "none",
			Mounts: []mount.Mount{{Type: mount.TypeVolume, Source: volume, Target: path.Join(copierDir, copierPart),
				ReadOnly: reads, VolumeOptions: &mount.VolumeOptions{NoCopy: true}}}},
	})
	return made.ID, err
}

// Close removes the containers, with the unnamed volumes of their image.
func (c *Copier) Close(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	for _, id := range c.ids {
		err = errors.Join(err, c.engine.removeCopier(ctx, id))
	}
	return err
}

func (e *Engine) removeCopier(ctx context.Context, id string) error {
	_, err := e.api.ContainerRemove(ctx, id, client.ContainerRemoveOptions{RemoveVolumes: true, Force: true})
	if err != nil && !errdefs.IsNotFound(err) {
		return fmt.Errorf("the container %s, which copied volumes, cannot be removed: %w", id, err)
	}
	return nil
}

// RemoveCopiers removes copiers that a deploy of the project left behind.
func (e *Engine) RemoveCopiers(ctx context.Context, project string) error {
	list, err := e.api.ContainerList(ctx, client.ContainerListOptions{All: true,
		Filters: make(client.Filters).Add("label", labelCopier+"="+project)})
	if err != nil {
		return fmt.Errorf("the engine's containers cannot be listed: %w", err)
	}
	for _, one := range list.Items {
		if err := e.removeCopier(ctx, one.ID); err != nil {
			return err
		}
	}
	return nil
}

// Copy copies the content of the first volume to the second, which is empty or has a part of it. An engine's archive
// does not contain fractions of seconds in times, sockets, holes, access control lists, or attributes except file
// capabilities.
func (c *Copier) Copy(ctx context.Context) error {
	content, err := c.read(ctx, 0)
	if err != nil {
		return err
	}
	defer content.Close()
	_, err = c.engine.api.CopyToContainer(ctx, c.ids[1], client.CopyToContainerOptions{DestinationPath: copierDir,
		Content: content})
	if err != nil {
		return fmt.Errorf("the content of the volume %s cannot be copied to %s: %w", c.from, c.to, err)
	}
	return nil
}

// read returns the archive of the first or second volume.
func (c *Copier) read(ctx context.Context, which int) (io.ReadCloser, error) {
	read, err := c.engine.api.CopyFromContainer(ctx, c.ids[which], client.CopyFromContainerOptions{
		SourcePath: path.Join(copierDir, copierPart)})
	if err != nil {
		return nil, fmt.Errorf("the content of the volume %s cannot be read: %w", []string{c.from, c.to}[which], err)
	}
	return read.Content, nil
}

// Verify compares both volumes byte by byte, with names, modes, owners, links, times and everything else in their
// archives. Its error names the first difference.
func (c *Copier) Verify(ctx context.Context) error {
	return c.compare(ctx, sameContent)
}

// Holds reports whether the first volume has everything in the second one, possibly an incomplete copy. If so, the
// second can be deleted without loss.
func (c *Copier) Holds(ctx context.Context) (bool, error) {
	err := c.compare(ctx, holdsContent)
	if differs := (*differs)(nil); errors.As(err, &differs) {
		return false, nil
	}
	return err == nil, err
}

// compare calls how with the archives of both volumes.
func (c *Copier) compare(ctx context.Context, how func(from, to io.Reader) error) error {
	from, err := c.read(ctx, 0)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := c.read(ctx, 1)
	if err != nil {
		return err
	}
	defer to.Close()
	if err := how(from, to); err != nil {
		return fmt.Errorf("the volumes %s and %s are not the same: %w", c.from, c.to, err)
	}
	return nil
}
