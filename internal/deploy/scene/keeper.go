package scene

import (
	"context"
	"fmt"
	"path"
	"strings"

	"berth/internal/docker"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/client"
)

// Keep creates a container that never starts and has the unnamed volumes of another one, which will be removed. It has
// that one's Compose labels except the hash. So others take it for the same replica with another configuration.
func (e *Engine) Keep(ctx context.Context, id, name, image string) (string, error) {
	shown, err := e.api.ContainerInspect(ctx, id, client.ContainerInspectOptions{})
	if err != nil {
		return "", err
	}
	mounts, err := e.keeps(ctx, &shown.Container, image)
	if err != nil {
		return "", err
	}
	labels := map[string]string{}
	for key, value := range shown.Container.Config.Labels {
		if strings.HasPrefix(key, docker.ComposeLabels) {
			labels[key] = value
		}
	}
	labels[docker.LabelHash] = ""
	made, err := e.api.ContainerCreate(ctx, client.ContainerCreateOptions{Name: name,
		Config:     &container.Config{Image: image, Entrypoint: []string{neverStarted}, Labels: labels},
		HostConfig: &container.HostConfig{NetworkMode: "none", Mounts: mounts}})
	if err != nil {
		return "", fmt.Errorf("cannot create a container that keeps its anonymous volumes: %w", err)
	}
	return made.ID, nil
}

// keeps returns mounts for the unnamed volumes of a container. It prevents further unnamed volumes of the image,
// because each such container would leave some behind.
func (e *Engine) keeps(ctx context.Context, c *container.InspectResponse, image string) (all []mount.Mount, err error) {
	at := map[string]bool{}
	before := read(c)
	for _, v := range before.Volumes {
		if v.Anonymous() {
			at[path.Clean(v.Target)] = true
			all = append(all, mount.Mount{Type: mount.TypeVolume, Source: v.Name, Target: v.Target,
				VolumeOptions: &mount.VolumeOptions{NoCopy: true}})
		}
	}
	has, err := e.api.ImageInspect(ctx, image)
	if err != nil || has.Config == nil {
		return all, err
	}
	for target := range has.Config.Volumes {
		if !at[path.Clean(target)] {
			all = append(all, mount.Mount{Type: mount.TypeTmpfs, Target: target})
		}
	}
	return all, nil
}
