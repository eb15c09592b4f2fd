//go:build engine

package engine

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"berth/test/lab"
)

// composeCommands returns the commands of the supported generations of Compose.
func composeCommands(t *testing.T) map[string][]string {
	t.Helper()
	newest, err := filepath.Abs("../../build/tools/compose-v5.5.0")
	lab.Must(t, err)
	if _, err := exec.LookPath(newest); err != nil {
		t.Fatalf("%v; scripts/needs compose makes it", err)
	}
	return map[string][]string{older: {"docker-compose"}, newer: {newest}}
}

// quickest returns the Compose for tests that work with any. Its containers are named as by the older one. Under
// -short it is the newer one, which takes a tenth of the time.
func quickest(t *testing.T) []string {
	t.Helper()
	if testing.Short() {
		return append(composeCommands(t)[newer], "--compatibility")
	}
	return oldest(t)
}

// oldest returns the oldest Compose that works with the engine. Its containers are named as by docker-compose 1.29. It
// sets the MACs of containers in a way that the engine knows: API 1.41 has no MAC of an endpoint.
func oldest(t *testing.T) []string {
	t.Helper()
	if !compose1.there() {
		return append(composeCommands(t)[newer], "--compatibility")
	}
	return composeCommands(t)[older]
}

// newer is the generation of Compose that most projects have; older is the one before it.
const newer, older = "5", "1.29"

// eachGeneration runs a scenario with both generations of Compose, each with its own Berth and number: the first one
// and the next. Under -short it runs only the given one: mostly the newer, which is ten times as quick. Engines from 26
// on have only the newer.
func eachGeneration(t *testing.T, short string, first int, run func(h *Harness, command []string)) {
	t.Parallel()
	for name, command := range composeCommands(t) {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && short != name && compose1.there() {
				t.Skip("not under -short")
			}
			if name == older {
				only(t, compose1)
			}
			if !testing.Short() {
				t.Parallel()
			}
			number := map[string]int{older: first, newer: first + 1}[name]
			run(enter(t, machineEngine, daemon(t, fmt.Sprintf("g%d", number), pluginDir), number), command)
		})
	}
}

// ids returns the ids of the project's containers, sorted.
func (p *project) ids() []string {
	p.Helper()
	all := strings.Fields(p.docker("ps", "--all", "--no-trunc", "--filter", "label=com.docker.compose.project="+p.name,
		"--format", "{{.ID}}"))
	slices.Sort(all)
	return all
}

// containerOf returns the container id of a replica.
func (p *project) containerOf(service string, number int) string {
	p.Helper()
	return p.docker("ps", "--all", "--no-trunc", "--filter", "label=com.docker.compose.project="+p.name, "--filter",
		"label=com.docker.compose.service="+service, "--filter",
		fmt.Sprintf("label=com.docker.compose.container-number=%d", number), "--format", "{{.ID}}")
}
