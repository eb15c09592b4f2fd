package rollout

import (
	"fmt"
	"strings"
	"testing"

	"berth/internal/deploy"
	"berth/internal/deploy/scene"
	"berth/internal/ipam"
)

// withVolumes is wanted with a volume that both services use, and one that is the database's alone.
func withVolumes() Inputs {
	in := wanted()
	in.Containers = asWanted()
	in.Volumes = []deploy.Volume{
		{Key: "data", Name: "shop_data", Services: []string{"db", "web"}},
		{Key: "log", Name: "shop_log", Services: []string{"db"}},
	}
	in.Services[0].Mounts = []deploy.Mount{{Key: "data", Volume: "shop_data", Target: "/data"}}
	data, log := volume("shop_data", "data"), volume("shop_log", "log")
	data.Users = []scene.User{user("db1", "db", "/data"), user("web1", "web", "/shared")}
	log.Users = []scene.User{user("db1", "db", "/log")}
	in.Stored = []scene.Stored{data, log}
	return in
}

func volume(name, key string) scene.Stored {
	return scene.Stored{Name: name, Driver: "local", Project: "shop", Key: key}
}

func user(id, service, target string) scene.User {
	return scene.User{ID: id, Name: "shop-" + id, Service: service, Project: "shop", Target: target, Runs: true}
}

// TestDrawVolumes: which volumes are orphans, which are copied and to where, and which containers that takes along
// (BD-5, BD-8).
func TestDrawVolumes(t *testing.T) {
	recorded := func(in *Inputs, volume, of string, stage ipam.OrphanStage) {
		in.Orphans = append(in.Orphans, ipam.Orphan{Volume: volume, Project: "shop", Of: of, Stage: stage})
	}
	for what, c := range map[string]struct {
		change func(in *Inputs)
		want   string // volumes, and steps
		refuse string
	}{
		"as they should be": {func(*Inputs) {}, " | keep keep keep", ""},
		"one that no service uses": {func(in *Inputs) { in.Stored = append(in.Stored, volume("shop_old", "old")) },
			"orphan shop_old | keep keep keep", ""},
		"one that is recorded": {func(in *Inputs) {
			in.Stored = append(in.Stored, volume("shop_old", "old"))
			recorded(in, "shop_old", "", "")
		}, " | keep keep keep", ""},
		"one that is recorded and used": {func(in *Inputs) { recorded(in, "shop_log", "", "") },
			"use shop_log | keep keep keep", ""},
		"one of another project, and one of nobody": {func(in *Inputs) {
			other := volume("other_data", "data")
			other.Project = "other"
			in.Stored = append(in.Stored, other, scene.Stored{Name: "nobodys"})
		}, " | keep keep keep", ""},
		"one that another project uses": {func(in *Inputs) {
			old := volume("shop_old", "old")
			old.Users = []scene.User{{ID: "x", Name: "guest"}}
			in.Stored = append(in.Stored, old)
		}, " | keep keep keep", ""},
		"one of a profile that is not asked for": {func(in *Inputs) {
			in.Volumes = append(in.Volumes, deploy.Volume{Key: "old", Name: "shop_old", Asleep: true})
			in.Stored = append(in.Stored, volume("shop_old", "old"))
		}, " | keep keep keep", ""},
		"another driver": {func(in *Inputs) { in.Volumes[0].Driver = "nfs" },
			"copy shop_data>shop_data-orphan-1 | recreate recreate keep", ""},
		"other options, and copies from before": {func(in *Inputs) {
			in.Volumes[1].Options = map[string]string{"o": "bind"}
			in.Stored = append(in.Stored, scene.Stored{Name: "shop_log-orphan-1", CopyOf: "shop_log", CopyFor: "shop"})
			recorded(in, "shop_log-orphan-1", "shop_log", "")
			recorded(in, "shop_log-orphan-2", "shop_log", "")
		}, "copy shop_log>shop_log-orphan-3 | recreate keep keep", ""},
		"another label": {func(in *Inputs) { in.Stored[1].Labels = map[string]string{"shelf": "top"} },
			"copy shop_log>shop_log-orphan-1 | recreate keep keep", ""},
		"a label that Compose gives": {func(in *Inputs) {
			in.Stored[1].Labels = map[string]string{"com.docker.compose.version": "5"}
		}, " | keep keep keep", ""},
		"an external one": {func(in *Inputs) { in.Volumes[1].Driver, in.Volumes[1].External = "nfs", true },
			" | keep keep keep", ""},
		"one that nobody needs yet": {func(in *Inputs) {
			in.Volumes[1].Driver, in.Volumes[1].Services = "nfs", []string{"mail"}
		}, " | keep keep keep", ""},
		"another name": {func(in *Inputs) { in.Volumes[0].Name, in.Services[0].Mounts[0].Volume = "fresh", "fresh" },
			"copy fresh<shop_data orphan shop_data | recreate recreate keep", ""},
		"another name, where that is there": {func(in *Inputs) {
			in.Volumes[1].Name = "fresh"
			in.Stored = append(in.Stored, scene.Stored{Name: "fresh", Driver: "local"})
		}, "orphan shop_log | keep keep keep", ""},
		"one of somebody else before": {func(in *Inputs) {
			in.Stored[0].Name, in.Stored[0].Project, in.Stored[0].Key = "nas", "", ""
		}, "copy shop_data<nas foreign | recreate recreate keep", ""},
		"cut off while it was saved": {func(in *Inputs) {
			in.Volumes[0].Driver = "nfs"
			in.Stored = append(in.Stored, scene.Stored{Name: "shop_data-orphan-1", CopyOf: "shop_data", CopyFor: "shop"})
			recorded(in, "shop_data-orphan-1", "shop_data", ipam.OrphanSaving)
		}, "discard shop_data-orphan-1 copy shop_data>shop_data-orphan-1 | recreate recreate keep", ""},
		"cut off while it was saved, and not wanted any more": {func(in *Inputs) {
			in.Stored = append(in.Stored, scene.Stored{Name: "shop_data-orphan-1", CopyOf: "shop_data", CopyFor: "shop"})
			recorded(in, "shop_data-orphan-1", "shop_data", ipam.OrphanSaving)
		}, "discard shop_data-orphan-1 | keep keep keep", ""},
		"cut off when it was removed": {func(in *Inputs) {
			in.Stored[0] = scene.Stored{Name: "shop_data-orphan-1", CopyOf: "shop_data", CopyFor: "shop"}
			in.Containers = in.Containers[2:]
			recorded(in, "shop_data-orphan-1", "shop_data", ipam.OrphanRestoring)
		}, "copy shop_data<shop_data-orphan-1 | create create keep", ""},
		"cut off when it was made, and used since": {func(in *Inputs) {
			in.Stored = append(in.Stored, scene.Stored{Name: "shop_data-orphan-1", CopyOf: "shop_data", CopyFor: "shop"})
			recorded(in, "shop_data-orphan-1", "shop_data", ipam.OrphanRestoring)
		}, "copy shop_data<shop_data-orphan-1 | recreate recreate keep", ""},
		"cut off, and not used any more": {func(in *Inputs) {
			in.Stored = append(in.Stored, scene.Stored{Name: "shop_old-orphan-1", CopyOf: "shop_old", CopyFor: "shop"})
			recorded(in, "shop_old-orphan-1", "shop_old", ipam.OrphanRestoring)
		}, "orphan shop_old-orphan-1 | keep keep keep", ""},
		"a copy of which nothing is recorded": {func(in *Inputs) {
			in.Stored = append(in.Stored, scene.Stored{Name: "shop_old-orphan-1", CopyOf: "shop_old", CopyFor: "shop"})
		}, "orphan shop_old-orphan-1 | keep keep keep", ""},
		"another project's": {func(in *Inputs) { in.Volumes[0].Driver, in.Stored[0].Project = "nfs", "other" }, "",
			"is of the project other"},
		"one that others use, too": {func(in *Inputs) {
			in.Volumes[0].Driver = "nfs"
			in.Stored[0].Users = append(in.Stored[0].Users, scene.User{ID: "x", Name: "guest", Project: "other"})
		}, "", "the container guest of the project other uses it"},
		"one that a part of the project has": {func(in *Inputs) {
			in.Volumes[0].Driver, in.Task = "nfs", Task{Do: Recreate, Service: "web"}
		}, "", "the container shop-db1, which is left as it is, has it"},
		"one that a part does not need": {func(in *Inputs) {
			in.Volumes[1].Driver, in.Task = "nfs", Task{Do: Recreate, Service: "web"}
		}, " | recreate recreate", ""},
	} {
		t.Run(what, func(t *testing.T) {
			in := withVolumes()
			c.change(&in)
			p, err := Draw(in)
			if c.refuse != "" {
				if err == nil || !strings.Contains(err.Error(), c.refuse) {
					t.Errorf("it is not refused with %q: %v", c.refuse, err)
				}
				return
			}
			fine(t, err)
			if got := ofVolumes(p); got != c.want {
				t.Errorf("planned is %q, want %q", got, c.want)
			}
			if p.Changes() == (c.want == " | keep keep keep") {
				t.Errorf("whether it changes anything is %v", p.Changes())
			}
		})
	}
}

// ofVolumes is what a plan does with volumes, and with containers.
func ofVolumes(p *Plan) string {
	var volumes, steps []string
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
		volumes = append(volumes, text)
	}
	for _, one := range p.all() {
		steps = append(steps, string(one.Do))
	}
	return strings.Join(volumes, " ") + " | " + strings.Join(steps, " ")
}
