//go:build machine && release

package machine

import (
	"flag"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"berth/test/lab"
)

var (
	release = flag.String("release", "", "the directory that packaging/release made")
	version = flag.String("version", "", "its version")
)

// A Debian or Ubuntu with only the files of a release: the checksums match. The package runs README's
// demonstration, upgrades an older one while containers run, and leaves nothing. Tarball, plugin and image run.
func TestRelease(t *testing.T) {
	m, err := newMachine("release")
	h := enter(t, m, err)
	t.Cleanup(func() { h.must(h.Remove()) })
	const there = "/root/release"
	h.must(os.CopyFS(h.root(there), os.DirFS(*release)))
	older := filepath.Base(h.packages("v0.9.0", h.root("/root/debs"), "amd64="+binary)[0])
	h.must(h.Boot())
	h.types("cat /etc/os-release | head -1; docker version --format '{{.Server.Version}}'")
	h.types("cd " + there + " && sha256sum --check --quiet SHA256SUMS")
	deb := there + "/berth_" + *version + "-1_amd64.deb"

	h.hasCompose()
	h.dpkg("--install", "/root/debs/"+older)
	lines, err := lab.Lines("README.md", "## In three minutes")
	h.must(err)
	up := lines[1]
	h.typed(up)
	before := h.shop(2)
	h.dpkg("--install", deb)
	h.must(h.active())
	if out := h.types("berth --version"); out != "berth version "+*version {
		t.Errorf("it is %s", out)
	}
	if after := h.shop(2); !maps.Equal(before, after) {
		t.Errorf("before the upgrade: %v, after it: %v", before, after)
	}
	h.typed(lines[3:7]...)
	after := h.shop(3)
	if after["shop-web-1"] != before["shop-web-1"] || after["shop-db-1"] != before["shop-db-1"] {
		t.Errorf("before: %v; recreated: %v", before, after)
	}
	h.must(h.sound())
	h.typed("berth leave shop --yes",
		"docker compose down --remove-orphans; docker rm --force a-stranger; docker network rm shop_default || true")
	h.dpkg("--purge", "berth")
	h.leftNothing()

	h.types("mkdir /root/tar && tar -C /root/tar -xzf " + there + "/berth_" + *version + "_linux_amd64.tar.gz")
	if out := h.types("/root/tar/berth-" + *version + "/berth --version"); out != "berth version "+*version {
		t.Errorf("the tarball has %s", out)
	}
	for _, file := range []string{"man/berth.1", "completion/berth.bash", "init/berth-witness.service", "LICENSE"} {
		h.types("test -s /root/tar/berth-" + *version + "/" + file)
	}
	h.types("docker load --quiet --input " + there + "/berth-image_" + *version + "_amd64.tar")
	out := h.types("docker run --rm --entrypoint /berth berth:" + *version + " --version")
	if out != "berth version "+*version {
		t.Errorf("the image has %s", out)
	}

	h.writes("/etc/hosts", "127.0.0.1 localhost registry.example\n", 0o644)
	h.hasRegistry()
	name := "registry.example/berth:" + *version
	h.types("mkdir /root/plugin && tar -C /root/plugin -xzf " + there + "/berth-plugin_" + *version + "_amd64.tar.gz && " +
		"docker plugin create " + name + " /root/plugin && docker plugin push " + name + " && docker plugin rm " + name)
	h.types("docker plugin install --grant-all-permissions " + name + " && docker network create --ipam-driver " + name +
		" --subnet 10.61.0.0/24 managed && docker run -d --name one --network managed nginx")
	out = h.types("docker inspect --format '{{.NetworkSettings.Networks.managed.IPAddress}}' one")
	if !strings.HasPrefix(out, "10.61.0.") {
		t.Errorf("the plugin gave %q", out)
	}
	h.types("docker rm --force one && docker network rm managed && docker plugin rm --force " + name)
}
