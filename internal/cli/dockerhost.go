package cli

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strings"

	"berth/internal/docker"

	"github.com/docker/cli/cli/config"
	"github.com/docker/cli/cli/context/store"
)

// dockerEndpoint is what docker's context store has about an engine.
type dockerEndpoint struct{ Host string }

// dockerHost returns the engine that the docker command would use: DOCKER_HOST, or else that of the current context. It
// returns "" for the default. From is what names the engine.
// (https://docs.docker.com/engine/manage-resources/contexts/)
func dockerHost(getenv func(string) string) (host, from string, err error) {
	if host := strings.TrimSpace(getenv("DOCKER_HOST")); host != "" {
		return host, "DOCKER_HOST", nil
	}
	dir := getenv("DOCKER_CONFIG")
	if dir == "" && getenv("HOME") != "" {
		dir = filepath.Join(getenv("HOME"), ".docker")
	}
	name := getenv("DOCKER_CONTEXT")
	if name == "" && dir != "" {
		file, err := config.Load(dir)
		if err != nil {
			return "", "", fmt.Errorf("docker's configuration in %s: %w", dir, err)
		}
		name = file.CurrentContext
	}
	if name == "" || name == "default" {
		return "", "", nil
	}
	from = "the docker context " + name
	contexts := store.New(filepath.Join(dir, "contexts"), store.NewConfig(func() any { return &map[string]any{} },
		store.EndpointTypeGetter("docker", func() any { return &dockerEndpoint{} })))
	context, err := contexts.GetMetadata(name)
	if err != nil {
		return "", "", fmt.Errorf("%s: %w; `docker context ls` lists the contexts", from, err)
	}
	endpoint, _ := context.Endpoints["docker"].(dockerEndpoint)
	return endpoint.Host, from, nil
}

// CheckEngine refuses an engine that is not the daemon's, before the command changes anything there or in Berth. An
// engine that does not answer is left to whoever needs it.
func (e *EngineFlags) CheckEngine(r *Run, engine *docker.Engine) error {
	id, err := engine.ID(r)
	if err != nil {
		return nil //nolint:nilerr // see above
	}
	return e.sameEngine(r, id)
}

// sameEngine refuses an engine, given by its id, that is not the daemon's. An unknown id is no reason to refuse.
func (e *EngineFlags) sameEngine(r *Run, id string) error {
	st, err := r.Status(r)
	if err != nil || st.Witness == nil || id == "" || st.Witness.EngineID == "" || id == st.Witness.EngineID {
		return nil //nolint:nilerr // the command itself reports a daemon that does not answer
	}
	from := variable(flagDockerHost)
	if r.Given(flagDockerHost) {
		from = "--" + flagDockerHost
	} else if host, named, err := dockerHost(r.Env); err == nil && host == e.Host {
		from = cmp.Or(named, "the default")
	}
	return fmt.Errorf("%s names the engine at %s (id %s), but the daemon on host %s serves another engine (id %s); "+
		"name that engine with --docker-host, or the daemon of the first engine with --admin-socket", from,
		cmp.Or(e.Host, docker.DefaultHost), id, st.Host, st.Witness.EngineID)
}
