package rollout

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"berth/internal/deploy/scene"
)

// TestTask: what is started, stopped and made anew of a project, and what of it is left alone (BD-10).
func TestTask(t *testing.T) {
	exited := func(all []scene.Container) []scene.Container { all[1].State = "exited"; return all }
	old := func(all []scene.Container) []scene.Container { all[0].Hash, all[2].Hash = "d0", "w0"; return all }
	oldAndExited := func(all []scene.Container) []scene.Container { return exited(old(all)) }
	missing := func(all []scene.Container) []scene.Container { return all[:2] }
	dropped := func(all []scene.Container) []scene.Container {
		return append(all, container("mail", 1, "m1", "sha256:ff", "10.0.0.20"),
			container("web", 5, "w1", "sha256:ee", "10.0.0.15"))
	}
	for what, c := range map[string]struct {
		task  Task
		there func(all []scene.Container) []scene.Container
		want  string // the steps, or the refusal
	}{
		"start":                           {Task{Do: Start}, exited, "start:shop/web/1"},
		"start, nothing to do":            {Task{Do: Start}, nil, ""},
		"start what is missing":           {Task{Do: Start}, missing, "create:shop/web/2"},
		"start, what runs is out of date": {Task{Do: Start}, old, ""},
		"start, what does not run is out of date": {Task{Do: Start},
			func(all []scene.Container) []scene.Container { all[1].Hash = "w0"; return exited(all) },
			"recreate:shop/web/1"},
		"start another service":   {Task{Start, "db", 0}, exited, ""},
		"start one":               {Task{Start, "web", 1}, exited, "start:shop/web/1"},
		"start what is not there": {Task{Start, "web", 3}, nil, "the files give web 2 replicas, so that there is no web/3"},
		"start no service":        {Task{Start, "wbe", 0}, nil, `the project shop has no service "wbe"; it has db, web`},

		"stop":                     {Task{Do: Stop}, nil, "stop:shop/db/1 stop:shop/web/1 stop:shop/web/2"},
		"stop what runs":           {Task{Do: Stop}, exited, "stop:shop/db/1 stop:shop/web/2"},
		"stop a service":           {Task{Stop, "web", 0}, nil, "stop:shop/web/1 stop:shop/web/2"},
		"stop one":                 {Task{Stop, "web", 2}, nil, "stop:shop/web/2"},
		"stop what is dropped":     {Task{Do: Stop}, dropped, "stop:shop/db/1 stop:shop/web/1 stop:shop/web/2 stop:shop/web/5 stop:shop/mail/1"},
		"stop one that is dropped": {Task{Stop, "mail", 0}, dropped, "stop:shop/mail/1"},
		"stop one of too many":     {Task{Stop, "web", 5}, dropped, "stop:shop/web/5"},

		"recreate":           {Task{Do: Recreate}, nil, "recreate:shop/db/1 recreate:shop/web/1 recreate:shop/web/2"},
		"recreate a service": {Task{Recreate, "web", 0}, oldAndExited, "recreate:shop/web/1 recreate:shop/web/2"},
		"recreate what is used by another": {Task{Recreate, "db", 0}, nil,
			"recreate:shop/db/1 recreate:shop/web/1 recreate:shop/web/2"},
		"recreate nothing that is dropped": {Task{Recreate, "mail", 0}, dropped, `has no service "mail"`},
		"recreate one that gets another's address": {Task{Recreate, "web", 2},
			func(all []scene.Container) []scene.Container {
				all[1].On[0].Addresses, all[2].On[0].Addresses = addrs("10.0.0.12"), addrs("10.0.0.11")
				return all
			},
			"shop/web/2 gets 10.0.0.12 on shop_front, which the container shop-web-1 has until"},
	} {
		t.Run(what, func(t *testing.T) {
			in := wanted()
			in.Task, in.Containers = c.task, asWanted()
			if c.there != nil {
				in.Containers = c.there(in.Containers)
			}
			if strings.Contains(what, "used by another") {
				in.Services[1].Shares = []string{"db"}
				in.Containers[1].Shares, in.Containers[2].Shares = []string{"db1"}, []string{"db1"}
			}
			p, err := Draw(in)
			switch {
			case err == nil && steps(p) != c.want:
				t.Errorf("the plan is %q, and was to be %q", steps(p), c.want)
			case err != nil && !strings.Contains(err.Error(), c.want), err != nil && c.want == "":
				t.Errorf("refused: %v; what was to come is %q", err, c.want)
			}
			if err == nil && p.Changes() != (c.want != "") {
				t.Errorf("it changes something: %t", p.Changes())
			}
		})
	}
}

// A task pulls nothing for what it does not make.
func TestTaskPulls(t *testing.T) {
	in := wanted()
	in.Containers, in.Images = asWanted(), nil
	for _, c := range []struct {
		task Task
		want []string
	}{
		{Task{}, []string{"db:1", "web:1"}}, {Task{Recreate, "web", 1}, []string{"web:1"}}, {Task{Do: Stop}, nil},
	} {
		in.Task = c.task
		p, err := Draw(in)
		if err != nil || !slices.Equal(p.Pull, c.want) {
			t.Errorf("%+v pulls %v, %v; it was to be %v", c.task, p.Pull, err, c.want)
		}
	}
}

// TestSeveral: never more at once than may be, and none begins after a failure.
func TestSeveral(t *testing.T) {
	all := []*Instance{{Number: 1}, {Number: 2}, {Number: 3}, {Number: 4}, {Number: 5}}
	var mu sync.Mutex
	var now, most int
	var both sync.WaitGroup // the first two are there at once
	both.Add(2)
	err := several(all, 2, func(one *Instance) error {
		mu.Lock()
		now++
		most = max(most, now)
		mu.Unlock()
		if one.Number <= 2 {
			both.Done()
			both.Wait()
		}
		mu.Lock()
		now--
		mu.Unlock()
		return nil
	})
	if err != nil || most != 2 {
		t.Errorf("%d at once, %v", most, err)
	}
	var did []int
	broken := errors.New("broken")
	err = several(all, 1, func(one *Instance) error {
		did = append(did, one.Number)
		if one.Number == 3 {
			return broken
		}
		return nil
	})
	if !errors.Is(err, broken) || !slices.Equal(did, []int{1, 2, 3}) {
		t.Errorf("begun are %v, %v", did, err)
	}
}
