package rollout

import (
	"testing"

	"berth/store/storetest"
)

// TestRunNeeded: what a worker needs runs when the worker does, also where that is to be made anew and does not run:
// since it failed, since its network is made anew, or since a deploy was cut off (BD-6).
func TestRunNeeded(t *testing.T) {
	t.Run("failed", func(t *testing.T) {
		s := newShop(t)
		s.must(s.deploys())
		s.hashes["db"], s.small.fails["d2"] = "d2", 1
		if err := s.deploys(); err == nil {
			t.Fatal("what fails is not told of")
		}
		s.hashes["db"] = "d3"
		s.small.takes()
		s.must(s.deploys())
		s.wants("made anew", "stop db/1", "remove db/1", "make db/1", "start db/1", "make work/1", "start work/1",
			"stop work/1", "remove work/1", "release shop/work/1", "stop side/1", "remove side/1", "make side/1",
			"start side/1")
	})
	t.Run("taken away by a copy", func(t *testing.T) {
		s := shopWithVolume(t, false)
		s.declares("shop_data", map[string]string{"o": "bind"})
		s.volumes[0].Services = append(s.volumes[0].Services, "work")
		s.must(s.deploys())
	})
	t.Run("cut off", func(t *testing.T) {
		for n := range storetest.Sampled(t, 4) {
			s := newShop(t)
			s.must(s.deploys())
			s.hashes["db"] = "d2"
			s.small.left = n
			err := s.deploys()
			left := s.small.left
			s.small.left = -1
			s.must(s.deploys())
			if p := s.plan(); p.Changes() {
				t.Errorf("killed after %d: there are %s, and there is to be done: %s", n, s.small.has(), steps(p))
			}
			if err == nil && left > 0 {
				break // it was not killed at all
			}
		}
	})
}

// TestRunStopOnce: what others wait for until it has ended is stopped as all else is, where it runs (BD-10).
func TestRunStopOnce(t *testing.T) {
	s := newShop(t)
	s.must(s.deploys())
	s.service("web").Once = true // it runs as yet
	s.small.takes()
	s.task = Task{Do: Stop}
	s.must(s.deploys())
	s.wants("stop", "stop web/1", "stop web/2", "stop side/1", "stop db/1")
}
