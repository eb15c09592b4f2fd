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

	"berth/test/lab"
)

// The edge runs in a container, from Dockerfile.edge and with the command of the page. It maps addresses on the host's
// network with two capabilities. Its mappings stay when it stops, and its --remove removes them.
func TestElasticContainer(t *testing.T) {
	t.Parallel()
	s := newSystemHost(t, 79)
	edgeImage(t, s.Engine)
	peer := outside(t, s.engine, 79)
	o := off{systemHost: s, peer: peer, from: callers(t, peer, elasticPeer), web: s.name()}
	s.berth("elastic", "range", "add", elasticAddress)
	s.berth("elastic", "allocate")
	s.berth("network", "modify", s.planned, "--elastic", "on")
	// the command of docs/elastic-edge.md, with another name and socket
	shown, err := lab.Shows("docs/elastic-edge.md", "## Run it")
	if err != nil || len(shown) != 2 {
		t.Fatalf("the page shows %q (%v)", shown, err)
	}
	edge := s.name()
	line := strings.Fields(strings.NewReplacer("--name berth-edge", "--name "+edge, "/run/berth:", s.daemon.Dir+":").
		Replace(lab.LinesOf(shown[1].Text)[0]))
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
	lab.Await(t, 5*time.Second, func() error {
		_, err := berth(s.Berth, "elastic", "associate", elasticAddress, o.web)
		return err
	})
	o.leads("its edge runs in a container")
	o.seenAs("its edge runs in a container", elasticAddress)
	s.docker("restart", "--time", "5", edge)
	o.leads("its edge was restarted")
	s.docker("stop", "--time", "5", edge)
	o.leads("its edge was stopped")
	o.seenAs("its edge was stopped", elasticAddress)
	// the same with --rm and --remove, without -d, --name and --restart and their values
	s.docker(append(append([]string{"run", "--rm"}, line[7:]...), "--remove")...)
	o.leadsNowhere("its edge was removed")
	o.seenAs("its edge was removed", elasticHost)
	s.berth("elastic", "disassociate", elasticAddress)
}

// off is a systemHost with a container that may have an elastic address.
type off struct {
	*systemHost
	peer string
	from <-chan string
	web  string
}

// starts runs a container that answers on a port.
func (o off) starts(name string) {
	o.Helper()
	o.docker("run", "--detach", "--name", name, "--network", o.net, imageName, "busybox", "nc", "-ll", "-p", "8000",
		"-e", "/bin/busybox")
}

// seenAs waits until the container's calls come from an address.
func (o off) seenAs(when, want string) {
	o.Helper()
	err := lab.Eventually(5*time.Second, func() error {
		o.docker("exec", o.web, "busybox", "nc", "-w", "2", elasticPeer, "7000")
		select {
		case got := <-o.from:
			if got != want {
				return fmt.Errorf("it is seen as %s, not as %s", got, want)
			}
			return nil
		case <-time.After(lab.Patient(time.Second)):
			return fmt.Errorf("it is not seen")
		}
	})
	if err != nil {
		o.Errorf("%s: %v", when, err)
	}
}

func (o off) leads(when string) {
	o.Helper()
	if err := lab.Eventually(10*time.Second, func() error { return reaches(o.peer) }); err != nil {
		o.Errorf("%s it does not lead there: %v", when, err)
	}
}

func (o off) leadsNowhere(when string) {
	o.Helper()
	if err := lab.Eventually(10*time.Second, func() error {
		if reaches(o.peer) == nil {
			return fmt.Errorf("somebody answers")
		}
		return nil
	}); err != nil {
		o.Errorf("%s: %v", when, err)
	}
}

const (
	edgeImageName = mark + "edge"
	edgeBaseName  = mark + "edge-base"
)

// edgeImage builds Dockerfile.edge in an engine, from a base with this machine's own nft and iptables: there is no
// registry with Debian's.
func edgeImage(t *testing.T, e Engine) {
	t.Helper()
	base, err := edgeBase()
	lab.Must(t, err)
	root, err := lab.Root()
	lab.Must(t, err)
	dir := t.TempDir()
	program, err := os.ReadFile(binary)
	recipe, readErr := os.ReadFile(filepath.Join(root, "Dockerfile.edge"))
	lab.Must(t, err, readErr, os.Mkdir(filepath.Join(dir, "bin"), 0o755),
		os.WriteFile(filepath.Join(dir, "bin", "berth"), program, 0o755),
		os.WriteFile(filepath.Join(dir, "Dockerfile"), recipe, 0o644))
	ctx, cancel := context.WithTimeout(context.Background(), lab.Patient(time.Minute))
	defer cancel()
	socket := "unix://" + e.Socket
	_, err = lab.Run(time.Minute, bytes.NewReader(base), "docker", "--host", socket, "import", "-", edgeBaseName)
	if err != nil {
		t.Fatal(err)
	}
	build := exec.CommandContext(ctx, "docker", "--host", socket, "build", "--network", "none", "--build-arg",
		"BASE="+edgeBaseName, "--tag", edgeImageName, dir)
	build.Env = append(os.Environ(), "DOCKER_BUILDKIT=0")
	if _, err := lab.Output(build); err != nil {
		t.Fatal(err)
	}
}

// edgeBase returns a file system with a shell, nft, iptables and their libraries.
func edgeBase() ([]byte, error) {
	busybox, err := lab.Tool("busybox")
	if err != nil {
		return nil, err
	}
	files := map[string]string{"/bin/busybox": busybox} // source files by their paths in the image
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

// withLibraries adds a program and the libraries that ldd lists for it.
func withLibraries(files map[string]string, at, program string) error {
	files[at] = program
	out, err := lab.Run(time.Minute, nil, "ldd", program)
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
