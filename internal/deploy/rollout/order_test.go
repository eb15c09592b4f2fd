package rollout

import (
	"errors"
	"strings"
	"testing"
	"time"

	"berth/internal/deploy"
)

// workRuns is how a deploy that changes anything begins: its worker runs and is deleted.
const workRuns = "make work/1, start work/1, stop work/1, remove work/1, release shop/work/1"

// TestRunCreatesFirst: missing replicas are created before any existing one changes, whether it belongs to the
// same service or to one that comes first (BD-7).
func TestRunCreatesFirst(t *testing.T) {
	for what, c := range map[string]struct {
		change func(s *shop)
		want   string
	}{
		"one more of a service that changes": {func(s *shop) {
			s.hashes["web"] = "w2"
			web := s.service("web")
			web.Instances = append(web.Instances, deploy.Instance{Owner: "shop/web/3", Number: 3, On: web.Instances[0].On})
			s.reserved["shop/web/3"] = s.reserved["shop/web/2"].Next()
		}, "make web/3, start web/3, stop web/1, remove web/1, make web/1, start web/1, stop web/2, remove web/2, " +
			"make web/2, start web/2"},
		"a service behind one that changes": {func(s *shop) {
			s.hashes["db"], s.hashes["new"] = "d2", "n1"
			next := *s.service("web")
			next.Name, next.Needs = "new", []string{"db"}
			next.Instances = []deploy.Instance{{Owner: "shop/new/1", Number: 1, On: next.Instances[0].On}}
			s.services = append(s.services, next)
			s.reserved["shop/new/1"] = s.reserved["shop/web/2"].Next()
		}, "make new/1, start new/1, stop side/1, stop db/1, remove db/1, make db/1, start db/1, remove side/1, " +
			"make side/1, start side/1"},
	} {
		t.Run(what, func(t *testing.T) {
			s := newShop(t)
			s.must(s.deploys())
			s.small.takes()
			c.change(s)
			s.must(s.deploys())
			s.wants(what, workRuns+", "+c.want)
		})
	}
}

// TestRunPullsFirst: missing images are pulled before anything is stopped, removed or created. If a pull fails,
// nothing changes (BD-8).
func TestRunPullsFirst(t *testing.T) {
	s := newShop(t)
	s.must(s.deploys())
	s.small.takes()
	s.service("web").Image, s.hashes["web"] = "web:2", "w2"
	s.service("web").Instances = s.service("web").Instances[:1]
	pull := s.compose.pull
	s.compose.pull = func(string) error { return errors.New("the registry is away") }
	if err := s.deploys(); err == nil || !strings.Contains(err.Error(), "the registry is away") {
		t.Errorf("it ends with %v", err)
	}
	if got := s.small.has(); got != allRun {
		t.Errorf("there are %s, want %s", got, allRun)
	}
	s.wants("nothing was pulled", "")
	s.compose.pull = pull
	s.must(s.deploys())
	s.wants("all was pulled",
		"pull web, stop web/2, release shop/web/2, remove web/2, "+workRuns+", stop web/1, remove web/1, "+
			"make web/1, start web/1")
}

// TestRunUnlocked: a deploy that loses its lock, at whichever step, takes no further step and restores nothing:
// the project is another deploy's (BD-1).
func TestRunUnlocked(t *testing.T) {
	lost := errors.New("the lock is lost")
	for n := 0; ; n++ {
		s := newShop(t)
		s.must(s.deploys())
		s.hashes["web"], s.hashes["work"] = "w2", "m2"
		s.service("web").Drain = &deploy.Hook{Command: []string{"true"}, Timeout: time.Minute}
		s.small.takes()
		told := 0
		s.when = func(e Event) {
			if told++; told == n+1 {
				s.lost = lost
				s.small.takes()
			}
		}
		err := s.deploys()
		if s.lost == nil {
			if s.must(err); n == 0 {
				t.Error("nothing is told")
			}
			return
		}
		asked := s.small.takes()
		made := len(asked) == 2 && strings.HasPrefix(asked[0], "make ") // Compose itself starts what it makes
		if len(asked) > 1 && !made {
			t.Errorf("without its lock, which it lost as it told of step %d, it asks for %q", n, asked)
		}
		if err != nil && !errors.Is(err, lost) {
			t.Errorf("it ends with %v", err)
		}
	}
}
