//go:build machine

package machine

import (
	"bytes"
	"context"
	"debug/elf"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"berth/test/lab"
)

// packages makes the Debian packages of binaries, one for each architecture, as `make packages` does.
func (h *Harness) packages(version, dir string, binaries ...string) []string {
	h.Helper()
	root, err := lab.Root()
	h.must(err)
	out, err := lab.Run(3*time.Minute, nil, filepath.Join(root, "packaging/build"),
		append([]string{version, dir}, binaries...)...)
	h.must(err)
	return strings.Fields(out)
}

// The package on a Debian. After installation Berth runs in its sandbox, and berth edge does not run. During an
// upgrade running containers keep their addresses, and a container can start. Removal names the networks that are
// left without Berth, and keeps the addresses. Purging leaves nothing.
func TestPackage(t *testing.T) {
	m, err := newMachine("package")
	h := enter(t, m, err)
	t.Cleanup(func() { h.must(h.Remove()) })
	debs := h.root("/root/debs")
	first := filepath.Base(h.packages("v1.0.0", debs, "amd64="+binary)[0])
	second := filepath.Base(h.packages("v1.1.0-3-gabcdef0", debs, "amd64="+newer)[0])
	if first != "berth_1.0.0-1_amd64.deb" || second != "berth_1.1.0+3.abcdef0-1_amd64.deb" {
		t.Errorf("the packages are called %s and %s", first, second)
	}
	h.must(h.Boot())
	h.dpkg("--install", "/root/debs/"+first)
	h.packageRuns()
	for _, step := range []func() error{
		h.importImage,
		func() error { return h.createNetwork(lan, "berth", lanSubnet) },
		func() error { return h.startContainers(3, "c", lan) },
	} {
		h.must(step())
	}
	h.settled(3)
	h.packageUpgraded(second)
	h.completionPage()
	h.packageRemoved(second)
	h.packagePurged()
}

// dpkg runs dpkg on the machine and returns all output.
func (h *Harness) dpkg(args ...string) string {
	h.Helper()
	quoted := "dpkg " + strings.Join(args, " ") + " 2>&1"
	out, err := h.In("sh", "-c", quoted)
	if err != nil {
		h.Fatalf("%s: %v\n%s", quoted, err, out)
	}
	return out
}

// packageRuns checks what an installation has started, and what it has not.
func (h *Harness) packageRuns() {
	h.Helper()
	h.must(h.active())
	for unit, want := range map[string]string{"berth.service": "enabled", "berth.socket": "enabled",
		"berth-mac.socket": "enabled", "berth-admin.socket": "enabled", "berth-witness.service": "enabled",
		"berth-edge.service": "disabled"} {
		if state, err := h.property(unit, "UnitFileState"); err != nil || state != want {
			h.Errorf("%s is %s (%v)", unit, state, err)
		}
	}
	if state, err := h.property("berth-edge.service", "ActiveState"); err != nil || state != "inactive" {
		h.Errorf("berth edge is %s (%v)", state, err)
	}
	h.sandboxed()
	if got, err := h.In("stat", "--format", "%U:%G %a", "/run/berth/admin.sock"); err != nil || got != "root:berth 660" {
		h.Errorf("the admin socket is %q (%v)", got, err)
	}
}

// packageUpgraded checks an upgrade while containers run, with a changed setting.
func (h *Harness) packageUpgraded(deb string) {
	h.Helper()
	h.types("echo BERTH_LOG_LEVEL=debug >>/etc/default/berth; systemctl disable berth-mac.socket")
	containers, before, engine := h.settled(3), h.held(), h.unitPid("docker.service")
	since := func() string {
		at, err := h.property("berth.socket", "ActiveEnterTimestampMonotonic")
		h.must(err)
		return at
	}
	socket := since()
	started := make(chan error, 1)
	go func() { started <- h.startContainer("meanwhile", lan) }()
	lines, err := lab.Lines("docs/upgrade.md", "## A package or a service")
	if err != nil || len(lines) != 1 || !strings.HasPrefix(lines[0], "apt install ./berth_") {
		h.Fatalf("the page has the lines %q (%v)", lines, err)
	}
	said, err := h.In("sh", "-c", "cd /root/debs && apt install ./"+deb+" 2>&1")
	if err != nil {
		h.Fatalf("apt install: %v\n%s", err, said)
	}
	h.must(<-started)
	if version, err := h.Berth("version", "--format", "{{.Daemon.Version}}"); err != nil || version != "test-2" {
		h.Errorf("the daemon is of version %q (%v)", version, err)
	}
	if after := since(); after != socket {
		h.Errorf("the plugin socket was active since %s, and is since %s", socket, after)
	}
	if h.unitPid("docker.service") != engine {
		h.Error("the engine was restarted")
	}
	all, after := h.settled(4), h.held()
	delete(after, all["meanwhile"].Address)
	delete(all, "meanwhile")
	if !maps.Equal(before, after) || !maps.Equal(containers, all) { // none was restarted
		h.Errorf("before: %v %v\nafter:  %v %v", before, containers, after, all)
	}
	environ, err := h.In("cat", fmt.Sprintf("/proc/%d/environ", h.unitPid("berth.service")))
	if err != nil || !slices.Contains(strings.Split(environ, "\x00"), "BERTH_LOG_LEVEL=debug") {
		h.Errorf("the setting was lost: %q (%v)", environ, err)
	}
	if state, err := h.property("berth-mac.socket", "UnitFileState"); err != nil || state != "disabled" {
		h.Errorf("what somebody had disabled is %s (%v)", state, err)
	}
}

// completionPage runs the lines of docs/install.md for completion and manual pages, in the directories of the
// shells' packages.
func (h *Harness) completionPage() {
	h.Helper()
	lines, err := lab.Lines("docs/install.md", "## Completion and manual pages")
	h.must(err)
	const places = "/usr/share/bash-completion/completions /usr/local/share/zsh/site-functions /etc/fish/completions " +
		"/usr/local/share/man/man1"
	_, err = h.In("sh", "-c", "mkdir -p "+places)
	h.must(err)
	for _, line := range lines {
		_, err := h.In("sh", "-c", line)
		h.must(err)
	}
	empty, err := h.In("sh", "-c", "for place in "+places+"; do find $place -name '*berth*' -size +0 | grep -q . || "+
		"echo $place; done")
	if err != nil || len(lines) != 4 || empty != "" {
		h.Errorf("%q put nothing into %s (%v)", lines, empty, err)
	}
	said, err := h.In("bash", "-c", ". /usr/share/bash-completion/completions/berth && complete -p berth")
	if err != nil || !strings.Contains(said, "__start_berth") {
		h.Errorf("bash completes berth with %q (%v)", said, err)
	}
	h.types("rm -rf /etc/fish /usr/local/share/zsh /usr/local/share/man/man1")
}

// packageRemoved checks a removal while containers run, and then an installation.
func (h *Harness) packageRemoved(deb string) {
	h.Helper()
	containers, before := h.settled(4), h.held()
	if said := h.dpkg("--remove", "berth"); !strings.Contains(said,
		"these Docker networks get their addresses from Berth: "+lan+" \n") {
		h.Errorf("it does not say that %s is left without it:\n%s", lan, said)
	}
	for _, unit := range append([]string{"berth-mac.socket", "berth-edge.service"}, units...) {
		if state, err := h.property(unit, "ActiveState"); err != nil || state != "inactive" {
			h.Errorf("%s is %s (%v)", unit, state, err)
		}
	}
	for _, path := range []string{"/usr/bin/berth", "/run/docker/plugins/berth.sock", "/run/berth/admin.sock"} {
		if _, err := h.In("test", "-e", path); err == nil {
			h.Errorf("%s is left", path)
		}
	}
	h.must(h.reach(containers))
	h.dpkg("--install", "/root/debs/"+deb)
	if after := h.held(); !maps.Equal(before, after) {
		h.Errorf("installed again, it has %v; before it was removed %v", after, before)
	}
	h.settled(4)
}

// packagePurged checks that nothing is left but the group, as with all Debian packages.
func (h *Harness) packagePurged() {
	h.Helper()
	_, err := h.In("sh", "-c", "docker rm --force $(docker ps --quiet) && docker network rm "+lan)
	h.must(err)
	if said := h.dpkg("--purge", "berth"); strings.Contains(said, "these Docker networks") {
		h.Errorf("it names networks that are gone:\n%s", said)
	}
	h.leftNothing()
}

// leftNothing checks that a purged package has left no file and no unit.
func (h *Harness) leftNothing() {
	h.Helper()
	left, err := h.In("find", "/etc", "/lib", "/usr", "/run", "/var/lib", "-xdev", "(", "-path", "/var/lib/docker",
		"-o", "-path", "/usr/share/doc", ")", "-prune", "-o", "-name", "*berth*", "-print")
	if err != nil || left != "" {
		h.Errorf("purged, these are left: %s (%v)", left, err)
	}
	if failed, err := h.In("systemctl", "list-units", "--all", "--plain", "--no-legend", "berth*"); err != nil ||
		strings.Contains(failed, "loaded") {
		h.Errorf("systemd still has %s (%v)", failed, err)
	}
}

// The packages of both architectures contain a static program for their own. lintian accepts them, and two builds
// give the same bytes.
func TestPackages(t *testing.T) {
	h := &Harness{T: t}
	dir := filepath.Join(base, "packages")
	foreign := filepath.Join(base, "bin", "berth-arm64")
	h.must(lab.BuildFor("arm64", foreign, "test-1"))
	made := h.packages("v1.0.0", filepath.Join(dir, "1"), "amd64="+binary, "arm64="+foreign)
	again := h.packages("v1.0.0", filepath.Join(dir, "2"), "amd64="+binary)
	one, err := os.ReadFile(made[0])
	h.must(err)
	other, err := os.ReadFile(again[0])
	h.must(err)
	if !bytes.Equal(one, other) {
		t.Errorf("%s is not the same when it is made again", made[0])
	}
	for i, machine := range []elf.Machine{elf.EM_X86_64, elf.EM_AARCH64} {
		h.packageIsFor(made[i], machine)
	}
	ctx, cancel := context.WithTimeout(context.Background(), lab.Patient(3*time.Minute))
	defer cancel()
	said, err := exec.CommandContext(ctx, "lintian", "--allow-root", "--fail-on", "error,warning", made[0]).CombinedOutput()
	if err != nil {
		t.Errorf("lintian: %v\n%s", err, said)
	}
}

// packageIsFor checks the content of a package.
func (h *Harness) packageIsFor(deb string, machine elf.Machine) {
	h.Helper()
	tree := deb + ".tree"
	_, err := lab.Run(time.Minute, nil, "dpkg-deb", "--extract", deb, tree)
	h.must(err)
	program, err := elf.Open(filepath.Join(tree, "usr/bin/berth"))
	h.must(err)
	defer program.Close()
	libraries, err := program.ImportedLibraries()
	if err != nil || program.Machine != machine || len(libraries) > 0 {
		h.Errorf("%s: its program is for %s, and needs %v (%v)", deb, program.Machine, libraries, err)
	}
	arch, err := lab.Run(time.Minute, nil, "dpkg-deb", "--field", deb, "Architecture")
	want := map[elf.Machine]string{elf.EM_X86_64: "amd64", elf.EM_AARCH64: "arm64"}[machine]
	if err != nil || arch != want || !strings.HasSuffix(deb, "_"+want+".deb") {
		h.Errorf("%s is for %q (%v)", deb, arch, err)
	}
	for _, file := range []string{"lib/systemd/system/berth-edge.service", "etc/default/berth",
		"usr/share/man/man1/berth.1.gz", "usr/share/man/man1/berth-lease-ls.1.gz",
		"usr/share/bash-completion/completions/berth", "usr/share/zsh/vendor-completions/_berth",
		"usr/share/fish/vendor_completions.d/berth.fish", "usr/share/doc/berth/copyright",
		"usr/share/doc/berth/changelog.Debian.gz", "usr/share/doc/berth/modules.gz",
		"usr/share/doc/berth/docs/README.md"} {
		if info, err := os.Stat(filepath.Join(tree, file)); err != nil || info.Size() == 0 {
			h.Errorf("%s has no %s (%v)", deb, file, err)
		}
	}
	services, err := filepath.Glob(filepath.Join(tree, "lib/systemd/system/*.service"))
	h.must(err)
	for _, service := range services {
		text, err := os.ReadFile(service)
		h.must(err)
		if !strings.Contains(string(text), "\nExecStart=/usr/bin/berth ") {
			h.Errorf("%s does not start the package's program:\n%s", service, text)
		}
	}
	if names := slices.Sorted(slices.Values(services)); len(names) != 3 {
		h.Error(fmt.Errorf("the package has these services: %v", names))
	}
}
