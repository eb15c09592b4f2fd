package single

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// Declared is the description of a volume in the files that the engine's volume does not match yet.
type Declared struct {
	Driver  string
	Options map[string]string
}

// asDeclared answers as if a volume that this deploy recreates already matched the files. docker-compose creates no
// container while any volume of the project differs from the files, even a volume of other services.
func (f *Filter) asDeclared(resp *http.Response) error {
	words := route(resp.Request.URL.Path)
	if resp.Request.Method != http.MethodGet || resp.StatusCode != http.StatusOK || !is(words, "volumes", "*") {
		return nil
	}
	says, pending := f.declared[words[1]]
	if !pending {
		return nil
	}
	return rewrite(resp, "reply about the volume "+words[1], func(v *object) error {
		return errors.Join(v.put("Driver", says.Driver), v.put("Options", says.Options))
	})
}

// MakeVolumes makes Compose create a service's missing volumes, with Compose's own labels. It creates nothing else
// except the project's networks, because Compose creates both before the first container.
func (m *Maker) MakeVolumes(ctx context.Context, service string) error {
	v := &volumesOnly{Filter: newFilter(m.Project, Replica{Service: service, Number: 1}, m.Dial,
		func(context.Context, string) error { return errors.New("no container may be made here") })}
	v.declared = m.Declared
	defer v.close()
	err := m.through(ctx, v, "up", "--detach", "--no-deps", "--no-recreate", "--no-build", "--scale", service+"=1",
		service)
	_, _, refused := v.result()
	switch {
	case len(refused) > 0:
		return errors.New(strings.Join(refused, "; "))
	case v.came:
		return nil // Compose ended because the container was refused
	case err != nil:
		return err
	}
	return fmt.Errorf("%s has not made the volumes of %s", strings.Join(m.Words, " "), service)
}

// volumesOnly is a Filter that refuses to create a container.
type volumesOnly struct {
	*Filter
	came bool // Compose has requested the container
}

// ServeHTTP forwards reads and the creation of volumes. It refuses the creation of a container.
func (v *volumesOnly) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost || !is(route(r.URL.Path), "containers", "create") {
		v.Filter.ServeHTTP(w, r)
		return
	}
	v.mu.Lock()
	v.came = true
	v.mu.Unlock()
	http.Error(w, `{"message":"the volumes are made"}`, http.StatusForbidden)
}
