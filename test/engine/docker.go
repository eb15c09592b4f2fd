//go:build engine

package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"berth/test/lab"
)

// Engine is a Docker Engine. The tests use the docker command as a person does, and the HTTP API if the command
// refuses something that the engine can do.
type Engine struct {
	Socket string // path of its unix socket
}

// URL returns the engine's address as programs take it.
func (e Engine) URL() string { return "unix://" + e.Socket }

// machineEngine is the engine of this machine. The tests use it and never reconfigure it.
var machineEngine = Engine{Socket: "/var/run/docker.sock"}

// Docker runs the docker command and returns its standard output, trimmed. An error holds its standard error.
func (e Engine) Docker(args ...string) (string, error) {
	return lab.Run(time.Minute, nil, "docker", append([]string{"--host", "unix://" + e.Socket}, args...)...)
}

// post calls the engine's API.
func (e Engine) post(path string, body any) error {
	b, err := json.Marshal(body)
	if err != nil {
		return err
	}
	_, err = e.api(http.MethodPost, path, b)
	return err
}

// api calls the engine's API and returns the answer. Frequent queries use it: the docker command takes twenty times as
// much of the machine.
func (e Engine) api(method, path string, body []byte) (answer []byte, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), lab.Patient(time.Minute))
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, "http://docker"+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	client := lab.Over(e.Socket)
	client.Timeout = 0 // the context's timeout counts
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if answer, err = io.ReadAll(resp.Body); err != nil {
		return nil, err
	}
	if resp.StatusCode >= 300 {
		return nil, fmt.Errorf("%s %s: %s: %s", method, path, resp.Status, bytes.TrimSpace(answer))
	}
	return answer, nil
}

// create creates a container, not started, with its own MAC and addresses. Newer docker commands refuse --mac-address
// against an engine of API 1.41; the API accepts it.
func (e Engine) create(name, network, mac string, addresses ...string) error {
	own := map[string]any{}
	for _, a := range addresses {
		family := "IPv4Address"
		if strings.Contains(a, ":") {
			family = "IPv6Address"
		}
		own[family] = a
	}
	return e.post("/containers/create?name="+name, map[string]any{
		"Image":      imageName,
		"Cmd":        sleepForever,
		"MacAddress": mac,
		"HostConfig": map[string]any{"NetworkMode": network},
		"NetworkingConfig": map[string]any{
			"EndpointsConfig": map[string]any{network: map[string]any{"IPAMConfig": own, "MacAddress": mac}},
		},
	})
}

// Endpoint is a container's endpoint on one network, as `docker inspect` shows it.
type Endpoint struct {
	IPAddress           string
	IPPrefixLen         int
	Gateway             string
	GlobalIPv6Address   string
	GlobalIPv6PrefixLen int
	MacAddress          string
}

// container is the part of a container's `docker inspect` that the tests read.
type container struct {
	State struct {
		Status string
		Pid    int // the process whose network namespace has its interfaces
	}
	NetworkSettings struct{ Networks map[string]Endpoint }
}

// inspect reads a container.
func (e Engine) inspect(name string) (c container, err error) {
	answer, err := e.api(http.MethodGet, "/containers/"+name+"/json", nil)
	if err != nil {
		return c, err
	}
	return c, json.Unmarshal(answer, &c)
}

// on returns the container's endpoint on a network.
func (c container) on(network string) (Endpoint, error) {
	ep, ok := c.NetworkSettings.Networks[network]
	if !ok {
		return ep, fmt.Errorf("the container is not on network %s: %+v", network, c.NetworkSettings.Networks)
	}
	return ep, nil
}

// Endpoint reads a container's endpoint on a network.
func (e Engine) Endpoint(name, network string) (Endpoint, error) {
	c, err := e.inspect(name)
	if err != nil {
		return Endpoint{}, err
	}
	ep, err := c.on(network)
	if err != nil {
		return Endpoint{}, fmt.Errorf("%s: %w", name, err)
	}
	return ep, nil
}

// IPAMConfig is one subnet of a network, as `docker network inspect` shows it.
type IPAMConfig struct {
	Subnet, IPRange, Gateway string
}

// Subnets reads the subnets of a network.
func (e Engine) Subnets(network string) ([]IPAMConfig, error) {
	out, err := e.Docker("network", "inspect", "-f", "{{json .IPAM.Config}}", network)
	if err != nil {
		return nil, err
	}
	var all []IPAMConfig
	return all, json.Unmarshal([]byte(out), &all)
}

// ShowsAddress returns an error unless `ip addr` shows exactly this address, a CIDR, on one of a container's
// interfaces. (An interface that was disconnected and connected again is eth1.)
func (e Engine) ShowsAddress(name, cidr string) error {
	c, err := e.inspect(name)
	if err != nil {
		return err
	}
	return c.shows(name, cidr)
}

// shows is ShowsAddress for a container that was read already.
func (c container) shows(name, cidr string) error {
	if c.State.Pid == 0 {
		return fmt.Errorf("%s does not run, and shows no %s", name, cidr)
	}
	out, err := lab.Run(time.Minute, nil, "nsenter", "--target", strconv.Itoa(c.State.Pid), "--net", "ip", "-o",
		"addr")
	if err != nil {
		return err
	}
	for line := range strings.Lines(out) {
		if slices.Contains(strings.Fields(line), cidr) && strings.Contains(line, "scope global") {
			return nil
		}
	}
	return fmt.Errorf("%s does not show %s:\n%s", name, cidr, out)
}
