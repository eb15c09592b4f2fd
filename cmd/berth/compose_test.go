package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

// In each Compose example, a network with IPAM options has its subnet too, or Compose up to 5.5 drops them.
func TestComposeExamplesNameTheSubnet(t *testing.T) {
	pages, err := filepath.Glob("../../docs/*.md")
	fine(t, err)
	found := 0
	for _, page := range append(pages, "../../README.md") {
		text, err := os.ReadFile(page)
		fine(t, err)
		for _, block := range strings.Split(string(text), "\n```yaml\n")[1:] {
			block, _, _ = strings.Cut(block, "\n```")
			found += checkExample(t, page, block)
		}
	}
	if found == 0 {
		t.Error("no example has a network with options: the test does not see them")
	}
}

// checkExample checks the networks of a Compose file, and counts those with options.
func checkExample(t *testing.T, page, text string) (count int) {
	t.Helper()
	var file struct {
		Networks map[string]struct {
			IPAM struct {
				Options map[string]string
				Config  []struct{ Subnet string }
			}
		}
	}
	if err := yaml.Unmarshal([]byte(text), &file); err != nil {
		return 0 // another kind of document
	}
	for name, n := range file.Networks {
		if len(n.IPAM.Options) == 0 {
			continue
		}
		count++
		if len(n.IPAM.Config) == 0 || n.IPAM.Config[0].Subnet == "" {
			t.Errorf("%s: the network %s has options, and no config with its subnet", page, name)
		}
	}
	return count
}
