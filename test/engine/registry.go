//go:build engine

package engine

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"berth/test/lab"
)

// Registry is a registry of images and plugins on 127.0.0.1. The engine trusts that address without TLS.
type Registry struct {
	Addr    string // host:port, with which the names in it begin
	process *Process
}

// startRegistry runs Debian's docker-registry on a free port, with its data in the directory name under base.
func startRegistry(name string) (*Registry, error) {
	program, err := lab.Tool("docker-registry")
	if err != nil {
		return nil, err
	}
	addr, err := lab.FreeAddress()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(base, name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	config := filepath.Join(dir, "config.yml")
	text := fmt.Sprintf("version: 0.1\nstorage:\n  filesystem:\n    rootdirectory: %s/data\nhttp:\n  addr: %s\n", dir,
		addr)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return nil, err
	}
	p, err := startProcess(name, nil, program, "serve", config)
	if err != nil {
		return nil, err
	}
	return &Registry{Addr: addr, process: p}, lab.Eventually(20*time.Second, func() error {
		if p.ended() {
			return fmt.Errorf("docker-registry ended:\n%s", p.Log())
		}
		resp, err := http.Get("http://" + addr + "/v2/")
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("the registry answers %s", resp.Status)
		}
		return nil
	})
}

// Stop ends the registry.
func (r *Registry) Stop() error { return r.process.Signal(syscall.SIGTERM, 10*time.Second) }
