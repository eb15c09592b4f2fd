//go:build engine

package engine

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"berth/test/lab"
)

// composeFile is a plain Compose file on a planned network. One service takes an address of the pool, one has a static
// address. For a static address the engine requires that the network names its subnet ("supported only when connecting
// to networks with user configured subnets"), whatever its driver.
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

// Plain Compose on a planned network: up, a service recreated, down and up again.
func compose(h *Harness) {
	front := h.plan("--subnet", h.v4("0/24")+",gateway="+h.v4("254"))
	h.berth("pool", "add", front, h.span(10, 11), "--name", "web")
	name := h.name()
	h.berth("reservation", "add", front, "--owner", name+"-db", "--ip", h.v4("80"))
	file := h.composeFile(fmt.Sprintf(composeFile, imageName, name, h.v4("80"), h.Berth.Driver(), front,
		bridgeOf(name), h.v4("0/24")))
	for range 2 {
		h.compose(file, name, "up", "--detach")
		h.planShows(front, name)
		web, db := name+"-web", name+"-db"
		if a := h.address(web, name); a != h.v4("10") && a != h.v4("11") {
			h.Errorf("web has %s, which is not in its pool", a)
		}
		h.hasAddress(db, name, h.v4("80"))
		if g := h.gateway(web, name); g != h.v4("254") {
			h.Errorf("web has the gateway %s", g)
		}
		h.calls(web, h.v4("80"))
		h.compose(file, name, "up", "--detach", "--force-recreate")
		h.hasAddress(db, name, h.v4("80"))
		h.address(web, name)
		h.compose(file, name, "down", "--timeout", "1")
		if left := h.show(front); left.Docker != 0 || left.Use.Reserved != 1 || len(left.Subnets[0].Pools) != 1 {
			h.Errorf("after compose down the plan is %+v", left)
		}
	}
}

// Without a static address of a service the option alone is enough for docker-compose 1.29. The newer Compose drops it.
func composeOption(h *Harness) {
	only(h.T, compose1)
	front, name := h.plan("--subnet", h.v4("0/24")+",pool,gateway="+h.v4("254")), h.name()
	file := h.composeFile(fmt.Sprintf(`
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
func (h *Harness) composeFile(text string) string {
	h.Helper()
	path := filepath.Join(h.TempDir(), "compose.yaml")
	lab.Must(h, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// compose runs Compose, which must succeed. The newer one passes on the IPAM options of a network only if it has a
// subnet, too.
func (h *Harness) compose(file, project string, args ...string) {
	h.Helper()
	h.inCompose(project, slices.Concat([]string{"DOCKER_HOST=unix://" + h.Engine.Socket}, oldest(h.T),
		[]string{"--file", file, "--project-name", project}, args))
}

// inCompose runs a Compose command that begins with its environment; the command must succeed. Only `down` may leave a
// network, if the engine miscounts its endpoints: the containers are gone, and an `up` takes the existing network.
func (h *Harness) inCompose(project string, command []string) {
	h.Helper()
	_, err := lab.Run(2*time.Minute, nil, "env", command...)
	if err != nil && slices.Contains(command, "down") && strings.Contains(err.Error(), activeEndpoints) {
		var kept []string
		kept, err = removeNetworks(h.Engine, project+"_")
		h.Logf("networks %q: %v", kept, errMiscounted)
	}
	lab.Must(h, err)
}
