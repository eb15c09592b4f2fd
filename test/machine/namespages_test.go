//go:build machine

package machine

import (
	"fmt"
	"strings"
)

const namesDoc = "docs/dns.md"

// docs/dns.md and docs/dns-forward.md: the unit answers for names, on port 53 to a container that asks directly,
// and together with systemd-resolved, which resolves all other names on the host.
func (h *Harness) namesPage() {
	h.types("berth network create home --subnet 10.1.0.0/16,gateway=10.1.0.1,pool")
	h.types("docker network create home --ipam-driver berth --ipam-opt network=home")
	h.types("docker run -d --name web --network home nginx")
	web := strings.TrimSpace(h.types("berth ip web --network home"))

	h.writes("/etc/systemd/system/berth.service.d/override.conf", h.shows(namesDoc, "## Who may ask", 2)[1], 0o644)
	defer h.types("rm -r /etc/systemd/system/berth.service.d; systemctl daemon-reload")
	h.namesAt("10.1.0.1:53")
	h.meanwhile(h.lines(h.shows(namesDoc, "## Containers", 1)[0], 1)[0], func(said string) error {
		if !strings.Contains(said, "from "+web) {
			return fmt.Errorf("%s does not answer", web)
		}
		return nil
	})

	h.namesAt("127.0.0.1:5354")
	h.types("dpkg -i /srv/apart/systemd-resolved_*.deb")
	defer h.types("dpkg --purge systemd-resolved; rm -rf /etc/systemd/resolved.conf.d")
	h.writes("/etc/systemd/resolved.conf.d/berth.conf", h.shows("docs/dns-forward.md", "## Forward the zone", 3)[2], 0o644)
	h.types("systemctl restart systemd-resolved")
	if out := h.types("resolvectl query web.home.lan.example"); !strings.Contains(out, web) {
		h.Errorf("web is asked for, and %s is not said:\n%s", web, out)
	}
	if out := h.types("resolvectl query " + web); !strings.Contains(out, "web.home.lan.example") {
		h.Errorf("%s is asked for, and web is not said:\n%s", web, out)
	}
	h.types("docker rm -f $(docker ps --all --quiet); docker network rm home")
}

// namesAt makes the unit answer for names at an address.
func (h *Harness) namesAt(at string) {
	h.Helper()
	h.writes("/etc/default/berth", "BERTH_DNS_LISTEN="+at+"\nBERTH_DNS_ZONE=lan.example\n", 0o644)
	h.types("systemctl daemon-reload")
	h.stopped()
	h.started()
}
