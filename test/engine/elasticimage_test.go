//go:build engine

package engine

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"berth/test/checkout"
	"berth/test/ground"
)

// The edge in a container, as Dockerfile.edge builds it and says that it is run: it maps on the host's network by two
// capabilities, what it has mapped outlives it, and its --remove takes that away.
func TestElasticContainer(t *testing.T) {
	t.Parallel()
	s := newSystemTown(t, 79)
	edgeImage(t, s.Engine)
	peer := outside(t, s.engine, 79)
	o := off{systemTown: s, peer: peer, from: callers(t, peer, elasticPeer), web: s.name()}
	s.berth("elastic", "range", "add", elasticAddress)
	s.berth("elastic", "allocate")
	s.berth("network", "modify", s.planned, "--elastic", "on")
	// as docs/elastic-edge.md says it, under a name and on a socket of its own
	shown, err := checkout.Shows("docs/elastic-edge.md", "## Run it")
	if err != nil || len(shown) != 2 {
		t.Fatalf("the page shows %q (%v)", shown, err)
	}
	edge := s.name()
	line := strings.Fields(strings.NewReplacer("--name berth-edge", "--name "+edge, "/run/berth:", s.daemon.Dir+":").
		Replace(checkout.LinesOf(shown[1].Text)[0]))
	if line[len(line)-1] != "berth-edge" || line[2] != "-d" {
		t.Fatalf("the page has the line %q", line)
	}
	line[len(line)-1] = edgeImageName
	s.docker(line[1:]...)
	t.Cleanup(func() {
		if t.Failed() {
			out, err := s.Engine.Docker("logs", edge)
			t.Logf("the edge's log: %s %v", out, err)
		}
	})
	o.starts(o.web)
	if err := ground.Eventually(5*time.Second, func() error {
		_, err := berth(s.Berth, "elastic", "associate", elasticAddress, o.web)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	o.leads("its edge runs in a container")
	o.seenAs("its edge runs in a container", elasticAddress)
	s.docker("restart", "--time", "5", edge)
	o.leads("its edge was restarted")
	s.docker("stop", "--time", "5", edge)
	o.leads("its edge was stopped")
	o.seenAs("its edge was stopped", elasticAddress)
	// the same with --rm and --remove; it has the options behind -d, --name and --restart with what they are
	s.docker(append(append([]string{"run", "--rm"}, line[7:]...), "--remove")...)
	o.leadsNowhere("its edge was removed")
	o.seenAs("its edge was removed", elasticHost)
	s.berth("elastic", "disassociate", elasticAddress)
}

const (
	edgeImageName = mark + "edge"
	edgeBaseName  = mark + "edge-base"
)

// edgeImage builds Dockerfile.edge in an engine, from a base with this machine's own nft and iptables: there is no
// registry to have Debian's from.
func edgeImage(t *testing.T, e Engine) {
	t.Helper()
	base, err := edgeBase()
	if err != nil {
		t.Fatal(err)
	}
	root, err := checkout.Root()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	program, err := os.ReadFile(binary)
	recipe, readErr := os.ReadFile(filepath.Join(root, "Dockerfile.edge"))
	if err := errors.Join(err, readErr, os.Mkdir(filepath.Join(dir, "bin"), 0o755),
		os.WriteFile(filepath.Join(dir, "bin", "berth"), program, 0o755),
		os.WriteFile(filepath.Join(dir, "Dockerfile"), recipe, 0o644)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), ground.Patient(time.Minute))
	defer cancel()
	socket := "unix://" + e.Socket
	if _, err := run(ctx, bytes.NewReader(base), "docker", "--host", socket, "import", "-", edgeBaseName); err != nil {
		t.Fatal(err)
	}
	build := exec.CommandContext(ctx, "docker", "--host", socket, "build", "--network", "none", "--build-arg",
		"BASE="+edgeBaseName, "--tag", edgeImageName, dir)
	build.Env = append(os.Environ(), "DOCKER_BUILDKIT=0")
	if _, err := ground.Output(build); err != nil {
		t.Fatal(err)
	}
}

// edgeBase is a file system with a shell, nft, iptables and what those load.
func edgeBase() ([]byte, error) {
	busybox, err := busyboxPath()
	if err != nil {
		return nil, err
	}
	files := map[string]string{"/bin/busybox": busybox} // where they come from, by where they are to be
	for _, name := range []string{"nft", "iptables", "ip6tables"} {
		path, err := exec.LookPath(name)
		if err == nil {
			err = withLibraries(files, "/usr/sbin/"+name, path)
		}
		if err != nil {
			return nil, err
		}
	}
	extensions, err := filepath.Glob("/usr/lib/*/xtables/libx*.so")
	if err != nil || len(extensions) == 0 {
		return nil, fmt.Errorf("this machine's iptables has no extensions: %w", err)
	}
	for _, path := range extensions {
		files[path] = path
	}
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for _, link := range []string{"sh", "rm"} {
		err = errors.Join(err, w.WriteHeader(&tar.Header{Name: "bin/" + link, Typeflag: tar.TypeSymlink,
			Linkname: "busybox", Mode: 0o777}))
	}
	for at, from := range files {
		content, readErr := os.ReadFile(from)
		err = errors.Join(err, readErr, w.WriteHeader(&tar.Header{Name: strings.TrimPrefix(at, "/"),
			Typeflag: tar.TypeReg, Mode: int64(fs.FileMode(0o755)), Size: int64(len(content))}))
		if err == nil {
			_, err = w.Write(content)
		}
	}
	return buf.Bytes(), errors.Join(err, w.Close())
}

// withLibraries adds a program, and what ldd says that it loads.
func withLibraries(files map[string]string, at, program string) error {
	files[at] = program
	out, err := run(context.Background(), nil, "ldd", program)
	if err != nil {
		return err
	}
	for line := range strings.Lines(out) {
		for word := range strings.FieldsSeq(line) {
			if strings.HasPrefix(word, "/") {
				files[word] = word
				break
			}
		}
	}
	return nil
}
