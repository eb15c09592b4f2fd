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
		"one of `compose run`": {
			func(all []scene.Container) []scene.Container {
				one := container("web", 1, "w1", "sha256:ee", "10.0.0.30")
				one.OneOff = true
				return append(all, one)
			},
			"keep:shop/db/1 keep:shop/web/1 keep:shop/web/2", ""},
	} {
		t.Run(what, func(t *testing.T) {
			in := wanted()
			in.Containers = c.there(asWanted())
			p, err := Draw(in)
			if err != nil {
				t.Fatal(err)
			}
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
			if err != nil {
				t.Fatal(err)
			}
			return p
		}
		moved := strings.Join(draw(func(*Inputs) {}).Moved(draw(change)), "; ")
		if !strings.Contains(moved, want) || want == "" && moved != "" {
			t.Errorf("it says %q, want %q", moved, want)
		}
	}
}
