package rollout

import (
	"encoding"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"berth/internal/deploy"
	"berth/internal/deploy/scene"
	"berth/internal/ipam"
)

// A scene is a text that changes the inputs of a plan from those that match the files. Its words are:
//
//	PATH=VALUE          sets a field. A path has fields, keys of maps, and elements by number or by name, which are
//	                    made if they are not there. It begins with a field of Inputs, of the only network (Wants,
//	                    Has), or with the id of a container: web1.State=exited. An empty value is the zero one.
//	+web5@10.0.0.15     adds a container, and *web1@10.0.0.21 one that stands beside web1 and has its number
//	-web1, -shop_data   removes a container or a stored volume
//	~shop_old           stores a volume of the project, and ~shop_old-orphan-1 a copy of it
//	!shop_old:saving    records an orphan, and its stage
//	front, volumes      adds the network of the tests, or its volumes
//	unread              a container cannot be read
func (in *Inputs) change(text string) {
	for word := range strings.FieldsSeq(text) {
		path, value, sets := strings.Cut(word, "=")
		name, rest, _ := strings.Cut(word[1:], "@")
		copied, _, isCopy := strings.Cut(name, suffix)
		switch {
		case sets:
			in.set(strings.Split(path, "."), value)
		case word == "front":
			in.Networks = []NetworkState{frontNetwork()}
		case word == "volumes":
			in.addVolumes()
		case word == "unread":
			in.Unread = []error{errors.New("the container shop-cache-1 cannot be inspected: it hangs")}
		case word[0] == '+':
			service := strings.TrimRight(name, "0123456789")
			number, _ := strconv.Atoi(name[len(service):])
			in.Containers = append(in.Containers, container(service, number, in.Hashes[service], "sha256:ee", rest))
		case word[0] == '*':
			i := slices.IndexFunc(in.Containers, func(c scene.Container) bool { return c.ID == name })
			c := in.Containers[i]
			one := container(c.Service, c.Number, in.Hashes[c.Service], c.ImageID, rest)
			one.ID, one.Name = "0123456789ab", "aaaaaaaaaaaa_"+c.Name
			in.Containers = append(in.Containers, one)
		case word[0] == '-':
			in.Containers = slices.DeleteFunc(in.Containers, func(c scene.Container) bool { return c.ID == name })
			in.Stored = slices.DeleteFunc(in.Stored, func(s scene.Stored) bool { return s.Name == name })
		case word[0] == '~' && isCopy:
			in.Stored = append(in.Stored, scene.Stored{Name: name, CopyOf: copied, CopyFor: "shop"})
		case word[0] == '~':
			in.Stored = append(in.Stored, volume(name))
		case word[0] == '!':
			name, stage, _ := strings.Cut(name, ":")
			o := ipam.Orphan{Volume: name, Project: "shop", Stage: ipam.OrphanStage(stage)}
			if isCopy {
				o.Of = copied
			}
			in.Orphans = append(in.Orphans, o)
		default:
			panic(word)
		}
	}
}

func (in *Inputs) set(path []string, text string) {
	if v := reflect.ValueOf(in).Elem(); v.FieldByName(path[0]).IsValid() {
		set(v, path, text)
	} else if n := reflect.ValueOf(&NetworkState{}).Elem(); n.FieldByName(path[0]).IsValid() {
		set(v, append([]string{"Networks", "0"}, path...), text)
	} else {
		set(v, append([]string{"Containers"}, path...), text)
	}
}

func set(v reflect.Value, path []string, text string) {
	switch {
	case len(path) == 0:
		parse(v, text)
	case v.Kind() == reflect.Struct:
		set(v.FieldByName(path[0]), path[1:], text)
	case v.Kind() == reflect.Map:
		if v.IsNil() {
			v.Set(reflect.MakeMap(v.Type()))
		}
		one := reflect.New(v.Type().Elem()).Elem()
		if has := v.MapIndex(reflect.ValueOf(path[0])); has.IsValid() {
			one.Set(has)
		}
		set(one, path[1:], text)
		v.SetMapIndex(reflect.ValueOf(path[0]), one)
	default:
		set(element(v, path[0]), path[1:], text)
	}
}

// element returns an element of a slice, by its number or by one of the fields that name it.
func element(v reflect.Value, name string) reflect.Value {
	fields := slices.DeleteFunc([]string{"ID", "Name", "Key", "Volume"}, func(field string) bool {
		_, has := v.Type().Elem().FieldByName(field)
		return !has
	})
	number, err := strconv.Atoi(name)
	for i := range v.Len() {
		if err == nil && i == number || slices.ContainsFunc(fields, func(field string) bool {
			return v.Index(i).FieldByName(field).String() == name
		}) {
			return v.Index(i)
		}
	}
	v.Set(reflect.Append(v, reflect.Zero(v.Type().Elem())))
	made := v.Index(v.Len() - 1)
	if err != nil {
		made.FieldByName(fields[0]).SetString(name)
	}
	return made
}

func parse(v reflect.Value, text string) {
	if text == "" {
		v.SetZero()
		return
	}
	switch to := v.Addr().Interface().(type) {
	case *[]netip.Addr:
		*to = addrs(strings.Split(text, ",")...)
	case *[]string:
		*to = strings.Split(text, ",")
	case *map[string]string:
		key, value, _ := strings.Cut(text, ":")
		*to = map[string]string{key: value}
	case **bool:
		*to = new(text == "true")
	case encoding.TextUnmarshaler:
		if err := to.UnmarshalText([]byte(text)); err != nil {
			panic(err)
		}
	case *bool:
		*to = text == "true"
	case *int:
		*to, _ = strconv.Atoi(text)
	default:
		v.SetString(text)
	}
}

// inputs returns the inputs of a scene.
func inputs(text string) Inputs {
	in := wanted()
	in.Containers = asWanted()
	in.change(text)
	return in
}

// scenes draws the plan of each scene after base. The wanted result is the plan's text, or a refusal with its parts.
func scenes(t *testing.T, base string, why bool, all map[string]string) {
	t.Helper()
	for text, want := range all {
		p, err := Draw(inputs(base + " " + text))
		parts, refused := strings.CutPrefix(want, "refused: ")
		switch {
		case err == nil && (refused || told(p, why) != want):
			t.Errorf("%s: the plan is\n%q, and was to be\n%q", text, told(p, why), want)
		case err != nil && !refused:
			t.Errorf("%s: %v", text, err)
		case err == nil && p.Changes() != (want != "" && !strings.HasPrefix(want, "note: ")):
			t.Errorf("%s: whether it changes anything is %t", text, p.Changes())
		}
		for part := range strings.SplitSeq(parts, " & ") {
			if refused && err != nil && !strings.Contains(err.Error(), part) {
				t.Errorf("%s: it does not say %q: %v", text, part, err)
			}
		}
	}
}

// told returns the text of a plan, without what stays. why adds the reasons.
func told(p *Plan, why bool) string {
	var all []string
	for _, image := range p.Pull {
		all = append(all, "pull "+image)
	}
	for _, v := range p.Volumes {
		text := fmt.Sprint(v.Do, " ", v.Name)
		if v.From != "" {
			text += "<" + v.From
		}
		if v.Saved != "" {
			text += ">" + v.Saved
		}
		if v.Foreign {
			text += " foreign"
		}
		all = append(all, text)
	}
	for _, one := range p.all() {
		text := fmt.Sprint(one.Do, " ", strings.TrimPrefix(one.Owner, "shop/"))
		if one.Successor != "" {
			text += " beside"
		}
		if why && len(one.Why) > 0 {
			text += " (" + strings.Join(one.Why, "; ") + ")"
		}
		if one.Do != Keep {
			all = append(all, text)
		}
	}
	for _, n := range p.Networks {
		all = append(all, "network "+n.Name)
	}
	for _, owner := range slices.Sorted(maps.Keys(p.Beside())) {
		all = append(all, "another for "+owner)
	}
	for _, note := range p.Notes {
		all = append(all, "note: "+note)
	}
	return strings.Join(all, ", ")
}

func addrs(texts ...string) (all []netip.Addr) {
	for _, text := range texts {
		all = append(all, netip.MustParseAddr(text))
	}
	return all
}

// wanted is what the tests' files want: a database and two replicas of a service, with an address each.
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

// asWanted is what the engine has if everything matches the files.
func asWanted() []scene.Container {
	return []scene.Container{
		container("db", 1, "d1", "sha256:dd", "10.0.0.9"),
		container("web", 1, "w1", "sha256:ee", "10.0.0.11"),
		container("web", 2, "w1", "sha256:ee", "10.0.0.12"),
	}
}

// frontNetwork is the tests' network, equal in the files and on the engine.
func frontNetwork() NetworkState {
	return NetworkState{There: true,
		Wants: deploy.Definition{Network: "shop_front", Services: []string{"db", "web"}, Driver: "bridge",
			Options: map[string]string{"mtu": "1400"}, IPAM: "berth",
			IPAMOptions: map[string]string{"network": "front"},
			Pools:       []deploy.Pool{{Subnet: "10.0.0.1/24"}, {Gateway: "fd00::1"}}},
		Has: scene.Network{ID: "n1", Name: "shop_front", Project: "shop", Driver: "bridge",
			Options: map[string]string{"mtu": "1400", "com.docker.network.enable_ipv4": "true"}, IPAM: "berth",
			IPAMOptions: map[string]string{"network": "front"},
			Pools: []scene.Pool{{Subnet: netip.MustParsePrefix("10.0.0.0/24"),
				Gateway: netip.MustParseAddr("10.0.0.1")}},
			On: []scene.Guest{{ID: "web1", Name: "shop-web-1", Project: "shop"},
				{ID: "web2", Name: "shop-web-2", Project: "shop"}}}}
}

// addVolumes adds a volume that both services use, and one that only the database uses.
func (in *Inputs) addVolumes() {
	in.Volumes = []deploy.Volume{
		{Key: "data", Name: "shop_data", Services: []string{"db", "web"}},
		{Key: "log", Name: "shop_log", Services: []string{"db"}},
	}
	in.Services[0].Mounts = []deploy.Mount{{Key: "data", Volume: "shop_data", Target: "/data"}}
	data, log := volume("shop_data"), volume("shop_log")
	data.Users = []scene.User{user("db1", "db", "/data"), user("web1", "web", "/shared")}
	log.Users = []scene.User{user("db1", "db", "/log")}
	in.Stored = []scene.Stored{data, log}
}

func volume(name string) scene.Stored {
	return scene.Stored{Name: name, Driver: "local", Project: "shop", Key: strings.TrimPrefix(name, "shop_")}
}

func user(id, service, target string) scene.User {
	return scene.User{ID: id, Name: "shop-" + id, Service: service, Project: "shop", Target: target, Runs: true}
}

// steps returns the steps of a plan, a word each.
func steps(p *Plan) string {
	var all []string
	for _, one := range p.all() {
		all = append(all, string(one.Do)+":"+one.Owner)
	}
	return strings.Join(all, " ")
}
