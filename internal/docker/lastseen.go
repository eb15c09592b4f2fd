package docker

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"berth/internal/atomicfile"
	"berth/internal/ipam"
)

// lastSeen is what the last daemon saw of the engine: its identity, and which containers had which addresses. It is in
// a file beside the state and not in it, so a restored state does not replace it.
type lastSeen struct {
	path     string // empty: there is no file
	boot     string // of the host's kernel: after a reboot nothing runs
	text     []byte // of the file
	engine   string // the id of the engine of the records; empty: none was seen yet
	root     string // of its data
	networks []*ipam.EngineNetwork
	running  running
}

// seenFile is the file's content. View has only the networks, and the containers that had addresses.
type seenFile struct {
	Boot string          `json:"boot"`
	View ipam.EngineView `json:"view"`
}

// openLastSeen reads the file. Without one, nothing is known.
func openLastSeen(path, boot string) (lastSeen, error) {
	seen := lastSeen{path: path, boot: boot, running: running{}}
	if path == "" {
		return seen, nil
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return seen, nil
	}
	var file seenFile
	if err == nil {
		err = json.Unmarshal(text, &file)
	}
	if err != nil {
		return seen, fmt.Errorf("cannot read which containers the last daemon saw, from %s: %w", path, err)
	}
	seen.text, seen.engine, seen.root = text, file.View.Engine, file.View.Root
	if file.Boot != boot {
		return seen, nil
	}
	for i := range file.View.Networks {
		seen.networks = append(seen.networks, &file.View.Networks[i])
	}
	for _, c := range file.View.Containers {
		for _, ep := range c.Endpoints {
			for _, addr := range ep.Addresses {
				h := seen.running.of(ep.Network, addr)
				h.all = append(h.all, ipam.Container{ID: c.ID, Name: c.Name})
			}
		}
	}
	return seen, nil
}

// knows reports whether a view may be of the engine of the records. Its data decide, because they are its containers.
// The id of the engine decides only if the data are unknown: older engines keep it in /etc/docker, where it may change.
func (s *lastSeen) knows(view *ipam.EngineView) bool {
	if s.root != "" && view.Root != "" {
		return s.root == view.Root
	}
	return s.engine == "" || view.Engine == "" || s.engine == view.Engine
}

// keep writes a view to the file if it shows anything new.
func (s *lastSeen) keep(view *ipam.EngineView) error {
	if view.Engine != "" {
		s.engine, s.root = view.Engine, view.Root
	}
	if s.path == "" {
		return nil
	}
	file := seenFile{Boot: s.boot, View: ipam.EngineView{Host: view.Host, Engine: s.engine, Root: s.root}}
	for _, n := range view.Networks {
		file.View.Networks = append(file.View.Networks, ipam.EngineNetwork{ID: n.ID, Name: n.Name, Swarm: n.Swarm,
			Options: n.Options, Subnets: n.Subnets})
	}
	for _, c := range view.Containers {
		kept := ipam.EngineContainer{ID: c.ID, Name: c.Name}
		for _, ep := range c.Endpoints {
			if len(ep.Addresses) > 0 {
				kept.Endpoints = append(kept.Endpoints, ep)
			}
		}
		if len(kept.Endpoints) > 0 {
			file.View.Containers = append(file.View.Containers, kept)
		}
	}
	text, err := json.Marshal(&file)
	if err != nil || bytes.Equal(text, s.text) {
		return err
	}
	if err := atomicfile.Write(s.path, text); err != nil {
		return err
	}
	s.text = text
	return nil
}
