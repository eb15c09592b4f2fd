//go:build machine

package machine

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"berth/test/lab"
)

const dhcpDoc = "docs/dhcp.md"

// docs/dhcp.md: containers have addresses from the LAN's own DHCP server. The edge that asks it is first a unit,
// then a container. The network is first an unplanned one, then a planned one.
func (h *Harness) dhcpPage() {
	h.eth0()
	h.types("ip address flush dev eth0; ip -n lan address replace 192.168.1.1/24 dev eth0")
	h.hasRouter()
	edges := h.shows(dhcpDoc, "## Start the edge", 2)
	networks := h.shows(dhcpDoc, "## Create the network", 2)

	h.types(edges[0])
	first := h.lines(networks[0], 2)
	h.onceItListens(first[0])
	h.types(first[1])
	given := h.fromRouter("web")
	h.types("docker rm -f web; systemctl disable --now berth-edge.service")
	h.hasEdgeImage()
	h.types(edges[1])
	h.types("docker create --name web --network lan nginx")
	h.onceItListens("docker start web")
	if again := h.fromRouter("web"); again != given {
		h.Errorf("web had %s, and has %s", given, again)
	}
	h.types("docker rm -f web; docker network rm lan")

	h.types(networks[1])
	h.types("docker run -d --name shop_web_1 --network lan nginx")
	h.fromRouter("shop_web_1")
	h.types("docker rm -f shop_web_1 berth-edge; docker network rm lan")
}

// hasRouter runs a DHCP server of this host on the machine's LAN, like a router's.
func (h *Harness) hasRouter() {
	h.Helper()
	program, err := lab.Tool("dnsmasq")
	h.must(err)
	cmd := exec.Command("nsenter", fmt.Sprintf("--net=/proc/%d/root/run/netns/lan", h.init), program, "-k", "-C", "/dev/null",
		"-p", "0", "-i", "eth0", "--bind-dynamic", "-u", "root", "--pid-file=", "--log-facility=-", "--no-ping",
		"--dhcp-authoritative", "--dhcp-range=192.168.1.100,192.168.1.199,3600",
		"--dhcp-leasefile="+filepath.Join(h.dir, "router.leases"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	lab.Start(h, cmd)
}

// hasEdgeImage makes an image like that of Dockerfile.edge, without the programs that map addresses.
func (h *Harness) hasEdgeImage() {
	h.Helper()
	h.types("tar -C / -c usr/local/bin/berth | " +
		`docker import --change 'ENTRYPOINT ["/usr/local/bin/berth", "edge"]' - berth-edge`)
}

// onceItListens repeats a line until the edge, just started, listens. Earlier runs of the line are refused.
func (h *Harness) onceItListens(line string) {
	h.Helper()
	lab.Await(h, 20*time.Second, func() error {
		out, err := h.In("sh", "-ec", "exec 2>&1; "+line)
		if err != nil {
			err = fmt.Errorf("%s: %w\n%s", line, err, out)
		}
		return err
	})
}

// fromRouter is the address of a container. It must be one from the router.
func (h *Harness) fromRouter(container string) string {
	h.Helper()
	all, err := h.running("lan")
	h.must(err)
	address := all[container].Address
	if !strings.HasPrefix(address, "192.168.1.1") || len(address) != len("192.168.1.1xx") {
		h.Fatalf("%s has %q on the LAN, which its router does not give", container, address)
	}
	out := h.types("berth lease ls --format '{{.Address}}{{with .DHCP}} {{.State}} {{.Server}}{{end}}'")
	if want := address + " bound 192.168.1.1"; !strings.Contains(out, want) {
		h.Errorf("%q is not on record:\n%s", want, out)
	}
	return address
}
