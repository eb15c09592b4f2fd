package deploy

import (
	"bytes"
	"context"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/rogpeppe/go-internal/txtar"
)

var update = flag.Bool("update", false, "write what the overrides are into testdata")

// projects are the archives of testdata and how to read them. In each, `want` is the override.
var projects = []struct {
	name    string
	source  func(dir string) Source
	mapping Mapping
}{
	{name: "single"},
	{name: "dual"},
	{name: "named"},
	{name: "replicas"},
	{name: "external", mapping: Mapping{Networks: map[string]string{"lan": "dual"}}},
	{name: "adopted",
		mapping: Mapping{Adopted: map[string]string{"shop_default": "front", "shop_back": "dual", "lan": "two"},
			AdoptedBy: "berth", Merges: true}},
	{name: "adopted1", mapping: Mapping{Adopted: map[string]string{"shop_back": "dual"}, AdoptedBy: "berth"}},
	{name: "several", source: func(dir string) Source {
		return Source{Files: []string{filepath.Join(dir, "compose.yaml"), filepath.Join(dir, "more/more.yaml")},
			Project:  "other",
			EnvFiles: []string{filepath.Join(dir, "vars.env")}, Profiles: []string{"debug"},
			Scale: map[string]int{"debug": 2}}
	}},
}

func sourceOf(of func(string) Source, dir string) Source {
	if of == nil {
		return Source{Files: []string{filepath.Join(dir, "compose.yaml")}}
	}
	return of(dir)
}

// The overrides equal those in testdata. Written again over the same reservations they have the same bytes, also
// if the project finds the first one beside its files.
func TestOverride(t *testing.T) {
	for _, c := range projects {
		t.Run(c.name, func(t *testing.T) {
			dir, want := unpack(t, c.name)
			source, l := sourceOf(c.source, dir), newLedger()
			got := override(t, l, source, c.mapping)
			if *update {
				updateWant(t, c.name, got)
			} else if d := cmp.Diff(string(want), string(got)); d != "" {
				t.Errorf("the override is not the one in testdata (go test -update writes it):\n%s", d)
			}
			written := filepath.Join(dir, "berth.override.yaml")
			write(t, written, got)
			source.Files = append(source.Files, written)
			for range 3 {
				if again := override(t, l, source, c.mapping); !bytes.Equal(got, again) {
					t.Fatalf("written again it differs:\n%s", cmp.Diff(string(got), string(again)))
				}
			}
		})
	}
}

func updateWant(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name+".txtar")
	a, err := txtar.ParseFile(file)
	fine(t, err)
	if last := len(a.Files) - 1; a.Files[last].Name == "want" {
		a.Files = a.Files[:last]
	}
	a.Files = append(a.Files, txtar.File{Name: "want", Data: got})
	fine(t, os.WriteFile(file, txtar.Format(a), 0o600))
}

// Read after its project, an override changes only addresses, MACs, subnets and whether there is IPv6; of an
// adopted network also the driver and its options.
func TestOverrideAddsNothingElse(t *testing.T) {
	for _, c := range projects {
		t.Run(c.name, func(t *testing.T) {
			if c.mapping.Adopted != nil && !c.mapping.Merges {
				return // this one is for docker-compose 1.29, which reads files differently
			}
			dir, _ := unpack(t, c.name)
			source := sourceOf(c.source, dir)
			before := compose(t, source)
			written := filepath.Join(dir, "berth.override.yaml")
			write(t, written, override(t, newLedger(), source, c.mapping))
			source.Files = append(source.Files, written)
			after := compose(t, source)
			d := cmp.Diff(before, after, cmpopts.EquateEmpty(),
				cmpopts.IgnoreFields(types.Project{}, "ComposeFiles"),
				cmpopts.IgnoreFields(types.NetworkConfig{}, "EnableIPv6"),
				cmpopts.IgnoreFields(types.IPAMConfig{}, "Config"),
				cmpopts.IgnoreFields(types.ServiceNetworkConfig{}, "Ipv4Address", "Ipv6Address"),
				cmpopts.IgnoreFields(types.ContainerSpec{}, "MacAddress"),
				cmp.FilterPath(func(cmp.Path) bool { return c.mapping.Adopted != nil },
					cmpopts.IgnoreFields(types.IPAMConfig{}, "Driver", "Options")))
			if d != "" {
				t.Errorf("the override changes more than it should:\n%s", d)
			}
			checkSubnets(t, before, after)
		})
	}
}

// checkSubnets checks that the networks keep what the files said of their subnets.
func checkSubnets(t *testing.T, before, after *types.Project) {
	t.Helper()
	for key, n := range before.Networks {
		for _, was := range n.Ipam.Config {
			found := false
			for _, is := range after.Networks[key].Ipam.Config {
				found = found || is.Gateway == was.Gateway && is.IPRange == was.IPRange &&
					(was.Subnet == "" || is.Subnet == was.Subnet)
			}
			if !found {
				t.Errorf("networks.%s was said to have %+v, and has %+v", key, was, after.Networks[key].Ipam.Config)
			}
		}
	}
}

// compose reads files, overrides included, as Compose does.
func compose(t *testing.T, from Source) *types.Project {
	t.Helper()
	options, err := cli.NewProjectOptions(from.Files, cli.WithEnvFiles(from.EnvFiles...), cli.WithDotEnv,
		cli.WithProfiles(from.Profiles),
		cli.WithName(from.Project), cli.WithoutEnvironmentResolution)
	fine(t, err)
	p, err := options.LoadProject(context.Background())
	fine(t, err)
	for _, service := range p.Services {
		for key, says := range service.Networks {
			if says == nil {
				service.Networks[key] = &types.ServiceNetworkConfig{}
			}
		}
	}
	return p
}
