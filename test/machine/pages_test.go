//go:build machine

package machine

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"berth/test/lab"
)

// The lines of the pages that need a host with systemd, a Docker Engine and Berth, in reading order.
func TestPages(t *testing.T) {
	h := reader(t, "pages")
	h.hasImages("nginx", "postgres", "worker", "alpine")
	for _, page := range []struct {
		name  string
		typed func(*Harness)
	}{
		{"quick-start", (*Harness).quickStartPage},
		{"access", (*Harness).accessPage},
		{"backup", (*Harness).backupPage},
		{"looking", (*Harness).lookingPage},
		{"page", (*Harness).pagePage},
		{"metrics", (*Harness).metricsPage},
		{"webhooks", (*Harness).webhooksPage},
		{"networks", (*Harness).networkPages},
		{"macvlan", (*Harness).macvlanPage},
		{"dhcp", (*Harness).dhcpPage},
		{"names", (*Harness).namesPage},
		{"elastic", (*Harness).elasticPage},
		{"compose", (*Harness).composePage},
		{"adopt", (*Harness).adoptPage},
		{"leave", (*Harness).leavePage},
		{"import", (*Harness).importPage},
	} {
		t.Run(page.name, func(t *testing.T) {
			on := &Harness{T: t, Machine: h.Machine}
			on.fresh()
			page.typed(on)
		})
	}
}

// docs/quick-start.md: a container gets its address back after another one, and also when it is pinned. At the end
// nothing is left.
func (h *Harness) quickStartPage() {
	block := func(below string, n int) string { return h.shows("docs/quick-start.md", below, n)[0] }
	h.types(block("## 1. Install", 1))
	h.types(block("## 2. Plan a network, and create it in Docker", 1))
	h.types(block("## 3. Start a container", 2))
	h.at("demo", "web", "10.22.0.10")
	h.types(block("## 4. See that the address stays", 1))
	h.at("demo", "web", "10.22.0.10")
	h.types(block("## 5. Reserve an address", 1))
	h.at("demo", "db", "10.22.0.5")
	h.types(block("## 6. Pin what runs", 1))
	h.at("demo", "web", "10.22.0.10")
	h.types(block("## 7. Look", 1))
	h.types(block("## 8. Undo", 1))
	if left := h.types("berth network ls -q"); left != "" {
		h.Errorf("these networks are left: %s", left)
	}
}

// docs/backup.md: a restore brings back what the backup contains, and nothing else. The timer's service makes a
// backup.
func (h *Harness) backupPage() {
	h.types("berth network create front --subnet 10.30.0.0/24,pool; berth reservation add front --owner mail")
	h.types("rm -f /srv/berth.backup; berth state backup /srv/berth.backup; berth reservation add front --owner later")
	h.types(h.shows("docs/backup.md", "## Restore", 1)[0])
	if out := h.types("berth reservation ls front --format '{{.Owner}}'"); out != "mail" {
		h.Errorf("after the restore these have reservations: %s", out)
	}
	daily := h.shows("docs/backup.md", "## Back up every day", 3)
	h.writes("/etc/systemd/system/berth-backup.service", daily[0], 0o644)
	h.writes("/etc/systemd/system/berth-backup.timer", daily[1], 0o644)
	h.types(daily[2])
	h.types("berth state check /var/backups/berth/$(LC_ALL=C date +%a).db; systemctl disable --now berth-backup.timer")
	h.must(h.sound())
}

// docs/looking.md: a following line reports the events.
func (h *Harness) lookingPage() {
	block := h.shows("docs/looking.md", "## What was", 2)[1]
	h.types("berth network create net1 --subnet 10.8.0.0/24,pool")
	said := ""
	h.meanwhile(h.lines(block, 1)[0], func(now string) error {
		if said = now; !strings.Contains(now, "reservation.add") {
			// it must not report requests from before it followed
			h.types("berth reservation add net1 --owner mail && berth reservation rm --owner mail --everywhere && " +
				"berth exclusion add net1 10.8.0.77 && berth exclusion rm net1 10.8.0.77")
			return fmt.Errorf("it tells of no reservation")
		}
		return nil
	})
	if strings.Contains(said, "exclusion") || strings.Contains(said, "reservation.release") {
		h.Errorf("it tells of what was not asked for:\n%s", said)
	}
}

// docs/page.md: the link that the command prints first leads to the page.
func (h *Harness) pagePage() {
	block := h.shows("docs/page.md", "## In your own browser", 1)[0]
	link := regexp.MustCompile(`\Ahttp://127\.0\.0\.1:\d+/\?secret=\S+\n`)
	h.meanwhile(h.lines(block, 1)[0], func(said string) error {
		if !link.MatchString(said) {
			return fmt.Errorf("it writes no link first: %q", said)
		}
		res, err := h.visits(strings.TrimSpace(link.FindString(said)))
		if err != nil {
			return err
		}
		if res.StatusCode != http.StatusSeeOther || res.Header.Get("Set-Cookie") == "" {
			return fmt.Errorf("the link is answered with %s, %v", res.Status, res.Header)
		}
		return nil
	})
}

// docs/metrics.md: the line gives Prometheus the metrics.
func (h *Harness) metricsPage() {
	h.stopped()
	block := h.shows("docs/metrics.md", "## Scraping it", 2)[0]
	h.meanwhile(h.lines(block, 1)[0], func(string) error {
		out, err := h.In("busybox", "wget", "-q", "-O", "-", "http://127.0.0.1:9723/metrics")
		if err == nil && !strings.Contains(out, "berth_build_info") {
			err = fmt.Errorf("it tells %s", out)
		}
		return err
	})
}

// The Docker networks of docs/options.md, docs/fixed-addresses.md and docs/planning.md, with the plans of these
// pages.
func (h *Harness) networkPages() {
	h.types(h.shows("docs/options.md", "## On a planned network", 1)[0])
	h.types("docker run -d --name web1 --network shop nginx")
	h.at("shop", "web1", "10.7.0.10")
	h.types("docker rm -f web1; docker network rm shop")

	h.fresh()
	h.plans("docs/fixed-addresses.md", "## Reserve an address")
	h.types(h.shows("docs/fixed-addresses.md", "## Start the container with it", 3)[0])
	h.types("docker run -d --name shop-db-1 --network front --ip $(berth ip shop/db/1 --network front) nginx")
	h.at("front", "shop-db-1", "10.40.0.9")
	h.types("docker rm -f shop-db-1; docker network rm front")

	h.fresh()
	h.plans("docs/planning.md", "## Plan it")
	h.eth0()
	lines := h.lines(h.shows("docs/planning.md", "## Plan it", 4)[2], 2)
	h.types(lines[0])
	h.types("docker run -d --name one --network shop nginx")
	h.at("shop", "one", "10.20.0.10")
	h.types("docker rm -f one; docker network rm shop")
	h.types(lines[1])
	h.types("docker run -d --name two --network store nginx")
	h.at("store", "two", "10.20.0.100")
	h.types("docker rm -f two; docker network rm store")
}

// at checks a container's address on a network, and that Berth has it on record.
func (h *Harness) at(network, container, address string) {
	h.Helper()
	all, err := h.running(network)
	h.must(err)
	if got := all[container].Address; got != address {
		h.Errorf("%s has %q on %s, and should have %s", container, got, network, address)
	}
	if held, err := h.leases(address + "/32"); err != nil || len(held) != 1 {
		h.Errorf("%s is on record as %v (%v)", address, held, err)
	}
}

// eth0 gives the machine a network card, with a wire to another machine.
func (h *Harness) eth0() {
	h.Helper()
	h.types("ip link show eth0 >/dev/null 2>&1 || { ip netns add lan; " +
		"ip link add eth0 type veth peer name eth0 netns lan; ip link set eth0 up; ip -n lan link set eth0 up; }")
}

// docs/macvlan.md: a container on the LAN can be reached from the LAN, and over the shim from its own host.
func (h *Harness) macvlanPage() {
	h.eth0()
	h.types("ip address add 192.168.1.5/24 dev eth0; ip -n lan address add 192.168.1.1/24 dev eth0")
	h.types(h.shows("docs/macvlan.md", "## Plan it", 1)[0])
	h.types(h.shows("docs/macvlan.md", "## Create the Docker network", 1)[0])
	h.at("home", "web", "192.168.1.64")
	h.types("ip netns exec lan busybox ping -c 1 -W 20 192.168.1.64")
	h.types(h.shows("docs/macvlan.md", "## Reaching the host", 1)[0])
	h.types("busybox ping -c 1 -W 20 192.168.1.64; docker exec web ping -c 1 -W 20 192.168.1.96")
	if out := h.types("berth address ls home --format '{{.Address}} {{.Owner}}'"); out != "192.168.1.96 harbour-shim" {
		h.Errorf("the shim's address is on record as %s", out)
	}
	h.types("docker rm -f web; docker network rm home; ip link del shim0; ip address flush dev eth0")
}

// docs/elastic.md and docs/elastic-edge.md: the edge's unit is installed but off. Once turned on, it maps for the
// daemon.
func (h *Harness) elasticPage() {
	if state, err := h.property("berth-edge.service", "UnitFileState"); err != nil || state != "disabled" {
		h.Errorf("the unit is %s (%v)", state, err)
	}
	h.types(h.shows("docs/elastic-edge.md", "## Run it", 2)[0])
	h.types("berth network create net1 --subnet 10.60.0.0/24,gateway=10.60.0.1,pool; " +
		"berth reservation add net1 --owner mail; docker network create --ipam-driver berth --ipam-opt network=net1 " +
		"--subnet 10.60.0.0/24 net1")
	h.types(h.shows("docs/elastic.md", "## Give a container its own outgoing address", 1)[0])
	lab.Await(h, 20*time.Second, func() error {
		rules, err := h.In("nft", "list", "ruleset")
		if err == nil && !strings.Contains(rules, "203.0.113.10") {
			err = fmt.Errorf("the kernel has\n%s", rules)
		}
		return err
	})
	h.types("berth elastic check")
	h.types("berth elastic disassociate 203.0.113.10; systemctl disable --now berth-edge.service; berth edge --remove")
	h.types("docker network rm net1")
}

// docs/import.md: an interrupted import is completed, and then undone.
func (h *Harness) importPage() {
	lines := h.lines(h.shows("docs/import.md", "## Take an import back", 1)[0], 2)
	const networks, each = 30, 1000
	var plan strings.Builder
	plan.WriteString("version: 1\nnetworks:\n")
	for n := range networks {
		fmt.Fprintf(&plan, "  - name: n%d\n    subnets: [{cidr: 10.%d.0.0/20}]\n    reservations:\n", n, n)
		for i := range each {
			fmt.Fprintf(&plan, "      - {owner: o%d, address: 10.%d.%d.%d}\n", i, n, i/250+1, i%250+1)
		}
	}
	h.writes("/root/plan.yaml", plan.String(), 0o644)
	h.cutOff("plan.yaml")
	count := func() string { return h.types("berth network ls -q | wc -l") }
	for i, want := range []string{fmt.Sprint(networks), count()} {
		h.types(lines[i])
		if got := count(); got != want {
			h.Errorf("after %s there are %s networks, and should be %s", lines[i], got, want)
		}
	}
	h.fresh()
}

// cutOff imports a document and kills the daemon as soon as the first of its networks exists. On a busy machine
// the import may end too early; then it tries again.
func (h *Harness) cutOff(document string) {
	h.Helper()
	script := "cd /root; berth plan import " + document + ` >/dev/null 2>&1 & import=$!
		until berth network ls -q | grep -q .; do kill -0 $import || exit 1; done
		systemctl kill --signal KILL berth.service
		! wait $import`
	for try := 1; ; try++ {
		out, err := h.In("sh", "-c", script)
		if err == nil {
			break
		}
		if try == 5 {
			h.Fatalf("the import is not cut off: %s (%v)", out, err)
		}
		h.fresh()
	}
	lab.Await(h, 20*time.Second, func() error {
		_, err := h.Berth("status")
		return err
	})
}
