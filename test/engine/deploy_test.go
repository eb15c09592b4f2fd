//go:build engine

package engine

import (
	"strings"
	"testing"
)

// frontNetwork ends a Compose file: the network front is on the project's planned network.
const frontNetwork = `
networks:
  front:
    name: ${project}
    driver_opts: {com.docker.network.bridge.name: "${bridge}"}
    ipam: {driver: "${driver}", options: {network: "${planned}"}, config: [{subnet: "${subnet}"}]}
`

const deployedFile = `
version: "3.9"
services:
  web:
    image: ${image}
    command: ${web}
    environment: {ROUND: "${round}"}
    networks: [front]
    depends_on: [db]
    deploy: {replicas: ${replicas}}
    x-berth: {update: {order: ${order}}}
  db:
    image: ${image}
    command: ${run}
    networks: {front: {ipv4_address: "${db}"}}
` + frontNetwork

// says returns the variables of deployedFile.
func (h *Harness) says(round, replicas string) map[string]string {
	return map[string]string{"db": h.v4("80"), "round": round, "replicas": replicas, "web": "${run}",
		"order": "stop-first"}
}

// `berth deploy` creates, changes and shrinks a project, with both generations of Compose. Each replica keeps its
// reserved address, and a canary goes first. A removed replica releases its address. Afterwards `up` of that Compose
// recreates nothing (BD-5, BD-7, BD-8, BO-2, BO-3, BO-9).
func TestDeploy(t *testing.T) {
	eachGeneration(t, newer, 227, func(h *Harness, command []string) {
		p := h.deployed(command, deployedFile, h.says("one", "3"))
		p.plans(2, "4 to create")
		p.deploys()
		p.plans(0, "nothing to do")
		p.upLeaves(4)
		has := p.addresses()
		p.write(deployedFile, h.says("two", "3"))
		p.plans(2, "3 to recreate")
		p.inOrder(p.deploys(), "done "+p.name+"/web/1 (canary)", "stop "+p.name+"/web/2")
		p.hasAgain(has)
		p.canaryFails()
		p.startsFirst()
		h.docker("rm", "--force", p.containerOf("web", 3))
		p.write(deployedFile, h.says("two", "1"))
		p.plans(2, "2 to delete", "reserved, but no container")
		p.deploys()
		p.plans(0, "nothing to do")
		if left := p.reserved(p.planned, p.name+"/web/3"); len(left) > 0 {
			p.Errorf("web 3 is deleted, but %v is reserved for it", left)
		}
		p.upLeaves(2)
		p.run("down", "--timeout", "1")
		p.changePlaces()
	})
}

const ringFile = `
version: "3.9"
services:
  a: {image: ${image}, command: ${run}, networks: {front: {ipv4_address: "${a}"}}}
  b: {image: ${image}, command: ${run}, networks: {front: {ipv4_address: "${b}"}}}
  c: {image: ${image}, command: ${run}, networks: {front: {ipv4_address: "${c}"}}}
` + frontNetwork

// changePlaces: one deploy exchanges the static addresses of two services, and then of three in a ring.
func (p *project) changePlaces() {
	p.Helper()
	for _, at := range [][3]string{{"11", "12", "13"}, {"12", "11", "13"}, {"13", "12", "11"}} {
		p.write(ringFile, map[string]string{"a": p.v4(at[0]), "b": p.v4(at[1]), "c": p.v4(at[2])})
		p.deploys()
		p.plans(0)
		p.runsAt(map[string]string{"a/1": at[0], "b/1": at[1], "c/1": at[2]})
	}
}

// canaryFails: a canary that ends stops the deploy, which shows the canary's last output and leaves the other replicas
// alone. The next deploy does the rest (BD-9).
func (p *project) canaryFails() {
	p.Helper()
	before := []string{p.containerOf("web", 2), p.containerOf("web", 3)}
	broken := p.says("three", "3")
	broken["web"] = `["sh", "-c", "echo it has no key; exit 3"]`
	p.write(deployedFile, broken)
	p.fails("| it has no key", "exit code 3")
	p.same("the other replicas", before, []string{p.containerOf("web", 2), p.containerOf("web", 3)})
	p.write(deployedFile, p.says("two", "3"))
	p.plans(2, "1 to recreate")
	p.deploys()
	p.plans(0)
}

// startsFirst: with start-first each new replica gets a second address. Afterwards only that one is reserved for it,
// and the container gets its old name (BD-8, BO-13).
func (p *project) startsFirst() {
	p.Helper()
	before := p.addresses()
	first := p.says("four", "3")
	first["order"] = "start-first"
	p.write(deployedFile, first)
	p.deploys()
	p.plans(0)
	at := map[string]string{}
	for n := 1; n <= 3; n++ {
		id := p.containerOf("web", n)
		name := strings.TrimPrefix(p.docker("inspect", "--format", "{{.Name}}", id), "/")
		if strings.ReplaceAll(name, "_", "-") != strings.ReplaceAll(p.webOwner(n), "/", "-") {
			p.Errorf("web %d is called %s", n, name)
		}
		address := p.at(id, p.name)
		if address == before[n-1] {
			p.Errorf("web %d has %s as before: it did not start before the old one ended", n, address)
		}
		at[strings.TrimPrefix(p.webOwner(n), p.name+"/")] = strings.TrimPrefix(address, p.v4(""))
	}
	p.runsAt(at)
	p.upLeaves(4)
	p.write(deployedFile, p.says("two", "3"))
	p.deploys()
}
