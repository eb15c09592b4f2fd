//go:build machine

package machine

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"berth/test/checkout"
	"berth/test/ground"
)

// A newcomer who has README.md alone: its lines, one after the other, on the Compose file that it shows. The address of
// a container that is made anew is kept, though another one came in between, whom the engine's own IPAM would give it;
// and all are back with that at the end, at the addresses that they have.
func TestNewcomer(t *testing.T) {
	m, err := newMachine("newcomer")
	h := enter(t, m, err)
	t.Cleanup(func() { h.must(h.Remove()) })
	h.must(h.Boot())
	h.hasCompose()
	lines, err := checkout.Lines("README.md", "## In three minutes")
	h.must(err)
	if want := []string{"make install", "docker compose up -d", "berth lease ls", "docker compose rm --stop --force web",
		"docker run -d --name a-stranger --network shop_default redis", "docker compose up -d", "berth lease ls", "berth leave shop",
		"make uninstall"}; !slices.Equal(lines, want) {
		t.Fatalf("README.md has other lines than this test knows: %q", lines)
	}
	begin := time.Now()
	h.must(h.install(binary)) // make install, in a clone
	h.typed(lines[1:3]...)
	before := h.shop(2)
	h.typed(lines[3:7]...)
	h.must(h.showsWhatIsTold())
	after := h.shop(3)
	if after["shop-web-1"] != before["shop-web-1"] || after["shop-db-1"] != before["shop-db-1"] {
		t.Errorf("before: %v; recreated: %v", before, after)
	}
	t.Logf("an address was kept after %s", time.Since(begin).Round(time.Second))
	h.planned()

	h.typed(lines[7] + " --yes") // which is what a person says when it asks
	if left := h.shop(3); !maps.Equal(left, after) {
		t.Errorf("with Berth: %v; back with the engine's own IPAM: %v", after, left)
	}
	if driver, err := h.Docker("network", "inspect", "--format", "{{.IPAM.Driver}}", "shop_default"); err != nil ||
		driver != "default" {
		t.Errorf("shop_default has the IPAM driver %q (%v)", driver, err)
	}
	t.Logf("and left after %s", time.Since(begin).Round(time.Second))
	_, err = h.In("make", "--no-print-directory", "-C", source, "uninstall")
	h.must(err)
	_, err = h.In("systemctl", "restart", "docker")
	h.must(err)
	h.typed("docker start $(docker ps --all --quiet)")
	h.shop(3)
}

// hasCompose gives the machine a compose command, the Compose file of README.md, and what stands for its images.
func (h *House) hasCompose() {
	h.Helper()
	root, err := checkout.Root()
	h.must(err)
	program, err := os.ReadFile(filepath.Join(root, "build/tools/compose-v5.5.0"))
	h.must(err)
	file, err := checkout.Block("README.md", "yaml")
	h.must(err)
	for name, text := range map[string]string{"usr/local/lib/docker/cli-plugins/docker-compose": string(program),
		"root/shop/compose.yaml": file} {
		path := h.root(name)
		h.must(os.MkdirAll(filepath.Dir(path), 0o755))
		h.must(os.WriteFile(path, []byte(text), 0o755))
	}
	h.must(h.importImage())
	for _, name := range []string{"nginx", "redis"} {
		_, err := h.In("sh", "-c", `tar -C /root/image -c . | docker import --change 'CMD ["sleep", "1000000"]' - `+name)
		h.must(err)
	}
}

// typed runs lines of README.md, in the directory of its Compose file.
func (h *House) typed(lines ...string) {
	h.Helper()
	for _, line := range lines {
		out, err := h.In("sh", "-c", "cd /root/shop && "+line+" 2>&1")
		if err != nil {
			h.Fatalf("%s: %v\n%s", line, err, out)
		}
		h.Logf("$ %s\n%s", line, out)
	}
}

// shop are the addresses of the project's network by the names of its containers, each of which answers.
func (h *House) shop(n int) map[string]string {
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

// showsWhatIsTold waits until `berth lease ls` shows the table of README.md: an engine before 29 says the names of
// containers a moment after they have started.
func (h *House) showsWhatIsTold() error {
	told, err := checkout.Block("README.md", "text")
	if err != nil {
		return err
	}
	form := regexp.MustCompile(` +`).ReplaceAllString(regexp.QuoteMeta(strings.TrimSpace(told)), ` +`)
	table, err := regexp.Compile("^" + form + "$")
	if err != nil {
		return err
	}
	return ground.Eventually(20*time.Second, func() error {
		out, err := h.Berth("lease", "ls")
		if err == nil && !table.MatchString(out) {
			err = fmt.Errorf("README.md shows\n%s\nand berth lease ls says\n%s", told, out)
		}
		return err
	})
}

// planned runs the lines by which README.md plans a network, and takes away what they made in Docker.
func (h *House) planned() {
	h.Helper()
	lines, err := checkout.Lines("README.md", "## Plan it")
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
