package rollout

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// compose acts as the compose command of a project, without a process.
type compose struct {
	hashes  map[string]string // by service
	volume  *declared         // of the database and of web; nil: they have none
	unnamed []string          // services with a volume without a name
	pull    func(services string) error
}

// declared is a volume as Compose requests it from an engine.
type declared struct {
	Name               string
	DriverOpts, Labels map[string]string
}

// exec creates the container with the next number, as Compose does, if one is missing.
func (c *compose) exec(ctx context.Context, args, environ []string, stdout, _ io.Writer) error {
	if slices.Contains(args, "config") {
		for service, hash := range c.hashes {
			fmt.Fprintln(stdout, service, hash)
		}
		return nil
	}
	if i := slices.Index(args, "pull"); i >= 0 {
		return c.pull(strings.Join(args[i+2:], " ")) // after --quiet
	}
	service := args[len(args)-1]
	_, scale, _ := strings.Cut(args[slices.Index(args, "--scale")+1], "=")
	wanted, err := strconv.Atoi(scale)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(environ, func(v string) bool { return strings.HasPrefix(v, "DOCKER_HOST=unix://") })
	socket := strings.TrimPrefix(environ[at], "DOCKER_HOST=unix://")
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", socket)
	}
	engine := &http.Client{Transport: &http.Transport{DialContext: dial}}
	defer engine.CloseIdleConnections()
	var there []struct {
		ID     string `json:"Id"`
		Labels map[string]string
	}
	if _, err := call(ctx, engine, http.MethodGet, "/containers/json?all=1", nil, &there); err != nil {
		return err
	}
	count, shared := 0, ""
	for _, one := range there {
		if one.Labels["com.docker.compose.service"] == service {
			count++
		}
		if one.Labels["com.docker.compose.service"] == "db" {
			shared = "container:" + one.ID
		}
	}
	if count+1 != wanted {
		return fmt.Errorf("%d of %s are there, and %d are wanted", count, service, wanted)
	}
	hash := c.hashes[service]
	if service == "side" { // as Compose does since its version 2
		hash += "@" + shared
	}
	says := map[string]any{"Image": "web:1", "Labels": map[string]string{"com.docker.compose.project": "shop",
		"com.docker.compose.service": service, "com.docker.compose.container-number": scale,
		"com.docker.compose.config-hash": hash, "com.docker.compose.version": "5.5.0"}}
	mounts, err := c.mounts(ctx, engine, service)
	if err != nil {
		return err
	}
	if service == "side" {
		says["HostConfig"] = map[string]string{"NetworkMode": shared}
	} else {
		says["HostConfig"] = map[string]any{"Mounts": mounts}
		says["NetworkingConfig"] = map[string]any{"EndpointsConfig": map[string]any{"front": map[string]any{}}}
	}
	var made struct {
		ID string `json:"Id"`
	}
	name := fmt.Sprintf("shop-%s-%s", service, scale)
	path := "/containers/create?name=" + url.QueryEscape(name)
	if _, err := call(ctx, engine, http.MethodPost, path, says, &made); err != nil {
		return err
	}
	_, err = call(ctx, engine, http.MethodPost, "/containers/"+made.ID+"/start", nil, nil)
	return err
}

// mounts returns the volumes that a service's container asks for, and creates the declared one if it is missing.
func (c *compose) mounts(ctx context.Context, engine *http.Client, service string) (all []mounted, err error) {
	if v := c.volume; v != nil && (service == "db" || service == "web") {
		var has disk
		status, err := call(ctx, engine, http.MethodGet, "/volumes/"+v.Name, nil, &has)
		switch {
		case status == http.StatusNotFound:
			if _, err := call(ctx, engine, http.MethodPost, "/volumes/create", v, nil); err != nil {
				return nil, err
			}
		case err != nil:
			return nil, err
		case !maps.Equal(has.Options, v.DriverOpts):
			return nil, errors.New("the volume has other options") // as docker-compose 1.29 does
		}
		all = append(all, mounted{Type: "volume", Source: v.Name, Target: "/data"})
	}
	if slices.Contains(c.unnamed, service) {
		all = append(all, mounted{Type: "volume", Target: "/kept"})
	}
	return all, nil
}

// call makes a request to an engine. Any status other than success is an error.
func call(ctx context.Context, engine *http.Client, method, path string, says, answer any) (status int, err error) {
	text, err := json.Marshal(says)
	if err != nil {
		return 0, err
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://engine"+path, bytes.NewReader(text))
	if err != nil {
		return 0, err
	}
	resp, err := engine.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	said, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode >= 300 {
		return resp.StatusCode, errors.Join(err, fmt.Errorf("%s: %s %s", path, resp.Status, said))
	}
	if answer == nil {
		return resp.StatusCode, nil
	}
	return resp.StatusCode, json.Unmarshal(said, answer)
}
