package rollout

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"berth/internal/deploy/scene"
)

// fill gives a container a new volume wherever it asks for one without a name.
func (e *small) fill(b *body) {
	for i := range b.Mounts {
		if b.Mounts[i].Source == "" {
			b.Mounts[i].Source = fmt.Sprintf("%064x", 0xfeed0000+e.last)
		}
	}
}

// unnamed returns a container's volumes without names, as the engine shows them.
func (b *body) unnamed() (all []map[string]string) {
	for _, m := range b.Mounts {
		if (&scene.Volume{Name: m.Source}).Anonymous() {
			all = append(all, map[string]string{"Type": "volume", "Name": m.Source, "Source": "/vol/" + m.Source,
				"Destination": m.Target})
		}
	}
	return all
}

// kept returns the volumes without names, by the titles of their containers.
func (e *small) kept() map[string]string {
	e.mu.Lock()
	defer e.mu.Unlock()
	all := map[string]string{}
	for _, b := range e.all {
		for _, m := range b.unnamed() {
			all[b.title()] += m["Name"] + ":" + m["Destination"] + " "
		}
	}
	return all
}

// TestRunUnnamed: a container that has a volume without a name is stopped and set aside until its successor has
// the volume.
func TestRunUnnamed(t *testing.T) {
	s := newShop(t)
	s.compose.unnamed = []string{"db"}
	s.smaller()
	s.must(s.deploys())
	before := s.small.kept()
	s.hashes["db"] = "d2"
	s.small.takes()
	s.must(s.deploys())
	s.wants("exchanged", "stop db/1, rename db/1, make db/1, remove db/1+, start db/1")
	if now := s.small.kept(); !maps.Equal(before, now) || len(now) != 1 || s.plan().Changes() {
		t.Errorf("there are %v, and were %v", now, before)
	}
}

// TestRunUnnamedKilled: if a deploy is killed after any of its steps, even while it recreates a named volume, the
// next one finds the volumes without names.
func TestRunUnnamedKilled(t *testing.T) {
	for what, change := range map[string]func(s *shop){
		"changed": func(s *shop) { s.hashes["web"], s.hashes["db"] = "w2", "d2" },
		"copied":  func(s *shop) { s.declares("shop_data", map[string]string{"o": "bind"}) },
		"called otherwise": func(s *shop) {
			s.hashes["db"] = "d2"
			s.declares("shop_new", nil)
		},
	} {
		var before map[string]string
		killed(t, func() *shop {
			s := shopWithVolume(t, true, "db", "web")
			before = s.small.kept()
			change(s)
			return s
		}, func(s *shop, n int) {
			s.repeats()
			if now := s.small.kept(); !maps.Equal(before, now) || len(now) != 2 || s.plan().Changes() {
				t.Errorf("%s, killed after %d: there are %v of %s, and were %v", what, n, now, s.small.has(), before)
			}
			if asked := strings.Join(s.small.takes(), " "); strings.Contains(asked, "TWICE") {
				t.Errorf("%s, killed after %d: %s", what, n, asked)
			}
		})
	}
}
