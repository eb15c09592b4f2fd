//go:build engine

package engine

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"berth/test/ground"
)

// composeFile is a plain Compose file on a planned network: one service takes what the pool gives, one has an address
// of its own. For that one the engine wants the subnet to be named ("supported only when connecting to networks with
// user configured subnets"), whatever driver it has.
const composeFile = `
services:
  web:
    image: %[1]s
    container_name: %[2]s-web
    command: ["sh", "-c", "trap 'exit 0' TERM; while :; do sleep 1000 & wait; done"]
    networks: [front]
  db:
    image: %[1]s
    container_name: %[2]s-db
    command: ["sh", "-c", "trap 'exit 0' TERM; while :; do sleep 1000 & wait; done"]
    networks:
      front:
        ipv4_address: %[3]s
networks:
  front:
    name: %[2]s
    driver_opts:
      com.docker.network.bridge.name: %[6]s
    ipam:
      driver: %[4]s
      options:
        network: %[5]s
        pool: web
      config:
        - subnet: %[7]s
`

// Plain Compose on a planned network: up, a service made afresh, down and up again.
func compose(h *House) {
	front := h.plan("--subnet", h.v4("0/24")+",gateway="+h.v4("254"))
	h.berth("pool", "add", front, h.span(10, 11), "--name", "web")
	h.berth("reservation", "add", front, "--owner", "db", "--ip", h.v4("80"))
	name := h.name()
	file := h.composeFile(fmt.Sprintf(composeFile, imageName, name, h.v4("80"), h.Berth.Driver(), front,
		bridgeOf(name), h.v4("0/24")))
	for range 2 {
		h.compose(file, name, "up", "--detach")
		h.planShows(front, name)
		web, db := name+"-web", name+"-db"
		if a := h.address(web, name); a != h.v4("10") && a != h.v4("11") {
			h.Errorf("web has %s, which is not in its pool", a)
		}
		if a := h.address(db, name); a != h.v4("80") {
			h.Errorf("ipv4_address: %s gave %s", h.v4("80"), a)
		}
		if g := h.gateway(web, name); g != h.v4("254") {
			h.Errorf("web has the gateway %s", g)
		}
		h.calls(web, h.v4("80"))
		h.compose(file, name, "up", "--detach", "--force-recreate")
		if a := h.address(db, name); a != h.v4("80") {
			h.Errorf("made afresh, db has %s", a)
		}
		h.address(web, name)
		h.compose(file, name, "down", "--timeout", "1")
		if left := h.show(front); left.Docker != 0 || left.Use.Reserved != 1 || len(left.Subnets[0].Pools) != 1 {
			h.Errorf("after compose down the plan is %+v", left)
		}
	}
	// Without an address of a service's own, the option alone is enough.
	file = h.composeFile(fmt.Sprintf(`
services:
  web:
    image: %[1]s
    container_name: %[2]s-web
    command: ["sh", "-c", "trap 'exit 0' TERM; while :; do sleep 1000 & wait; done"]
    networks: [front]
networks:
  front:
    name: %[2]s
    ipam: {driver: %[3]s, options: {network: %[4]s}}
`, imageName, name, h.Berth.Driver(), front))
	h.compose(file, name, "up", "--detach")
	h.planShows(front, name)
	h.address(name+"-web", name)
	other := h.name()
	h.refused([]string{"user configured subnets"}, containerCommand(other, name, "--ip", h.v4("33"))...)
	h.docker("rm", "-f", other)
	h.compose(file, name, "down", "--timeout", "1")
}

// composeFile writes a Compose file and returns its path.
func (h *House) composeFile(text string) string {
	h.Helper()
	path := filepath.Join(h.TempDir(), "compose.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		h.Fatal(err)
	}
	return path
}

// compose runs docker-compose, which must succeed: the newer Compose passes on no options of a network's IPAM.
func (h *House) compose(file, project string, args ...string) {
	h.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), ground.Patient(2*time.Minute))
	defer cancel()
	command := append([]string{"DOCKER_HOST=unix://" + h.Engine.Socket, "docker-compose", "--file", file,
		"--project-name", project}, args...)
	if _, err := run(ctx, nil, "env", command...); err != nil {
		h.Fatal(err)
	}
}
