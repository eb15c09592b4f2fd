//go:build engine

package engine

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"berth/test/lab"
)

// A container finds the names of docs/dns.md through Docker's own server, which asks Berth at the network's gateway.
// The host finds them with dig. Berth binds that address before the bridge exists. A removed container has no name.
func TestNames(t *testing.T) {
	t.Parallel()
	const number = 241
	gateway := fmt.Sprintf("10.%d.%d.1", octet, number)
	d := daemon(t, "names", pluginDir, "--dns-listen", gateway+":53", "--dns-zone", "berth-t.example")
	h := enter(t, machineEngine, d, number)
	planned := h.plan("--subnet", h.v4("0/24")+",pool,gateway="+gateway)
	n := h.on(planned)
	h.berth("reservation", "add", planned, "--owner", "printer", "--ip", h.v4("50"))
	zone := "." + planned + ".berth-t.example"
	web := h.container(n)
	asks := h.container(n, "--dns", gateway)

	h.resolves(asks, "printer"+zone, h.v4("50"))
	h.resolves(asks, web+zone, h.address(web, n))
	h.resolves(asks, web+".berth-t.example", h.address(web, n))
	resolver := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, gateway+":53")
	}}
	h.answers(gateway, web+zone, h.address(web, n))
	h.answers(gateway, "-x "+h.address(web, n), web+zone+".")
	h.answers(gateway, "+tcp printer"+zone, h.v4("50"))
	if names, err := resolver.LookupAddr(t.Context(), h.v4("50")); err != nil || len(names) != 1 ||
		names[0] != "printer"+zone+"." {
		h.Errorf("%s is called %v (%v)", h.v4("50"), names, err)
	}

	h.docker("rm", "-f", web)
	h.answers(gateway, web+zone, "")
	h.docker("rm", "-f", asks)
}

// resolves waits until a container resolves a name to an address.
func (h *Harness) resolves(container, name, address string) {
	h.Helper()
	err := lab.Eventually(30*time.Second, func() error {
		out, err := lab.Run(time.Minute, nil, "docker", "--host", "unix://"+h.Engine.Socket, "exec", container,
			"busybox", "nslookup", name)
		if err != nil {
			return fmt.Errorf("nslookup %s: %w", name, err)
		}
		for line := range strings.Lines(out) {
			if strings.TrimSpace(line) == "Address: "+address {
				return nil
			}
		}
		return fmt.Errorf("%s is not at %s:\n%s", name, address, out)
	})
	lab.Must(h, err)
}

// answers waits until dig prints this answer; empty: no answer.
func (h *Harness) answers(server, question, want string) {
	h.Helper()
	err := lab.Eventually(30*time.Second, func() error {
		out, err := lab.Run(time.Minute, nil, "dig", append([]string{"+short", "+tries=1", "@" + server},
			strings.Fields(question)...)...)
		if got := strings.TrimSpace(out); err != nil || got != want {
			return fmt.Errorf("dig %s: %q (%v), want %q", question, got, err, want)
		}
		return nil
	})
	lab.Must(h, err)
}
