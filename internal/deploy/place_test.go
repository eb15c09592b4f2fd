package deploy

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// An error from the reader of Compose files names the place that it means (BD-2).
func TestRefusedHasPlace(t *testing.T) {
	for what, c := range map[string]struct {
		text string
		line int
	}{
		"a key that is none":          {"services:\n  web:\n    image: x\n    imagee: y\n", 4},
		"a value that is none":        {"services:\n  web:\n    image: x\n    ports:\n      - '80'\n      - {a: b}\n", 6},
		"what is not there":           {"services:\n  db: {image: x}\n  web:\n    image: x\n    depends_on: [cache]\n", 3},
		"a network that is not there": {"services:\n  db: {image: x}\n  web:\n    image: x\n    networks: [back]\n", 3},
		"a network's key":             {"services:\n  db: {image: x}\nnetworks:\n  front:\n    ipan: {}\n", 5},
	} {
		t.Run(what, func(t *testing.T) {
			source := file(t, c.text)
			_, err := Load(context.Background(), source)
			if want := fmt.Sprintf("%s:%d: ", source.Files[0], c.line); err == nil ||
				!strings.HasPrefix(err.Error(), want) {
				t.Errorf("got %v, want %s", err, want)
			}
		})
	}
}

// The place of a path is in the last file that has it, or else in the file that has the most of it. An alias
// counts. A path that no file spells out has no place.
func TestPlace(t *testing.T) {
	source := file(t, `
services:
  web: &web
    image: x
    networks: {front: {ipv4_address: 10.8.0.9}}
  db: *web
`+onFront)
	more := filepath.Join(filepath.Dir(source.Files[0]), "more.yaml")
	write(t, more, []byte("services:\n\n  web: {networks: {front: {ipv4_address: 10.8.0.8}}}\n"))
	source.Files = append(source.Files, more)
	p := load(t, source)
	for _, c := range []struct {
		at   path
		want string
	}{
		{path{"services", "web", "networks", "front", "ipv4_address"}, more + ":3"},
		{path{"services", "web", "image"}, source.Files[0] + ":4"},
		{path{"services", "db", "networks", "front", "ipv4_address"}, source.Files[0] + ":5"},
		{path{"services", "web", "x-berth", "update"}, more + ":3"},
		{path{"services", "cache"}, ":0"},
	} {
		file, line := p.place(c.at)
		if got := fmt.Sprintf("%s:%d", file, line); got != c.want {
			t.Errorf("%s is at %s, want %s", c.at, got, c.want)
		}
	}
	if got := (path{"services", "web", "x-berth", "addresses", "1"}).String(); got != "services.web.x-berth.addresses[1]" {
		t.Errorf("a path reads %s", got)
	}
}

// An error about what is in an included or extended file names that file.
func TestPlaceReferred(t *testing.T) {
	const front = "networks: {front: {ipam: {driver: berth, options: {network: front}}}}\n"
	for _, c := range []struct {
		name  string
		files map[string]string
		want  []string
	}{
		{"an address twice, in included services", map[string]string{
			"compose.yaml": "include: [sub/one.yaml]\n" + front,
			"sub/one.yaml": "services:\n  a: {extends: {file: base.yaml, service: b}}\n  b:\n    extends: {file: base.yaml, " +
				"service: b}\n" + front,
			"sub/base.yaml": "services: {b: {image: x, networks: {front: {ipv4_address: 10.8.0.9}}}}\n"},
			[]string{"sub/base.yaml:1: ", "to services.a at ", "sub/one.yaml:2; only one"}},
		{"an address twice, of an included and an own service", map[string]string{
			"compose.yaml": "include:\n- path: [more.yaml, over.yaml]\nservices:\n  z: {image: x, networks: {front: " +
				"{ipv4_address: 10.8.0.9}}}\n",
			"more.yaml": "services: {a: {image: x, networks: [front]}}\n" + front,
			"over.yaml": "services:\n  a:\n    networks:\n      front:\n        ipv4_address: 10.8.0.9\n"},
			[]string{"compose.yaml:4: ", "to services.a at ", "over.yaml:5; only one"}},
		{"an address twice, in a file that a variable names", map[string]string{
			"compose.yaml": "include: ['${NOT_SET:-sub}/one.yaml']\n",
			"sub/one.yaml": "services:\n  a: {image: x, networks: {front: {ipv4_address: 10.8.0.9}}}\n  b: {image: x, " +
				"networks: {front: {ipv4_address: 10.8.0.9}}}\n" + front},
			[]string{"and to services.a; only one"}},
		{"an unknown key", map[string]string{
			"compose.yaml": "include: [{path: one.yaml}]\n",
			"one.yaml":     "services:\n  a:\n    imagee: x\n"},
			[]string{"one.yaml:3: "}},
		{"a key of an extended file that includes itself", map[string]string{
			"compose.yaml": "services:\n  a:\n    extends: {file: one.yaml, service: b}\n    mac_address: nonsense\n" +
				"    networks: [front]\n" + front,
			"one.yaml": "include: [one.yaml]\nservices:\n  b: {image: x}\n"},
			[]string{"compose.yaml:4: services.a.mac_address is "}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			for name, text := range c.files {
				write(t, filepath.Join(dir, "shop", name), []byte(text))
			}
			p, err := Load(context.Background(), Source{Files: []string{filepath.Join(dir, "shop", "compose.yaml")}})
			if err == nil {
				_, err = p.Plan(Mapping{}, planned())
			}
			if err == nil || strings.Contains(err.Error(), ":0;") {
				t.Fatalf("got %v", err)
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got %v, want %s", err, want)
				}
			}
		})
	}
}

// Joined problems are reported once each, those with a place first, in file order.
func TestJoin(t *testing.T) {
	at := func(file string, line int) error { return &problem{file, line, errors.New("it is wrong")} }
	loose := errors.New("the engine does not answer")
	all := each(Join(nil, loose, errors.Join(at("b", 1), at("a", 10), errors.Join(at("a", 9), loose)), at("a", 10)))
	var got []string
	for _, one := range all {
		got = append(got, one.Error())
	}
	want := "a:9: it is wrong, a:10: it is wrong, b:1: it is wrong, the engine does not answer"
	if strings.Join(got, ", ") != want {
		t.Errorf("got %s", strings.Join(got, ", "))
	}
	if Join(nil, nil) != nil {
		t.Error("nothing is wrong, and it is an error")
	}
}
