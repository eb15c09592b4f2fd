package deploy_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"berth/internal/ipam"
	"berth/test/still"
)

// replica is a container of the project shop, as the files of these tests want it.
func replica(service string, number int, addr string) still.Container {
	name := fmt.Sprintf("shop-%s-%d", service, number)
	return still.Container{ID: name + "-id", Name: name, Project: "shop", Service: service, Number: number,
		Hash: "h-" + service, ImageID: "sha256:x", State: "running",
		On: []still.Endpoint{{Network: "shop_front", Address: addr, Fixed: addr}}}
}

// reserved reserves addresses for owners.
func (h *harness) reserved(owners map[string]string) {
	h.Helper()
	for owner, addr := range owners {
		h.edit(&ipam.AddReservation{Network: "front", Owner: owner, Automatic: strings.Contains(owner, "shop/"),
			Wishes: []ipam.Wish{{Address: netip.MustParseAddr(addr)}}})
	}
}

const networks = `
networks:
  front: {ipam: {driver: berth, options: {network: front}, config: [{subnet: 10.8.0.0/24}]}}
`

// TestPlanTellsAll: a plan reports all problems at once, each with its place or its name: unknown parts of the
// files, static addresses outside the network or held by others, too few addresses and the replicas without one,
// containers that cannot be reached, and refusals of the compose command (BD-2, BD-3, BD-4, BO-7).
func TestPlanTellsAll(t *testing.T) {
	h := enter(t)
	h.plan("front", "10.8.0.0/24", "10.8.0.10+4")
	h.reserved(map[string]string{"mail": "10.8.0.99", "shop/web/1": "10.8.0.10"})
	h.must(h.compose.Refuse("compose.yaml is of a version that nobody knows"))
	paused, dead, broken := replica("web", 1, "10.8.0.10"), replica("web", 2, ""), replica("db", 1, "")
	paused.State, dead.State, broken.Broken = "paused", "dead", "it does not answer"
	h.engine.Containers = []still.Container{paused, dead, broken}
	file := h.file(`services:
  web:
    image: x
    scale: 6
    networks: [front]
    x-berth: {update: {canary: 1}}
  db:
    image: x
    networks: {front: {ipv4_address: 10.8.0.99}}
  cache:
    image: x
    networks:
      front:
        ipv4_address: 10.9.0.7
  first:
    image: x
    container_name: first
    networks: [front]
    deploy: {update_config: {order: start-first}}` + networks)
	code, out, said := h.berth("plan")
	if code != 1 || out != "" {
		t.Errorf("the exit code is %d, and it writes %q", code, out)
	}
	for _, want := range []string{
		file + ":6: services.web.x-berth.update.canary is not a known key; update can have canaries",
		file + ":9: shop/db/1 on networks.front: 10.8.0.99 is held by mail",
		file + ":14: shop/cache/1 on networks.front: 10.9.0.7 is outside the subnet 10.8.0.0/24",
		file + ":19: services.first.deploy.update_config.order is start-first, and services.first has the container_name",
		"(6 wanted, 3 free), so none is left for shop/web/4, shop/web/5, shop/web/6",
		"the container shop-web-1 cannot be reached: it is paused; run `berth check`",
		"the container shop-web-2 cannot be reached: the engine calls it dead; run `berth check`",
		"the container shop-db-1 cannot be inspected: ",
		"of a version that nobody knows",
		"there are 9 problems",
	} {
		if !strings.Contains(said, want) {
			t.Errorf("it is not said that %s", want)
		}
	}
	if lines := strings.Count(said, "\n"); lines != 10 || t.Failed() {
		t.Errorf("it says %d lines:\n%s", lines, said)
	}
	if writes := h.engine.Writes(); len(writes) > 0 || h.compose.Asked() != "" {
		t.Errorf("it asked the engine %v and the compose command %s", writes, h.compose.Asked())
	}
	h.engine.Close()
	h.must(h.compose.Refuse(""))
	if code, _, said := h.berth("plan"); code != 1 || !strings.Contains(said, ":6: services.web.x-berth") ||
		!strings.Contains(said, "the engine's containers cannot be listed") {
		t.Errorf("without an engine the exit code is %d:\n%s", code, said)
	}
}

// TestUsage: wrong usage and a refusal have different exit codes.
func TestUsage(t *testing.T) {
	h := enter(t)
	h.file("services: {web: {imagee: x}}")
	for _, wrong := range [][]string{{"plan", "--nothing"}, {"plan", "what"}, {"plan", "--format", "{{.None}}"}, {"plna"},
		{"apply", "one", "two"}, {"apply", "a.plan", "-f", "compose.yaml"}, {"apply", "--format", "yaml"},
		{"apply", "--lock-wait", "long"}} {
		if code, _, said := h.berth(wrong[0], wrong[1:]...); code != 64 {
			t.Errorf("%v: %d: %s", wrong, code, said)
		}
	}
	if code, _, said := h.berth("plan"); code != 1 || !strings.Contains(said, "compose.yaml:1: ") ||
		!strings.Contains(said, "imagee") {
		t.Errorf("what Compose refuses: %d: %s", code, said)
	}
}

// asWanted makes the engine run what the files want, with the reserved addresses.
func (h *harness) asWanted(addrs ...string) {
	h.Helper()
	h.engine.Images["x"] = "sha256:x"
	h.must(h.compose.Hashes(map[string]string{"web": "h-web"}))
	owners := map[string]string{}
	for i, addr := range addrs {
		h.engine.Containers = append(h.engine.Containers, replica("web", i+1, addr))
		owners[fmt.Sprintf("shop/web/%d", i+1)] = addr
	}
	h.reserved(owners)
}

// TestPlanExclusion: a new exclusion over the address of a replica moves that replica and recreates no other
// (BO-9). So does a pool that no longer has the address. An address that a person has fixed stays.
func TestPlanExclusion(t *testing.T) {
	h := enter(t)
	h.plan("front", "10.8.0.0/24", "10.8.0.10+10")
	h.asWanted("10.8.0.10", "10.8.0.11", "10.8.0.12", "10.8.0.13")
	h.edit(&ipam.AddReservation{Network: "front", Owner: "shop/web/4", Replace: true,
		Wishes: []ipam.Wish{{Address: netip.MustParseAddr("10.8.0.200")}}})
	h.engine.Containers[3].On[0].Address, h.engine.Containers[3].On[0].Fixed = "10.8.0.200", "10.8.0.200"
	h.file("services: {web: {image: x, scale: 4, networks: [front]}}" + networks)
	if code, out, said := h.berth("plan"); code != 0 {
		t.Fatalf("before: %d\n%s%s", code, out, said)
	}
	h.edit(&ipam.AddExclusion{Network: "front", Range: h.ipRange("10.8.0.11")})
	for range 2 {
		code, out, said := h.berth("plan")
		if code != 2 || !strings.Contains(out, "recreate  shop/web/2  10.8.0.11 -> 10.8.0.14") ||
			!strings.Contains(out, "1 to recreate, 3 to keep") {
			t.Errorf("it does %d:\n%s%s", code, out, said)
		}
	}
	h.edit(&ipam.RemoveExclusion{Network: "front", Range: h.ipRange("10.8.0.11")},
		&ipam.RemovePool{Network: "front", Pool: "10.8.0.10-10.8.0.19"},
		&ipam.AddPool{Network: "front", Range: h.ipRange("10.8.0.11+9")})
	if code, out, said := h.berth("plan"); code != 2 || !strings.Contains(out, "1 to recreate, 3 to keep") ||
		!strings.Contains(out, "recreate  shop/web/1  10.8.0.10 -> 10.8.0.14") {
		t.Errorf("it does %d:\n%s%s", code, out, said)
	}
}

// TestPlanOneShort: a pool with one address too few is refused before anything is done. The refusal has the number
// wanted, the number free, and the replicas without an address (BD-4, BO-7).
func TestPlanOneShort(t *testing.T) {
	h := enter(t)
	h.plan("front", "10.8.0.0/24", "10.8.0.10+3")
	h.asWanted("10.8.0.10", "10.8.0.11")
	for replicas, want := range map[int]string{
		4: "compose.yaml:1: shop/web/4 on networks.front: too few addresses are free " +
			"in the subnet 10.8.0.0/24 of network front (2 wanted, 1 free), so none is left for shop/web/4",
		3: ""} {
		h.file(fmt.Sprintf("services: {web: {image: x, scale: %d, networks: [front]}}%s", replicas, networks))
		code, out, said := h.berth("plan")
		if (want == "") != (code == 2) || !strings.Contains(said, want) {
			t.Errorf("with %d replicas it does %d:\n%s%s", replicas, code, out, said)
		}
	}
}

// TestPlanAddresses: each replica gets its address from the Compose files. A changed address moves only that
// replica.
func TestPlanAddresses(t *testing.T) {
	h := enter(t)
	h.plan("front", "10.8.0.0/24", "10.8.0.10+10")
	h.asWanted("10.8.0.51", "10.8.0.52", "10.8.0.53")
	h.file("services: {web: {image: x, scale: 3, networks: [front], x-berth: {addresses: [10.8.0.51, 10.8.0.60, " +
		"10.8.0.53]}}}" + networks)
	code, out, said := h.berth("plan")
	if code != 2 || !strings.Contains(out, "recreate  shop/web/2  10.8.0.52 -> 10.8.0.60") ||
		!strings.Contains(out, "1 to recreate, 2 to keep") {
		t.Errorf("it does %d:\n%s%s", code, out, said)
	}
	h.file("services: {web: {image: x, scale: 3, networks: [front], x-berth: {addresses: [10.8.0.52, 10.8.0.53, " +
		"10.8.0.51]}}}" + networks)
	code, out, said = h.berth("plan")
	if code != 2 || !strings.Contains(out, "shop/web/1  10.8.0.51 -> 10.8.0.52") ||
		!strings.Contains(out, "3 to recreate") {
		t.Errorf("in a ring it does %d:\n%s%s", code, out, said)
	}
}

// TestPlanHandedOn: an address that the files take from one service and give to another moves with the files, also if
// its reservation has ended and the container still runs on it.
func TestPlanHandedOn(t *testing.T) {
	for what, end := range map[string]bool{"reserved": false, "ended by hand": true} {
		t.Run(what, func(t *testing.T) {
			h := enter(t)
			h.plan("front", "10.8.0.0/24", "10.8.0.10+10")
			h.engine.Images["x"] = "sha256:x"
			h.must(h.compose.Hashes(map[string]string{"one": "h-one", "two": "h-new"}))
			h.engine.Containers = []still.Container{replica("two", 1, "10.8.0.50")}
			h.edit(&ipam.AddReservation{Network: "front", Owner: "shop/two/1", Replace: true,
				Wishes: []ipam.Wish{{Address: netip.MustParseAddr("10.8.0.50")}}})
			h.holds("shop-two-1", "10.8.0.50")
			if end {
				h.edit(&ipam.ReleaseOwner{Owner: "shop/two/1"})
			}
			h.file("services: {one: {image: x, networks: {front: {ipv4_address: 10.8.0.50}}}, two: {image: x, networks: " +
				"[front]}}" + networks)
			code, out, said := h.berth("plan")
			if code != 2 || !strings.Contains(out, "recreate  shop/two/1  10.8.0.50 -> 10.8.0.10") ||
				!strings.Contains(out, "shop/one/1  10.8.0.50") {
				t.Errorf("it does %d:\n%s%s", code, out, said)
			}
		})
	}
}

// TestPlanSecondShort: with start-first, each replica that changes needs a second address while the old one still
// runs. The plan counts these before anything is done (BD-4, BO-7).
func TestPlanSecondShort(t *testing.T) {
	h := enter(t)
	h.plan("front", "10.8.0.0/24", "10.8.0.10+4")
	h.asWanted("10.8.0.10", "10.8.0.11", "10.8.0.12")
	h.must(h.compose.Hashes(map[string]string{"web": "another"}))
	write := func(order string) {
		h.file(fmt.Sprintf("services: {web: {image: x, scale: 3, networks: [front], x-berth: {update: {order: %s}}}}%s", order,
			networks))
	}
	write("start-first")
	code, _, said := h.berth("plan")
	if code != 1 || !strings.Contains(said, "compose.yaml:1: no second address for shop/web/2 on networks.front, "+
		"which its order start-first needs: too few addresses are free") ||
		!strings.Contains(said, "(3 wanted, 1 free), so none is left for shop/web/2, shop/web/3") {
		t.Errorf("it does %d:\n%s", code, said)
	}
	write("stop-first")
	if code, out, said := h.berth("plan"); code != 2 || !strings.Contains(out, "3 to recreate") {
		t.Errorf("it does %d:\n%s%s", code, out, said)
	}
}

// TestPlanLocked: while another deploy of the project runs no plan can be made. The refusal comes once and names
// the other deploy (BD-1).
func TestPlanLocked(t *testing.T) {
	h := enter(t)
	h.plan("front", "10.8.0.0/24", "10.8.0.10+10")
	h.file("services: {web: {image: x, scale: 4, networks: [front]}}" + networks)
	h.edit(&ipam.LockDeploy{Project: "shop", ID: ipam.NewID(), Host: "beta", PID: 77, TTL: ipam.MostDeployTTL})
	code, _, said := h.berth("plan")
	if code != 1 || strings.Count(said, "\n") != 1 || !strings.Contains(said, "host beta (process 77)") {
		t.Errorf("it does %d:\n%s", code, said)
	}
}
