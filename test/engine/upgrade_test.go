//go:build engine

package engine

import (
	"net/netip"
	"path/filepath"
	"strings"
	"testing"

	"berth/test/lab"
)

// `docker plugin upgrade` keeps a managed plugin's data: its leases, its memory of owners, and the pool ids that the
// engine has stored (invariant 5). It keeps the settings of `docker plugin set`, too.
func TestPluginUpgrade(t *testing.T) {
	newer := filepath.Join(base, "bin", "berth-newer")
	lab.Must(t, lab.Build(newer, "test-2"))
	repository := registry(t).Addr + "/" + prefix + "upgraded"
	for tag, program := range map[string]string{"v1": binary, "v2": newer} {
		lab.Must(t, publishPlugin(machineEngine, repository+":"+tag, program))
	}
	t.Parallel()
	// the lines of docs/upgrade.md
	lines, err := lab.Lines("docs/upgrade.md", "## The managed plugin")
	if err != nil || len(lines) != 5 {
		t.Fatalf("the page has the lines %q (%v)", lines, err)
	}
	alias := prefix + "upgraded"
	own := func(line string) []string {
		line = strings.NewReplacer("registry.example/berth:1.0", repository+":v1", "registry.example/berth:1.1",
			repository+":v2", "--alias berth ", "--alias "+alias+" ", "berth:latest", alias+":latest").Replace(line)
		args := strings.Fields(line)
		for i, arg := range args {
			if arg == "berth" {
				args[i] = alias
			}
		}
		return args[1:]
	}
	install, create := own(lines[3]), own(lines[4])
	install = append(install, "BERTH_HOST=berth-t-host", "BERTH_DEFAULT_POOL=base=10.213.192.0/20,size=26", askMAC)
	if _, err := machineEngine.Docker(install...); err != nil {
		t.Fatal(err)
	}
	p := &Plugin{Name: alias + ":latest", AsksMAC: true, Sockets: pluginDir, engine: machineEngine, binary: binary}
	p.removedAfter(t)
	lab.Must(t, p.Revive())
	h := enter(t, machineEngine, p, 90)
	front := h.name()
	create[len(create)-1] = front
	h.docker(create...)
	kept := h.container(front)
	keptAt := h.address(kept, front)
	h.upgraded(func() error {
		for _, line := range lines[:3] {
			if _, err := machineEngine.Docker(own(line)...); err != nil {
				return err
			}
		}
		return p.Revive()
	})
	h.hasAddress(kept, front, keptAt)
	if v, err := berth(p, "version"); err != nil || !strings.Contains(v, "test-2") {
		t.Errorf("after the upgrade, berth version says %q (%v)", v, err)
	}
}

// upgraded checks that everything is the same after an upgrade.
func (h *Harness) upgraded(upgrade func() error) {
	h.Helper()
	h.hasSettings()
	n := h.network("--subnet", h.v4("0/24"), "--ip-range", h.v4("64/26"))
	stays := h.container(n)
	staysAt := h.address(stays, n)
	const mac = "02:62:74:00:00:02"
	returns := h.name()
	lab.Must(h, h.Engine.create(returns, n, mac))
	h.docker("start", returns)
	returnsAt := h.address(returns, n)
	h.docker("stop", returns)
	leasesBefore := h.leases(h.v4("0/24"))
	lab.Must(h, upgrade())
	if got := h.leases(h.v4("0/24")); len(got) != len(leasesBefore) {
		h.Errorf("before the upgrade Berth had %+v, now %+v", leasesBefore, got)
	}
	h.hasAddress(stays, n, staysAt)
	if a := h.address(h.container(n), n); a == staysAt || a == returnsAt {
		h.Errorf("a new container got %s, which is another's", a)
	}
	h.docker("start", returns)
	h.hasAddress(returns, n, returnsAt)
	h.hasSettings()
}

// hasSettings checks that the plugin uses the settings from its installation: the host's name and the default pool.
func (h *Harness) hasSettings() {
	h.Helper()
	n := h.network()
	got, err := h.Engine.Subnets(n)
	if err != nil || len(got) != 1 {
		h.Fatalf("subnets of %s: %+v (%v)", n, got, err)
	}
	subnet, err := netip.ParsePrefix(got[0].Subnet)
	if err != nil || subnet.Bits() != 26 || !netip.MustParsePrefix("10.213.192.0/20").Contains(subnet.Addr()) {
		h.Errorf("the network's subnet is %s, which is no /26 of 10.213.192.0/20", got[0].Subnet)
	}
	c := h.container(n)
	if l := h.lease(h.address(c, n)); l.Host != "berth-t-host" {
		h.Errorf("the lease is of host %q: %+v", l.Host, l)
	}
	h.docker("rm", "-f", c)
	h.removes(n)
}
