package compose

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"berth/internal/cli"
)

// move describes how the Docker network moves to Berth. It gives each container's address, because not every engine
// tells Berth which container asks.
func (a *adoption) move() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintln(&b, cli.Printable(fmt.Sprintf(format, args...))) }
	n := a.docker
	if n.Name == "bridge" {
		line("Nothing was changed in Docker. Its network bridge stays as it is: the engine does not allow its removal.")
		return b.String()
	}
	if projects := a.projects(); len(projects) > 0 {
		line("Nothing was changed in Docker. Compose created containers on its network %s. Move a project to Berth as "+
			"a whole with `berth adopt --project %s`; each container keeps its address.",
			n.Name, strings.Join(projects, "` and `berth adopt --project "))
		line("These steps are only for other containers; those of Compose would lose their aliases:")
	} else {
		line("Nothing was changed in Docker. To move its network %s to Berth:", n.Name)
	}
	on := a.containers()
	for _, c := range on {
		line("  docker network disconnect --force %s %s", n.Name, c.name)
	}
	line("  docker network rm %s", n.Name)
	create := fmt.Sprintf("docker network create --ipam-driver %s --ipam-opt network=%s", a.driver, a.name)
	for _, sub := range n.Subnets {
		if sub.CIDR.Addr().Is6() {
			create += " --ipv6"
		}
		create += " --subnet " + sub.CIDR.String()
	}
	line("  %s %s", create, n.Name)
	for _, c := range on {
		line("  docker network connect%s %s %s", c.flags, n.Name, c.name)
	}
	if n.Swarm {
		line("Swarm cannot disconnect services: remove them before these steps, and create them again afterwards.")
	}
	line("Repeat the other settings of the network and its containers, as `docker network inspect` and `docker " +
		"inspect` " +
		"show them: -d, -o, --internal, --attachable and --label of the network, --alias and --link of a container.")
	return b.String()
}

// projects returns the sorted names of the Compose projects with containers on the network.
func (a *adoption) projects() (all []string) {
	for i := range a.view.Containers {
		if name := a.view.Containers[i].Project; name != "" {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// connected is a container of the network, and the flags that give it its addresses again.
type connected struct{ name, flags string }

func (a *adoption) containers() (all []connected) {
	for i := range a.view.Containers {
		c := &a.view.Containers[i]
		for j := range c.Endpoints {
			ep := &c.Endpoints[j]
			if ep.Network != a.docker.ID || c.ID == "" || a.docker.Swarm {
				continue
			}
			addrs := ep.Addresses
			if len(addrs) == 0 {
				addrs = ep.Wanted
			}
			all = append(all, connected{c.Name, addressFlags(addrs)})
		}
	}
	return all
}

func addressFlags(addrs []netip.Addr) (flags string) {
	addrs = slices.SortedFunc(slices.Values(addrs), netip.Addr.Compare)
	for _, a := range addrs {
		if a.Is6() {
			flags += " --ip6 " + a.String()
		} else {
			flags += " --ip " + a.String()
		}
	}
	return flags
}

// steps describes how Compose moves the project to Berth, so that its containers keep what Compose gave them. Replicas
// share one entry in the file, so they are pinned before they start: not every engine says which of them asks. command
// is the compose command.
func (a *projectAdoption) steps(command string) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintln(&b, cli.Printable(fmt.Sprintf(format, args...))) }
	before := command + " -p " + a.engine.Name
	for _, file := range a.compose.Files() {
		before += " -f " + shellWord(file)
	}
	after := before + " -f " + shellWord(a.output)
	up := ""
	for _, service := range slices.Sorted(maps.Keys(a.scaled)) {
		up += fmt.Sprintf(" --scale %s=%d", service, a.scaled[service])
	}
	line("Nothing was changed in Docker. To move the project %s to Berth, run these commands. They remove its "+
		"containers, and create them again with the same addresses (volumes stay):", a.engine.Name)
	line("  %s down", before)
	if a.replicas() {
		line("  %s up --no-start%s", after, up)
		line("  berth pin --project %s --yes", a.engine.Name)
		line("  %s start", after)
	} else {
		line("  %s up -d%s", after, up)
	}
	line("  berth check")
	for _, name := range a.external {
		line("%s is external and stays as it is: adopt it with `berth adopt %s`, then name it with `berth compose "+
			"--network`.", name, name)
	}
	line("When the Compose file changes, copy the networks of %s into it, and write the override again with "+
		"`berth compose -o`.", a.output)
	return b.String()
}

// replicas reports whether any service has several.
func (a *projectAdoption) replicas() bool {
	return slices.ContainsFunc(slices.Collect(maps.Values(a.engine.Replicas)), func(n int) bool { return n > 1 })
}

// shellWord quotes a word for a shell, if it needs quotes.
func shellWord(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' ||
			strings.ContainsRune("_-./:@%+=,", r)
	}
	if s != "" && strings.TrimFunc(s, plain) == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
