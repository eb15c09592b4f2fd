//go:build machine

package machine

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"berth/test/lab"
)

// The lines of README.md, in order, with its Compose file. A recreated container keeps its address even if another
// one has started in between. At the end all containers are back on the engine's own IPAM with their addresses.
func TestNewcomer(t *testing.T) {
	m, err := newMachine("newcomer")
	h := enter(t, m, err)
	t.Cleanup(func() { h.must(h.Remove()) })
	h.must(h.Boot())
	h.hasCompose()
	lines, err := lab.Lines("README.md", "## In three minutes")
	h.must(err)
	if want := []string{"make install", "docker compose up -d", "berth lease ls", "docker compose rm --stop --force web",
		"docker run -d --name a-stranger --network shop_default redis", "docker compose up -d", "berth lease ls", "berth leave shop",
		"make uninstall"}; !slices.Equal(lines, want) {
		t.Fatalf("README.md has other lines than this test knows: %q", lines)
	}
	h.must(h.install(binary)) // this is make install, in a clone
	h.typed(lines[1:3]...)
	before := h.shop(2)
	h.typed(lines[3:7]...)
	h.must(h.showsWhatIsTold())
	after := h.shop(3)
	if after["shop-web-1"] != before["shop-web-1"] || after["shop-db-1"] != before["shop-db-1"] {
		t.Errorf("before: %v; recreated: %v", before, after)
	}
	h.planned()

	h.typed(lines[7] + " --yes") // the answer that a user would type
	if left := h.shop(3); !maps.Equal(left, after) {
		t.Errorf("with Berth: %v; back with the engine's own IPAM: %v", after, left)
	}
	if driver, err := h.Docker("network", "inspect", "--format", "{{.IPAM.Driver}}", "shop_default"); err != nil ||
		driver != "default" {
		t.Errorf("shop_default has the IPAM driver %q (%v)", driver, err)
	}
	_, err = h.In("make", "--no-print-directory", "-C", source, "uninstall")
	h.must(err)
	h.types("systemctl restart docker")
	h.typed("docker start $(docker ps --all --quiet)")
	h.shop(3)
}

// hasCompose gives the machine a compose command, the Compose file of README.md, and substitutes for its images.
func (h *Harness) hasCompose() {
	h.Helper()
	file, err := lab.Block("README.md", "yaml")
	h.must(err)
	h.writes("/root/shop/compose.yaml", file, 0o644)
	h.composes()
	h.must(h.importImage())
	h.hasImages("nginx", "redis")
}

// typed runs lines of README.md in the directory of its Compose file.
func (h *Harness) typed(lines ...string) {
	h.Helper()
	for _, line := range lines {
		out, err := h.In("sh", "-c", "cd /root/shop && "+line+" 2>&1")
		if err != nil {
			h.Fatalf("%s: %v\n%s", line, err, out)
		}
		h.Logf("$ %s\n%s", line, out)
	}
}

// shop are the addresses in the project's network by container name. Each must answer.
func (h *Harness) shop(n int) map[string]string {
	h.Helper()
	all, err := h.back("shop_default", n)
	h.must(err)
	h.must(h.reach(all))
	at := map[string]string{}
	for name, c := range all {
		at[name] = c.Address
	}
	return at
}

// showsWhatIsTold waits until `berth lease ls` shows the table of README.md: an engine before 29 reports a
// container's name a moment after its start.
func (h *Harness) showsWhatIsTold() error {
	told, err := lab.Block("README.md", "text")
	if err != nil {
		return err
	}
	form := regexp.MustCompile(` +`).ReplaceAllString(regexp.QuoteMeta(strings.TrimSpace(told)), ` +`)
	table, err := regexp.Compile("^" + form + "$")
	if err != nil {
		return err
	}
	return lab.Eventually(20*time.Second, func() error {
		out, err := h.Berth("lease", "ls")
		if err == nil && !table.MatchString(out) {
			err = fmt.Errorf("README.md shows\n%s\nand berth lease ls says\n%s", told, out)
		}
		return err
	})
}

// planned runs the lines of README.md that plan a network, and removes what they made in Docker.
func (h *Harness) planned() {
	h.Helper()
	lines, err := lab.Lines("README.md", "## Plan it")
	h.must(err)
	h.typed(lines...)
	all, err := h.back("office", 1)
	h.must(err)
	if got := all["mail"].Address; got != "10.21.0.80" {
		h.Errorf("mail has %q, and was planned to have 10.21.0.80", got)
	}
	if who, err := h.Berth("who", "10.21.0.80"); err != nil || !strings.Contains(who, "mail") {
		h.Errorf("berth who says: %s (%v)", who, err)
	}
	h.typed("docker rm --force mail", "docker network rm office")
}
