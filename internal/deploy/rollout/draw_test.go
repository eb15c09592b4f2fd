package rollout

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"berth/internal/deploy"
	"berth/internal/deploy/scene"
)

func addrs(texts ...string) (all []netip.Addr) {
	for _, text := range texts {
		all = append(all, netip.MustParseAddr(text))
	}
	return all
}

// wanted is what the files of the tests want: a database and two of a service, with an address each.
func wanted() Inputs {
	instance := func(owner string, number int, addr string) deploy.Instance {
		return deploy.Instance{Owner: owner, Number: number,
			On: []deploy.Place{{Network: "shop_front", Planned: "front", Addresses: addrs(addr), Named: true}}}
	}
	return Inputs{Project: "shop", Compose: "5.5.0",
		Services: []deploy.Service{
			{Name: "db", Image: "db:1", Instances: []deploy.Instance{instance("shop/db/1", 1, "10.0.0.9")}},
			{Name: "web", Image: "web:1", Instances: []deploy.Instance{instance("shop/web/1", 1, "10.0.0.11"),
				instance("shop/web/2", 2, "10.0.0.12")}},
		},
		Hashes: map[string]string{"db": "d1", "web": "w1"},
		Images: map[string]scene.Image{"db:1": {ID: "sha256:dd"}, "web:1": {ID: "sha256:ee"}},
	}
}

func container(service string, number int, hash, image, addr string) scene.Container {
	return scene.Container{ID: fmt.Sprintf("%s%d", service, number), Name: fmt.Sprintf("shop-%s-%d", service, number),
		Service: service, Number: number, Hash: hash, Version: "5.5.0", ImageID: image, State: "running",
		On: []scene.Endpoint{{Network: "shop_front", Addresses: addrs(addr)}}}
}

// beside is a container that stands beside another one, whose number it has.
func beside(c scene.Container, hash, addr string) scene.Container {
	one := container(c.Service, c.Number, hash, c.ImageID, addr)
	one.ID, one.Name = "0123456789ab", "aaaaaaaaaaaa_"+c.Name
	return one
}

// asWanted is what the engine has when all is as the files say.
func asWanted() []scene.Container {
	return []scene.Container{
		container("db", 1, "d1", "sha256:dd", "10.0.0.9"),
		container("web", 1, "w1", "sha256:ee", "10.0.0.11"),
		container("web", 2, "w1", "sha256:ee", "10.0.0.12"),
	}
}

// steps are what a plan does, a word each.
func steps(p *Plan) string {
	var all []string
	for _, one := range p.all() {
		all = append(all, string(one.Do)+":"+one.Owner)
	}
	return strings.Join(all, " ")
}

// TestDraw: what becomes of each container, and why (BD-5, BD-7, BD-8, BO-2).
func TestDraw(t *testing.T) {
	for what, c := range map[string]struct {
		there func(all []scene.Container) []scene.Container
		want  string
		why   string
	}{
		"as it should be": {func(all []scene.Container) []scene.Container { return all },
			"keep:shop/db/1 keep:shop/web/1 keep:shop/web/2", ""},
		"nothing": {func([]scene.Container) []scene.Container { return nil },
			"create:shop/db/1 create:shop/web/1 create:shop/web/2", ""},
		"one in the midst is gone": {
			func(all []scene.Container) []scene.Container { return append(all[:1:1], all[2]) },
			"keep:shop/db/1 create:shop/web/1 keep:shop/web/2", ""},
		"another configuration": {func(all []scene.Container) []scene.Container { all[1].Hash = "w0"; return all },
			"keep:shop/db/1 recreate:shop/web/1 keep:shop/web/2", "its configuration has changed"},
		"another image": {func(all []scene.Container) []scene.Container { all[0].ImageID = "sha256:00"; return all },
			"recreate:shop/db/1 keep:shop/web/1 keep:shop/web/2", "its image has changed"},
		"another address": {
			func(all []scene.Container) []scene.Container {
				all[2].On[0].Addresses = addrs("10.0.0.99")
				return all
			},
			"keep:shop/db/1 keep:shop/web/1 recreate:shop/web/2", "10.0.0.99 to 10.0.0.12"},
		"an address of another family besides": {
			func(all []scene.Container) []scene.Container {
				all[2].On[0].Addresses = addrs("10.0.0.12", "2001:db8::1")
				return all
			},
			"keep:shop/db/1 keep:shop/web/1 keep:shop/web/2", ""},
		"not on the network": {func(all []scene.Container) []scene.Container { all[2].On = nil; return all },
			"keep:shop/db/1 keep:shop/web/1 recreate:shop/web/2", "it is not on the network shop_front"},
		"stopped": {func(all []scene.Container) []scene.Container { all[1].State = "exited"; return all },
			"keep:shop/db/1 start:shop/web/1 keep:shop/web/2", "it does not run: exited"},
		"more than the files want": {
			func(all []scene.Container) []scene.Container {
				return append(all, container("web", 5, "w1", "sha256:ee", "10.0.0.15"))
			},
			"delete:shop/web/5 keep:shop/db/1 keep:shop/web/1 keep:shop/web/2", "the files want 2 of web"},
		"a service that was dropped, with a name of its own": {
			func(all []scene.Container) []scene.Container {
				mail := container("mail", 1, "m1", "sha256:ff", "10.0.0.20")
				mail.Name = "postman"
				return append(all, mail)
			},
			"delete:postman keep:shop/db/1 keep:shop/web/1 keep:shop/web/2", "the files have no service mail"},
		"one of `compose run` that runs": {
			func(all []scene.Container) []scene.Container {
				one := container("web", 1, "w1", "sha256:ee", "10.0.0.30")
				one.OneOff = true
				return append(all, one)
			},
			"keep:shop/db/1 keep:shop/web/1 keep:shop/web/2", ""},
		"one of `compose run` that has ended": {
			func(all []scene.Container) []scene.Container {
				one := container("web", 1, "w1", "sha256:ee", "10.0.0.30")
				one.OneOff, one.State, one.Name = true, "exited", "shop-web-run-1"
				return append(all, one)
			},
			"delete:shop-web-run-1 keep:shop/db/1 keep:shop/web/1 keep:shop/web/2", "made by `compose run`"},
		"what an earlier deploy has left beside one": {
			func(all []scene.Container) []scene.Container {
				return append(all, beside(all[1], "w1", "10.0.0.11"))
			},
			"delete:shop/web/1 keep:shop/db/1 keep:shop/web/1 keep:shop/web/2", "an earlier deploy has left it"},
		"cut off before it had its name": {
			func(all []scene.Container) []scene.Container {
				all[1] = beside(all[1], "w1", "10.0.0.11")
				return all
			},
			"keep:shop/db/1 start:shop/web/1 keep:shop/web/2", "cut off before it was called shop-web-1"},
	} {
		t.Run(what, func(t *testing.T) {
			in := wanted()
			in.Containers = c.there(asWanted())
			p, err := Draw(in)
			fine(t, err)
			if got := steps(p); got != c.want {
				t.Errorf("it does %s, want %s", got, c.want)
			}
			var why []string
			for _, one := range p.all() {
				why = append(why, one.Why...)
			}
			if said := strings.Join(why, "; "); !strings.Contains(said, c.why) || c.why == "" && said != "" {
				t.Errorf("it says why by %q, want %q", said, c.why)
			}
			if p.Changes() != strings.ContainsAny(strings.ReplaceAll(c.want, "keep:", ""), ":") {
				t.Errorf("whether it changes anything is %v", p.Changes())
			}
		})
	}
}

// TestDrawRefuses: containers that cannot be reached, each by its name and with what to do, and a project that another
// generation of Compose has made; all of it at once (BD-2, BD-3).
func TestDrawRefuses(t *testing.T) {
	in := wanted()
	in.Containers = asWanted()
	in.Containers[0].State, in.Containers[1].State, in.Containers[2].Version = "paused", "dead", "1.29.2"
	in.Containers = append(in.Containers, container("web", 2, "w1", "sha256:ee", "10.0.0.40"))
	in.Containers[3].Name = "twin"
	in.Unread = []error{errors.New("the container shop-cache-1 cannot be inspected: it hangs")}
	_, err := Draw(in)
	if err == nil {
		t.Fatal("nothing is refused")
	}
	for _, part := range []string{"shop-db-1 cannot be reached: it is paused; run `berth check`", "shop-web-1", "dead",
		"shop-web-2 was made by Compose 1.29.2, and the compose command is 5.5.0", "shop-cache-1 cannot be inspected",
		"shop-web-2 and twin are both number 2 of web"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("it is not said that %s:\n%v", part, err)
		}
	}
}

// TestMoved: a plan that was saved is out of date as soon as anything of it is, and says what.
func TestMoved(t *testing.T) {
	for want, change := range map[string]func(*Inputs){
		"":                                     func(*Inputs) {},
		"the configuration of web has changed": func(in *Inputs) { in.Hashes["web"] = "w9" },
		"the image db:1 of db has changed":     func(in *Inputs) { in.Images["db:1"] = scene.Image{ID: "sha256:11"} },
		"shop/web/1 is another container":      func(in *Inputs) { in.Containers[1].ID = "other" },
		"the container shop-web-2 was running, and is": func(in *Inputs) { in.Containers[2].State = "exited" },
		"the addresses of shop/web/2 have changed": func(in *Inputs) {
			in.Services[1].Instances[1].On[0].Addresses = addrs("10.0.0.50")
		},
		"shop/web/2 is another container: none was": func(in *Inputs) { in.Containers = in.Containers[:2] },
		"the compose command was 5.5.0, and is 5.6": func(in *Inputs) { in.Compose = "5.6.0" },
		"the file b.yaml was none of them":          func(in *Inputs) { in.Files = append(in.Files, File{"b.yaml", "2"}) },
		"the file a.yaml has changed":               func(in *Inputs) { in.Files = []File{{"a.yaml", "9"}} },
	} {
		draw := func(change func(*Inputs)) *Plan {
			in := wanted()
			in.Containers, in.Files = asWanted(), []File{{"a.yaml", "1"}}
			change(&in)
			p, err := Draw(in)
			fine(t, err)
			return p
		}
		moved := strings.Join(draw(func(*Inputs) {}).Moved(draw(change)), "; ")
		if !strings.Contains(moved, want) || want == "" && moved != "" {
			t.Errorf("it says %q, want %q", moved, want)
		}
	}
}

// TestDrawStartFirst: of what stands beside a replica that is to be exchanged, the one that runs as the files want is
// its successor, whatever else is there is removed; who needs a second address is told, once.
func TestDrawStartFirst(t *testing.T) {
	draw := func(change func(*Inputs)) (*Plan, error) {
		in := wanted()
		in.Services[1].Update.StartFirst = true
		in.Containers = asWanted()
		in.Containers[1].Hash = "w0"
		change(&in)
		return Draw(in)
	}
	p, err := draw(func(*Inputs) {})
	fine(t, err)
	if got := fmt.Sprint(p.Beside()); got != "map[shop/web/1:[10.0.0.11]]" {
		t.Errorf("second addresses for %s", got)
	}
	other := addrs("10.0.0.21")
	for what, c := range map[string]struct {
		beside    func(c scene.Container) scene.Container
		successor bool
	}{
		"as the files want": {func(c scene.Container) scene.Container { return c }, true},
		"ended":             {func(c scene.Container) scene.Container { c.State = "exited"; return c }, false},
		"of before":         {func(c scene.Container) scene.Container { c.Hash = "w0"; return c }, false},
		"elsewhere": {func(c scene.Container) scene.Container { c.On[0].Addresses = addrs("10.0.0.77"); return c },
			false},
	} {
		p, err := draw(func(in *Inputs) {
			in.Services[1].Instances[0].On[0].Addresses = other
			in.Containers = append(in.Containers, c.beside(beside(in.Containers[1], "w1", "10.0.0.21")))
		})
		fine(t, err)
		want := "recreate:shop/web/1"
		if !c.successor {
			want = "delete:shop/web/1 keep:shop/db/1 recreate:shop/web/1"
		}
		if got := steps(p); !strings.Contains(got, want) || strings.Contains(got, "delete") == c.successor {
			t.Errorf("%s: it does %s", what, got)
		}
		if got := p.Services[1].Instances[0].Successor; (got != "") != c.successor {
			t.Errorf("%s: its successor is %q", what, got)
		}
		if got := p.Beside(); len(got) > 0 {
			t.Errorf("%s: second addresses for %v", what, got)
		}
	}
	_, err = draw(func(in *Inputs) {
		in.Containers[1].Volumes = []scene.Volume{{Name: strings.Repeat("a", 64), Target: "/data"}}
	})
	if err == nil || !strings.Contains(err.Error(), "both would write the volume at /data") {
		t.Errorf("a volume that two would write: %v", err)
	}
}

// TestDrawWorkers: a worker runs where anything changes, and where it has not run as it is; alone it is nothing to do,
// and what is left of it is deleted (BD-6).
func TestDrawWorkers(t *testing.T) {
	ran := map[string]Ran{"migrate": {"m1", "sha256:ff"}}
	for what, c := range map[string]struct {
		change func(*Inputs)
		want   string
		why    string
	}{
		"it has run": {func(*Inputs) {}, "keep:shop/db/1 keep:shop/web/1 keep:shop/web/2", ""},
		"it has not": {func(in *Inputs) { in.Ran = nil },
			"run:shop/migrate/1 keep:shop/db/1 keep:shop/web/1 keep:shop/web/2", "it has not run yet"},
		"its configuration": {func(in *Inputs) { in.Hashes["migrate"] = "m2" },
			"run:shop/migrate/1 keep:shop/db/1 keep:shop/web/1 keep:shop/web/2", "its configuration has changed"},
		"its image": {func(in *Inputs) { in.Images["migrate:1"] = scene.Image{ID: "sha256:0f"} },
			"run:shop/migrate/1 keep:shop/db/1 keep:shop/web/1 keep:shop/web/2", "its image has changed"},
		"something behind it": {func(in *Inputs) { in.Containers[2].Hash = "w0" },
			"run:shop/migrate/1 keep:shop/db/1 keep:shop/web/1 recreate:shop/web/2", "something else changes"},
		"something that goes": {func(in *Inputs) {
			in.Containers = append(in.Containers, container("mail", 1, "x", "y", "10.0.0.3"))
		}, "delete:shop/mail/1 run:shop/migrate/1 keep:shop/db/1 keep:shop/web/1 keep:shop/web/2", "no service mail"},
		"what `up` has left of it": {func(in *Inputs) {
			one := container("migrate", 1, "m1", "sha256:ff", "10.0.0.5")
			one.State = "exited"
			in.Containers = append(in.Containers, one)
		}, "delete:shop/migrate/1 keep:shop/db/1 keep:shop/web/1 keep:shop/web/2", "deleted when it has run"},
	} {
		in := wanted()
		in.Services = append([]deploy.Service{{Name: "migrate", Image: "migrate:1", Worker: true,
			Instances: []deploy.Instance{{Owner: "shop/migrate/1", Number: 1,
				On: []deploy.Place{{Network: "shop_front", Addresses: addrs("10.0.0.5"), Named: true}}}}}},
			in.Services...)
		in.Hashes["migrate"], in.Images["migrate:1"] = "m1", scene.Image{ID: "sha256:ff"}
		in.Ran, in.Containers = ran, asWanted()
		c.change(&in)
		p, err := Draw(in)
		if err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		var why []string
		for _, one := range p.all() {
			why = append(why, one.Why...)
		}
		if got, said := steps(p), strings.Join(why, "; "); got != c.want || !strings.Contains(said, c.why) {
			t.Errorf("%s: it does %s, by %q; want %s, by %q", what, got, said, c.want, c.why)
		}
	}
}

// TestDrawShares: what uses the network, processes or volumes of a container goes with it, and what uses those of one
// that has gone; what another service's container has outside of the project is left alone.
func TestDrawShares(t *testing.T) {
	for what, c := range map[string]struct {
		change func(*Inputs)
		want   string
	}{
		"as it should be": {func(*Inputs) {}, "keep:shop/db/1 keep:shop/web/1 keep:shop/web/2 keep:shop/log/1"},
		"recreated": {func(in *Inputs) { in.Containers[1].Hash = "w0" },
			"keep:shop/db/1 recreate:shop/web/1 keep:shop/web/2 recreate:shop/log/1"},
		"another one of it": {func(in *Inputs) { in.Containers[2].Hash = "w0" },
			"keep:shop/db/1 keep:shop/web/1 recreate:shop/web/2 keep:shop/log/1"},
		"started": {func(in *Inputs) { in.Containers[1].State = "exited" },
			"keep:shop/db/1 start:shop/web/1 keep:shop/web/2 recreate:shop/log/1"},
		"gone": {func(in *Inputs) { in.Containers[3].Shares = []string{"before"} },
			"keep:shop/db/1 keep:shop/web/1 keep:shop/web/2 recreate:shop/log/1"},
		"of somebody else": {func(in *Inputs) { in.Containers[3].Shares = []string{"web1", "foreign"} },
			"keep:shop/db/1 keep:shop/web/1 keep:shop/web/2 keep:shop/log/1"},
	} {
		in := wanted()
		in.Services = append(in.Services, deploy.Service{Name: "log", Image: "web:1", Shares: []string{"web"},
			Instances: []deploy.Instance{{Owner: "shop/log/1", Number: 1}}})
		in.Hashes["log"] = "l1"
		log := container("log", 1, "l1", "sha256:ee", "10.0.0.5")
		log.On, log.Shares = nil, []string{"web1"}
		in.Containers = append(asWanted(), log)
		c.change(&in)
		p, err := Draw(in)
		if err != nil {
			t.Errorf("%s: %v", what, err)
		} else if got := steps(p); got != c.want {
			t.Errorf("%s: it does %s, want %s", what, got, c.want)
		}
	}
}

// TestDrawNotes: what is amiss and as the files say is told, and left alone; what has run to its end stays so.
func TestDrawNotes(t *testing.T) {
	in := wanted()
	in.Services[0].Once = true
	in.Containers = asWanted()
	in.Containers[0].State = "exited"
	in.Containers[1].Health = "unhealthy"
	p, err := Draw(in)
	if err != nil || p.Changes() || len(p.Notes) != 1 || !strings.Contains(p.Notes[0], "shop-web-1 is unhealthy") {
		t.Errorf("%v, changes %v, notes %q", err, p.Changes(), p.Notes)
	}
	in.Containers[0].ExitCode = 1
	if p, err = Draw(in); err != nil || !strings.Contains(steps(p), "start:shop/db/1") {
		t.Errorf("what has failed: %v, %s", err, steps(p))
	}
}
