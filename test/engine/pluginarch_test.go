//go:build engine

package engine

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"debug/elf"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"berth/test/checkout"
)

// The managed plugin is made and pushed for both architectures, a tag each, as `make plugins` and `make push-plugins`
// do: what is in the registry under each tag is a program for that architecture, and the tag for this machine runs.
func TestPluginArchitectures(t *testing.T) {
	repository := prefix + "arch"
	r := registry(t)
	for arch, machine := range map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64} {
		program := binary
		if arch != runtime.GOARCH {
			program = filepath.Join(base, "bin", "berth-"+arch)
			if err := checkout.BuildFor(arch, program, "test-"+arch); err != nil {
				t.Fatal(err)
			}
		}
		if err := publishPlugin(machineEngine, r.Addr+"/"+repository+":1.0-"+arch, program); err != nil {
			t.Fatal(err)
		}
		config, got := r.pushedPlugin(t, repository, "1.0-"+arch)
		if got != machine {
			t.Errorf("under the tag of %s is a program for %s", arch, got)
		}
		if len(config.Entrypoint) < 2 || config.Entrypoint[0] != "/berth" || config.PropagatedMount != "/var/lib/berth" {
			t.Errorf("the plugin for %s has the config %+v", arch, config)
		}
	}
	t.Parallel()
	alias := prefix + "arch:latest"
	p, err := installPlugin(machineEngine, r.Addr+"/"+repository+":1.0-"+runtime.GOARCH, alias, binary)
	if err != nil {
		t.Fatal(err)
	}
	p.removedAfter(t)
	if v, err := berth(p, "version", "--format", "{{.Daemon.Version}}"); err != nil || v != "test-1" {
		t.Errorf("the plugin for %s is of version %q (%v)", runtime.GOARCH, v, err)
	}
}

// pluginConfig is what the test reads of a plugin's config in a registry. It has no field for an architecture: so a tag
// each.
type pluginConfig struct {
	Entrypoint      []string
	PropagatedMount string
}

// pushedPlugin is a plugin's config as it lies in the registry, and the machine that its program is for.
func (r *Registry) pushedPlugin(t *testing.T, repository, tag string) (config pluginConfig, machine elf.Machine) {
	t.Helper()
	var manifest struct {
		Config struct{ MediaType, Digest string }
		Layers []struct{ Digest string }
	}
	decode(t, r.get(t, repository+"/manifests/"+tag), &manifest)
	if manifest.Config.MediaType != "application/vnd.docker.plugin.v1+json" || len(manifest.Layers) != 1 {
		t.Fatalf("%s:%s is no plugin: %+v", repository, tag, manifest)
	}
	decode(t, r.get(t, repository+"/blobs/"+manifest.Config.Digest), &config)
	layer, err := gzip.NewReader(bytes.NewReader(r.get(t, repository+"/blobs/"+manifest.Layers[0].Digest)))
	if err != nil {
		t.Fatal(err)
	}
	for files := tar.NewReader(layer); ; {
		file, err := files.Next()
		if err != nil {
			t.Fatal(fmt.Errorf("%s:%s has no program: %w", repository, tag, err))
		}
		if strings.Trim(file.Name, "./") != "berth" {
			continue
		}
		text, err := io.ReadAll(files)
		if err != nil {
			t.Fatal(err)
		}
		program, err := elf.NewFile(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		return config, program.Machine
	}
}

// get is what the registry has below a path.
func (r *Registry) get(t *testing.T, path string) []byte {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+r.Addr+"/v2/"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "application/vnd.docker.distribution.manifest.v2+json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s %s (%v)", path, resp.Status, body, err)
	}
	return body
}

func decode(t *testing.T, text []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}
