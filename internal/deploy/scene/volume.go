package scene

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"berth/internal/docker"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/api/types/volume"
	"github.com/moby/moby/client"
)

// Labels of volumes: Compose's, and ours for copies.
const (
	labelVolume  = docker.ComposeLabels + "volume"
	labelCopyOf  = "berth.copy-of"
	labelCopyFor = "berth.copy-for" // the project
	labelCopier  = "berth.copier"   // of the containers that copy volumes; the project
)

// localDriver is the engine's default driver of volumes.
const localDriver = "local"

// Stored is a volume in the engine.
type Stored struct {
	Name    string
	Driver  string
	Options map[string]string
	Labels  map[string]string
	Made    time.Time // zero: its driver does not know
	Project string    // the project for which Compose or a deploy created it; empty: none
	Key     string    // in the files of that project
	CopyOf  string    // the volume whose content it has
	CopyFor string    // the project of that volume
	Users   []User    // containers that mount it, running or not
}

// User is a container that mounts a volume.
type User struct {
	ID      string
	Name    string
	Image   string // the image's id
	Target  string // the path in the container
	Project string // Compose's project; empty: none
	Service string
	Runs    bool
	Copier  bool // it was created to copy the volume, and never runs
}

// Title names a container for people.
func (u *User) Title() string {
	if u.Project == "" {
		return u.Name
	}
	return fmt.Sprintf("%s of the project %s", u.Name, u.Project)
}

// Used reports whether a container uses the volume.
func (s *Stored) Used() bool {
	return slices.ContainsFunc(s.Users, func(u User) bool { return !u.Copier })
}

// Volumes reads all named volumes of the engine, with the containers that mount them.
func (e *Engine) Volumes(ctx context.Context) ([]Stored, error) {
	list, err := e.api.VolumeList(ctx, client.VolumeListOptions{})
	if err != nil {
		return nil, fmt.Errorf("the engine's volumes cannot be listed: %w", err)
	}
	containers, err := e.api.ContainerList(ctx, client.ContainerListOptions{All: true})
	if err != nil {
		return nil, fmt.Errorf("the engine's containers cannot be listed: %w", err)
	}
	users := map[string][]User{}
	for i := range containers.Items {
		for name, user := range usersOf(&containers.Items[i]) {
			users[name] = append(users[name], user)
		}
	}
	var all []Stored
	for i := range list.Items {
		v := stored(&list.Items[i])
		v.Users = users[v.Name]
		slices.SortFunc(v.Users, func(a, b User) int { return strings.Compare(a.Name, b.Name) })
		all = append(all, v)
	}
	slices.SortFunc(all, func(a, b Stored) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// usersOf returns a container as a user of each of its volumes.
func usersOf(c *container.Summary) map[string]User {
	all := map[string]User{}
	for _, m := range c.Mounts {
		if m.Type != mount.TypeVolume || m.Name == "" {
			continue
		}
		_, copier := c.Labels[labelCopier]
		all[m.Name] = User{ID: c.ID, Name: strings.TrimPrefix(cmp.Or(append(slices.Clone(c.Names), c.ID)...), "/"),
			Image: c.ImageID, Target: m.Destination, Project: c.Labels[docker.LabelProject],
			Service: c.Labels[docker.LabelService],
			Runs: c.State != container.StateExited && c.State != container.StateCreated &&
				c.State != container.StateDead,
			Copier: copier}
	}
	return all
}

func stored(v *volume.Volume) Stored {
	s := Stored{Name: v.Name, Driver: v.Driver, Options: v.Options, Labels: v.Labels,
		Project: v.Labels[docker.LabelProject], Key: v.Labels[labelVolume], CopyOf: v.Labels[labelCopyOf],
		CopyFor: v.Labels[labelCopyFor]}
	if made, err := time.Parse(time.RFC3339, v.CreatedAt); err == nil {
		s.Made = made
	}
	return s
}

// Differs returns the differences between a volume and the files. Labels count only if Compose created the volume for
// the project.
func (s *Stored) Differs(driver string, options, labels map[string]string) (why []string) {
	if driver = cmp.Or(driver, localDriver); s.Driver != driver {
		why = append(why, fmt.Sprintf("its driver is %s, but should be %s", s.Driver, driver))
	}
	if had, wanted := said(s.Options), said(options); !maps.Equal(had, wanted) {
		why = append(why, fmt.Sprintf("its driver_opts are %s, but should be %s", listed(had), listed(wanted)))
	}
	if had, wanted := said(s.Labels), said(labels); s.Key != "" && !maps.Equal(had, wanted) {
		why = append(why, fmt.Sprintf("its labels are %s, but should be %s", listed(had), listed(wanted)))
	}
	return why
}

// said omits what Docker's own programs add to labels or options.
func said(all map[string]string) map[string]string {
	left := map[string]string{}
	for key, value := range all {
		if !strings.HasPrefix(key, "com.docker.") {
			left[key] = value
		}
	}
	return left
}

func listed(all map[string]string) string {
	if len(all) == 0 {
		return "none"
	}
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(all)) {
		parts = append(parts, key+"="+all[key])
	}
	return strings.Join(parts, " ")
}

// MakeCopyVolume creates an empty volume with the engine's own driver, for a copy of a project's volume. An existing
// volume of the name is used.
func (e *Engine) MakeCopyVolume(ctx context.Context, name, of, project string) error {
	_, err := e.api.VolumeCreate(ctx, client.VolumeCreateOptions{Name: name, Driver: localDriver,
		Labels: map[string]string{labelCopyOf: of, labelCopyFor: project}})
	if err != nil {
		return fmt.Errorf("the volume %s cannot be created: %w", name, err)
	}
	return nil
}

// RemoveVolume removes a volume that no container mounts. A missing volume is not an error.
func (e *Engine) RemoveVolume(ctx context.Context, name string) error {
	_, err := e.api.VolumeRemove(ctx, name, client.VolumeRemoveOptions{})
	if err != nil && !errdefs.IsNotFound(err) {
		return fmt.Errorf("the volume %s cannot be removed: %w", name, err)
	}
	return nil
}
