package rollout

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"berth/internal/deploy"
	"berth/internal/ipam"
)

// recorded returns the recorded orphans, by name.
func (s *shop) recorded() (all []ipam.Orphan) {
	for _, name := range slices.Sorted(maps.Keys(s.orphans)) {
		all = append(all, s.orphans[name])
	}
	return all
}

// edit records orphans, unless the deploy was killed.
func (s *shop) edit(_ context.Context, e ipam.Edit) error {
	s.small.mu.Lock()
	defer s.small.mu.Unlock()
	if s.small.left == 0 {
		return errors.New("the deploy was killed")
	}
	s.small.left--
	if s.orphans == nil {
		s.orphans = map[string]ipam.Orphan{}
	}
	switch e := e.(type) {
	case *ipam.KeepOrphan:
		s.orphans[e.Volume] = ipam.Orphan{Volume: e.Volume, Project: e.Project, Service: e.Service, Of: e.Of,
			Stage: e.Stage, Foreign: e.Foreign}
	case *ipam.RemoveOrphan:
		delete(s.orphans, e.Volume)
	}
	return nil
}

// declares lets the files describe a volume of the database and of web.
func (s *shop) declares(name string, options map[string]string) {
	s.Helper()
	s.compose.volume = &declared{Name: name, DriverOpts: options, Labels: map[string]string{
		"com.docker.compose.project": "shop", "com.docker.compose.volume": "data"}}
	s.volumes = []deploy.Volume{{Key: "data", Name: name, Options: options, Services: []string{"db", "web"}}}
	for _, name := range []string{"db", "web"} {
		s.service(name).Mounts = []deploy.Mount{{Key: "data", Volume: s.volumes[0].Name, Target: "/data"}}
	}
}

// holds lists the engine's volumes with their content and their records.
func (s *shop) holds() string {
	s.small.mu.Lock()
	defer s.small.mu.Unlock()
	var all []string
	for _, name := range slices.Sorted(maps.Keys(s.small.disks)) {
		d := s.small.disks[name]
		text := fmt.Sprint(name, d.Options["o"], " ", d.files)
		if o, is := s.orphans[name]; is {
			text += fmt.Sprintf(" orphan%s", o.Stage)
		}
		all = append(all, text)
	}
	return strings.Join(all, ", ")
}

// smaller reduces the project to the database and one replica of web.
func (s *shop) smaller() {
	db, web := s.service("db"), s.service("web")
	web.Needs, web.Instances = nil, web.Instances[:1]
	s.services = []deploy.Service{*db, *web}
}

// shopWithVolume returns a deployed shop with a volume that has content. The unnamed services have another volume
// without a name.
func shopWithVolume(t *testing.T, smaller bool, unnamed ...string) *shop {
	t.Helper()
	s := newShop(t)
	s.compose.unnamed = unnamed
	if smaller {
		s.smaller()
	}
	s.declares("shop_data", nil)
	s.must(s.deploys())
	s.small.disks["shop_data"].files = map[string]string{"a": "1234567890", "b": "bb"}
	s.small.takes()
	return s
}

const had = "map[a:1234567890 b:bb]"

// TestRunVolumes: a volume whose options change is recreated with its content while no container uses it. If its
// name changes, the new volume gets the content. A volume that no service uses any more is an orphan, until one
// does (BD-5, BD-8).
func TestRunVolumes(t *testing.T) {
	s := shopWithVolume(t, false)
	wants := func(what, want string) {
		t.Helper()
		s.must(s.deploys())
		if got := s.holds(); got != want || s.plan().Changes() {
			t.Errorf("%s: there are %s, and there is to be done: %v; want %s", what, got, s.plan().Changes(), want)
		}
		if got := s.small.has(); got != allRun {
			t.Errorf("%s: there are %s", what, got)
		}
	}
	s.declares("shop_data", map[string]string{"o": "bind"})
	wants("options", "shop_databind "+had+", shop_data-orphan-1 "+had+" orphan")
	s.declares("shop_new", nil)
	wants("name", "shop_databind "+had+" orphan, shop_data-orphan-1 "+had+" orphan, shop_new "+had)
	s.declares("shop_data", map[string]string{"o": "bind"})
	wants("the name of before", "shop_databind "+had+", shop_data-orphan-1 "+had+" orphan, shop_new "+had+" orphan")
	s.declares("shop_data", map[string]string{"type": "tmpfs"})
	wants("what keeps nothing", "shop_data map[], shop_data-orphan-1 "+had+" orphan, shop_data-orphan-2 "+had+
		" orphan, shop_new "+had+" orphan")
}

// TestRunVolumesKilled: if a deploy is killed after any of its steps at the engine or in the records, even within
// a copy, the next one recreates the volume with its content. At any time some volume has all of the content.
func TestRunVolumesKilled(t *testing.T) {
	for what, c := range map[string]struct{ name, options, want string }{
		"options": {"shop_data", "bind", "shop_databind " + had + ", shop_data-orphan-1 " + had + " orphan"},
		"name":    {"shop_new", "", "shop_data " + had + " orphan, shop_new " + had},
	} {
		killed(t, func() *shop {
			s := shopWithVolume(t, true)
			s.declares(c.name, map[string]string{"o": c.options})
			if c.options == "" {
				s.declares(c.name, nil)
			}
			return s
		}, func(s *shop, n int) {
			if !strings.Contains(s.holds(), had) {
				t.Fatalf("%s, killed after %d: there are %s", what, n, s.holds())
			}
			s.repeats()
			if got := s.holds(); got != c.want || s.small.has() != "db/1 d1 runs, web/1 w1 runs" || s.plan().Changes() {
				t.Errorf("%s, killed after %d: there are %s; %s; and there is to be done: %v", what, n, got, s.small.has(),
					s.plan().Changes())
			}
		})
	}
}

// TestRunVolumesUsedBetween: data that somebody wrote to a half-made volume is kept, and so is the volume's old
// content.
func TestRunVolumesUsedBetween(t *testing.T) {
	var s *shop
	for n := 0; ; n++ { // until the new volume exists and is empty
		s = shopWithVolume(t, true)
		s.declares("shop_data", map[string]string{"o": "bind"})
		s.small.left = n
		if err := s.deploys(); err == nil {
			t.Fatal("it was never cut off")
		}
		if d := s.small.disks["shop_data"]; d != nil && d.Options["o"] == "bind" && len(d.files) == 0 {
			d.files["mine"] = "new"
			break
		}
	}
	s.small.left = -1
	s.must(s.deploys())
	const want = "shop_databind " + had + ", shop_data-orphan-1 " + had + " orphan, shop_data-orphan-2 map[mine:new] orphan"
	if got := s.holds(); got != want || s.plan().Changes() {
		t.Errorf("there are %s, want %s", got, want)
	}
}

// TestRunVolumesInOrder: the replicas that a copy removed come back in the order of their numbers, since Compose
// counts them. It does not matter which were in flight, missing, or needed by a worker.
func TestRunVolumesInOrder(t *testing.T) {
	for what, before := range map[string]func(s *shop) func(*body) bool{
		"in flight": func(*shop) func(*body) bool { return func(*body) bool { return false } },
		"missing":   func(*shop) func(*body) bool { return func(b *body) bool { return b.title() == "web/2" } },
		"a worker needs one that does not run": func(s *shop) func(*body) bool {
			s.service("work").Needs, s.service("web").Needs = []string{"db", "web"}, nil
			work := slices.IndexFunc(s.services, func(one deploy.Service) bool { return one.Name == "work" })
			s.services = append(slices.Delete(slices.Clone(s.services), work, work+1), s.services[work])
			return func(b *body) bool { b.Running = b.Running && b.title() != "web/2"; return false }
		},
	} {
		t.Run(what, func(t *testing.T) {
			s := shopWithVolume(t, false)
			s.service("web").Update = deploy.Update{MaxInFlight: 2, Watch: deploy.Span{Most: time.Minute}}
			s.small.all = slices.DeleteFunc(s.small.all, before(s))
			s.declares("shop_data", map[string]string{"o": "bind"})
			if n := s.plan().service("web").Update.MaxInFlight; n != 1 {
				t.Errorf("%d are in flight", n)
			}
			s.must(s.deploys())
			if got := s.small.has(); got != allRun || s.plan().Changes() {
				t.Errorf("there are %s", got)
			}
		})
	}
}
