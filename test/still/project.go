package still

import (
	"fmt"
	"strings"
)

// Project is a Compose project of several services with some replicas each, on one network.
type Project struct {
	Services, Replicas int
}

// File is its Compose file. The planned network is front, with the subnet 10.8.0.0/16.
func (p Project) File() string {
	var b strings.Builder
	b.WriteString("services:\n")
	for s := range p.Services {
		fmt.Fprintf(&b, "  s%d:\n    image: x\n    scale: %d\n    networks: [front]\n", s, p.Replicas)
		if s > 0 {
			fmt.Fprintf(&b, "    depends_on: [s%d]\n", s/2)
		}
	}
	b.WriteString("networks:\n  front: {ipam: {driver: berth, options: {network: front}, config: [{subnet: " +
		"10.8.0.0/16}]}}\n")
	return b.String()
}

// Hashes are the hashes of its services.
func (p Project) Hashes() map[string]string {
	all := map[string]string{}
	for s := range p.Services {
		all[fmt.Sprint("s", s)] = fmt.Sprint("h", s)
	}
	return all
}

// Run makes the engine run the project with arbitrary addresses.
func (p Project) Run(e *Engine, project string) {
	e.Images = map[string]string{"x": "sha256:x"}
	e.Containers = nil
	for s := range p.Services {
		for n := range p.Replicas {
			at := s*p.Replicas + n
			name := fmt.Sprintf("%s-s%d-%d", project, s, n+1)
			e.Containers = append(e.Containers, Container{ID: name + "-id", Name: name, Project: project,
				Service: fmt.Sprint("s", s), Number: n + 1, Hash: fmt.Sprint("h", s), ImageID: "sha256:x", State: "running",
				On: []Endpoint{{Network: project + "_front", Address: fmt.Sprintf("10.8.%d.%d", 1+at/200, 10+at%200)}}})
		}
	}
}
