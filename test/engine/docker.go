//go:build engine

package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"time"

	"berth/test/ground"
)

// Engine is a Docker Engine, spoken to as a person does, with the docker command; where that command refuses what the
// engine can do, with its HTTP API.
type Engine struct {
	Socket string // path of its unix socket
}

// URL is where it listens, as programs are told.
func (e Engine) URL() string { return "unix://" + e.Socket }

// machineEngine is the engine of this machine. It is used, never reconfigured.
var machineEngine = Engine{Socket: "/var/run/docker.sock"}

// Docker runs the docker command and returns what it wrote to standard output, trimmed. An error holds what it wrote to
// standard error.
func (e Engine) Docker(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), ground.Patient(time.Minute))
	defer cancel()
	return run(ctx, nil, "docker", append([]string{"--host", "unix://" + e.Socket}, args...)...)
}

// run is one command, its standard input and its trimmed output.
func run(ctx context.Context, stdin io.Reader, program string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stdin = stdin
	return ground.Output(cmd)
}

// post calls the engine's API.
func (e Engine) post(path string, body any) error {
	b, err := json.Marshal(body)
	if err != nil {
		return err
	}
	resp, err := overSocket(e.Socket).Post("http://docker"+path, "application/json", bytes.NewReader(b))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode >= 300 {
		return fmt.Errorf("POST %s: %s: %s", path, resp.Status, bytes.TrimSpace(text))
	}
	return nil
}

// CreateWithMAC creates, and does not start, a container whose interface has the given MAC address. Newer docker
// commands refuse --mac-address against an engine of API 1.41; the API takes it.
func (e Engine) CreateWithMAC(name, network, mac string) error {
	return e.post("/containers/create?name="+name, map[string]any{
		"Image":      imageName,
		"Cmd":        sleepForever,
		"MacAddress": mac,
		"HostConfig": map[string]any{"NetworkMode": network},
		"NetworkingConfig": map[string]any{
			"EndpointsConfig": map[string]any{network: map[string]any{"MacAddress": mac}},
		},
	})
}

// Endpoint is a container's place on one network, as `docker inspect` shows it.
type Endpoint struct {
	IPAddress           string
	IPPrefixLen         int
	Gateway             string
	GlobalIPv6Address   string
	GlobalIPv6PrefixLen int
	MacAddress          string
}

// Endpoint asks for a container's place on a network.
func (e Engine) Endpoint(container, network string) (Endpoint, error) {
	out, err := e.Docker("inspect", "-f", "{{json .NetworkSettings.Networks}}", container)
	if err != nil {
		return Endpoint{}, err
	}
	var all map[string]Endpoint
	if err := json.Unmarshal([]byte(out), &all); err != nil {
		return Endpoint{}, err
	}
	ep, ok := all[network]
	if !ok {
		return Endpoint{}, fmt.Errorf("%s is not on network %s: %s", container, network, out)
	}
	return ep, nil
}

// IPAMConfig is one subnet of a network, as `docker network inspect` shows it.
type IPAMConfig struct {
	Subnet, IPRange, Gateway string
}

// Subnets asks for the subnets of a network.
func (e Engine) Subnets(network string) ([]IPAMConfig, error) {
	out, err := e.Docker("network", "inspect", "-f", "{{json .IPAM.Config}}", network)
	if err != nil {
		return nil, err
	}
	var all []IPAMConfig
	return all, json.Unmarshal([]byte(out), &all)
}

// ShowsAddress tells whether a container's own `ip addr` shows exactly this address, a CIDR, on one of its interfaces.
// (An interface that was disconnected and connected again is eth1.)
func (e Engine) ShowsAddress(container, cidr string) error {
	out, err := e.Docker("exec", container, "ip", "-o", "addr")
	if err != nil {
		return err
	}
	for line := range strings.Lines(out) {
		if slices.Contains(strings.Fields(line), cidr) && strings.Contains(line, "scope global") {
			return nil
		}
	}
	return fmt.Errorf("%s does not show %s:\n%s", container, cidr, out)
}
