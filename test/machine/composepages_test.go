//go:build machine

package machine

import (
	"maps"
	"strings"

	"berth/test/lab"
)

const (
	composeDoc   = "docs/compose.md"
	composeBelow = "## Give the project its addresses"
)

// composes gives the machine a compose command.
func (h *Harness) composes() {
	h.Helper()
	h.tool("compose-v5.5.0", "/usr/local/lib/docker/cli-plugins/docker-compose")
}

// docs/compose.md: a project starts with the override that the page writes for its Compose file. A container
// without one takes its reserved address.
func (h *Harness) composePage() {
	h.composes()
	h.writes("/root/compose.yaml", h.shows(composeDoc, composeBelow, 4)[1], 0o644)
	h.plans(composeDoc, composeBelow)
	up := h.shows(composeDoc, composeBelow, 4)[3]
	h.types(up)
	h.at("shop_front", "shop-web-1", "10.30.0.10")
	h.at("shop_front", "shop-db-1", "10.30.0.9")
	compose := strings.TrimSuffix(strings.TrimSpace(up), "up -d")
	h.types(compose + "rm --stop --force web")
	h.plans(composeDoc, "## Without an override")
	h.types(h.lines(h.shows(composeDoc, "## Without an override", 2)[1], 1)[0])
	h.at("shop_front", "shop-web-1", "10.30.0.10")
	h.types("docker rm -f shop-web-1; " + compose + "down --timeout 1")
}

// docs/adopt.md: a project that runs with the engine's own addresses moves to Berth and keeps them.
func (h *Harness) adoptPage() {
	h.composes()
	h.writes("/srv/photos/compose.yaml", "services:\n  web: {image: nginx}\n  db: {image: postgres}\n", 0o644)
	h.types("docker compose -p photos -f /srv/photos/compose.yaml up -d")
	addresses := func() map[string]string {
		all, err := h.back("photos_default", 2)
		h.must(err)
		at := map[string]string{}
		for name, c := range all {
			at[name] = c.Address
		}
		return at
	}
	before := addresses()
	var lines []string
	for _, line := range lab.LinesOf(h.shows("docs/adopt.md", "## A Compose project", 1)[0]) {
		line = strings.TrimPrefix(line, "$ ")
		if strings.HasPrefix(line, "berth ") || strings.HasPrefix(line, "docker ") {
			lines = append(lines, line)
		}
	}
	if len(lines) != 4 {
		h.Fatalf("the page has other lines than this test knows: %q", lines)
	}
	said := h.types(lines[0])
	for _, step := range lines[1:] {
		if !strings.Contains(said, step) {
			h.Errorf("%s does not say the step %s", lines[0], step)
		}
	}
	h.types(strings.Join(lines[1:3], "\n"))
	if after := addresses(); !maps.Equal(before, after) {
		h.Errorf("before: %v, after: %v", before, after)
	}
	h.must(h.sound())
	h.types(lines[3])
	h.types("docker compose -p photos down --timeout 1")
}

// docs/leave.md: the dry run, and, after a question on the terminal, the real run.
func (h *Harness) leavePage() {
	lines := h.lines(h.shows("docs/leave.md", "## Leave", 1)[0], 2)
	h.types("docker network create --ipam-driver berth --subnet 10.33.0.0/24 shop; " +
		"docker run -d --name kept --network shop nginx")
	before, err := h.running("shop")
	h.must(err)
	driver := func(want string) {
		h.Helper()
		if got := h.types("docker network inspect --format '{{.IPAM.Driver}}' shop"); got != want {
			h.Errorf("the driver is %s, and should be %s", got, want)
		}
	}
	h.types(lines[0])
	driver("berth")
	h.answers(lines[1], answer{"[y/N]", "y"})
	driver("default")
	after, err := h.running("shop")
	h.must(err)
	if len(after) != 1 || after["kept"].Address != before["kept"].Address {
		h.Errorf("before: %v, after: %v", before, after)
	}
	h.types("docker rm -f kept; docker network rm shop")
}
