package rollout

import (
	"strings"
	"testing"
)

// TestDraw: what happens to each container, and why (BD-5, BD-7, BD-8, BO-2). The plan refuses containers that cannot
// be reached, and a project of another generation of Compose, all at once (BD-2, BD-3). It reports a container in a
// wrong state that matches the files, and leaves it alone. What has run to its end stays.
func TestDraw(t *testing.T) {
	scenes(t, "", true, map[string]string{
		"":                      "",
		"Containers=":           "create db/1, create web/1, create web/2",
		"-web1":                 "create web/1",
		"web1.Hash=w0":          "recreate web/1 (its configuration has changed)",
		"db1.ImageID=sha256:00": "recreate db/1 (its image has changed: db:1 is dd now)",
		"web2.On=":              "recreate web/2 (it is not on the network shop_front)",
		"web1.State=exited":     "start web/1 (it does not run: exited)",
		"+web5@10.0.0.15":       "delete web/5 (the files want 2 of web)",
		"*web1@10.0.0.11":       "delete web/1 (an earlier deploy left it)",
		"*web1@10.0.0.11 -web1": "start web/1 (an earlier deploy was interrupted before it renamed the container to " +
			"shop-web-1)",
		"Services.db.Once=true": "",
		"web1.Health=unhealthy": "note: shop-web-1 is unhealthy, but " +
			"matches the files: it stays unchanged",
		"db1.State=exited": "start db/1 (it does not run: exited)",
		"web2.On.0.Addresses=10.0.0.99": "recreate web/2 (its address on " +
			"shop_front changes: 10.0.0.99 to 10.0.0.12)",
		"web2.On.0.Addresses=10.0.0.12,2001:db8::1":             "",
		"Services.db.Once=true db1.State=exited":                "",
		"Services.db.Once=true db1.State=exited db1.ExitCode=1": "start db/1 (it does not run: exited)",
		"+mail1@10.0.0.20 mail1.Name=postman":                   "delete postman (the files have no service mail)",
		"+web9@10.0.0.30 web9.Number=1 web9.OneOff=true": "note: shop-web-9 was made by `compose run`, is running, " +
			"and stays unchanged",
		"+web9@10.0.0.30 web9.Number=1 web9.OneOff=true web9.State=exited": "delete shop-web-9 (`compose run` made " +
			"it, and it has ended)",
		"web1.Hash=w0 web2.Version=": "refused: shop-web-2 does not show which Compose made it & version is \"\" & " +
			"Compose 5.5.0 might not recreate it; recreate it once with that Compose",
		"web1.Hash=w0 web2.Version=dev": "refused: version is \"dev\"",
		"Compose=dev web1.Hash=w0": "refused: shop-web-1 was made by Compose \"5.5.0\" & has the version \"dev\", " +
			"which Berth does not know; name another with --compose-command",
		"unread db1.State=paused web1.State=dead web2.Version=1.29.2 +web8@10.0.0.40 web8.Number=2 web8.Name=twin": "" +
			"refused: shop-db-1 cannot be reached: it is paused; run `berth check` & shop-web-1 & dead & shop-web-2 was " +
			"made by Compose 1.29.2, and the compose command is 5.5.0 & shop-cache-1 cannot be inspected & shop-web-2 " +
			"and twin are both replica 2 of web",
	})
}

// TestMoved: a saved plan is out of date as soon as any part of it is, and says which.
func TestMoved(t *testing.T) {
	const internal = "front Wants.Internal=true"
	for _, c := range []struct{ before, now, want string }{
		{"", "", ""},
		{"", "Hashes.web=w9", "the configuration of web has changed"},
		{"", "Images.db:1.ID=sha256:11", "the image db:1 of db has changed"},
		{"", "web1.ID=other", "shop/web/1 has another container"},
		{"", "web2.State=exited", "the container shop-web-2 was running, and is"},
		{"", "Services.web.Instances.1.On.0.Addresses=10.0.0.50", "the addresses of shop/web/2 have changed"},
		{"", "-web2", "shop/web/2 has another container: none, not"},
		{"", "Compose=5.6.0", "the compose command was 5.5.0, and is 5.6"},
		{"Files.0.Path=a.yaml", "Files.0.Path=a.yaml Files.1.Path=b.yaml", "the file b.yaml is new"},
		{"Files.0.Path=a.yaml", "Files.0.Path=a.yaml Files.0.Digest=9", "the file a.yaml has changed"},
		{"front", "front", ""},
		{internal, internal, ""},
		{"front", internal, "the network shop_front is recreated now: its internal changes false -> true"},
		{internal, "front", "the network shop_front is no longer recreated"},
	} {
		before, err := Draw(inputs(c.before))
		fine(t, err)
		now, err := Draw(inputs(c.now))
		fine(t, err)
		moved := strings.Join(before.Moved(now), "; ")
		if !strings.Contains(moved, c.want) || c.want == "" && moved != "" {
			t.Errorf("%q and then %q: it says %q, want %q", c.before, c.now, moved, c.want)
		}
	}
}

// TestDrawStartFirst: of the containers beside a replica that will be exchanged, the one that matches the files is its
// successor. The others are removed. The plan says once who needs a second address.
func TestDrawStartFirst(t *testing.T) {
	const base = "Services.web.Update.StartFirst=true web1.Hash=w0"
	scenes(t, base, true, map[string]string{
		"": "recreate web/1 (its configuration has changed), another for shop/web/1",
		"web1.Volumes.0.Name=" + strings.Repeat("a", 64) + " web1.Volumes.0.Target=/data": "refused: both would write " +
			"the volume at /data",
	})
	const recreated = "recreate web/1 (its configuration has changed; its address on shop_front changes: 10.0.0.11 to " +
		"10.0.0.21)"
	left := "delete web/1 (an earlier deploy left it), " + recreated
	scenes(t, base+" Services.web.Instances.0.On.0.Addresses=10.0.0.21 *web1@10.0.0.21", true, map[string]string{
		"":                                      strings.Replace(recreated, "web/1", "web/1 beside", 1),
		"0123456789ab.State=exited":             left,
		"0123456789ab.Hash=w0":                  left,
		"0123456789ab.On.0.Addresses=10.0.0.77": left,
	})
}

// migrate is a worker.
const migrate = " Services.migrate.Image=migrate:1 Services.migrate.Worker=true " +
	"Services.migrate.Instances.0.Owner=shop/migrate/1 Services.migrate.Instances.0.Number=1 Hashes.migrate=m1 " +
	"Images.migrate:1.ID=sha256:ff"

// TestDrawWorkers: a worker runs if anything changes, or if this version of it has not run yet. A worker alone is no
// change, and remains of it are deleted (BD-6).
func TestDrawWorkers(t *testing.T) {
	scenes(t, migrate, true, map[string]string{"": "run migrate/1 (it has not run yet)"})
	scenes(t, migrate+" Ran.migrate.Hash=m1 Ran.migrate.Image=sha256:ff", true, map[string]string{
		"":                              "",
		"Hashes.migrate=m2":             "run migrate/1 (its configuration has changed)",
		"Images.migrate:1.ID=sha256:0f": "run migrate/1 (its image has changed)",
		"web2.Hash=w0": "recreate web/2 (its configuration has changed), run migrate/1 " +
			"(something else changes)",
		"+mail1@10.0.0.3": "delete mail/1 (the files have no service mail), run migrate/1 " +
			"(something else changes)",
		"+migrate1@10.0.0.5 migrate1.State=exited": "delete migrate/1 (a worker is deleted after its run)",
	})
}

// TestDrawShares: a container that uses the network, processes or volumes of another one is recreated with it, also if
// the other one is gone. Containers outside of the project stay.
func TestDrawShares(t *testing.T) {
	const used = "recreate log/1 (it shares resources of shop/web/1, which is replaced or removed)"
	scenes(t, "Services.log.Image=web:1 Services.log.Shares=web Services.log.Instances.0.Owner=shop/log/1 "+
		"Services.log.Instances.0.Number=1 Hashes.log=l1 +log1@10.0.0.5 log1.On= log1.Shares=web1", true,
		map[string]string{
			"":                         "",
			"web1.Hash=w0":             "recreate web/1 (its configuration has changed), " + used,
			"web2.Hash=w0":             "recreate web/2 (its configuration has changed)",
			"web1.State=exited":        "start web/1 (it does not run: exited), " + used,
			"log1.Shares=before":       "recreate log/1 (it shares resources of before, which is gone)",
			"log1.Shares=web1,foreign": "",
		})
}

// TestDrawUnclaimed: a reservation of an owner without a container ends if deploys have made all of the owner's
// reservations, and only in a deploy of the whole project. It stays if the owner has a container, is named, or uses the
// address (BO-3, BO-15).
func TestDrawUnclaimed(t *testing.T) {
	scenes(t, "Unclaimed.0.Owner=shop/web/3 Unclaimed.0.Service=web Unclaimed.0.Number=3 Unclaimed.0.Why=why "+
		"Unclaimed.0.Made=true Unclaimed.0.On.0.Planned=front Unclaimed.0.On.0.Has=10.0.0.13", true, map[string]string{
		"": "delete web/3 (why; it has 10.0.0.13 on front reserved, but no container)",
		"Unclaimed.0.Made=false": "note: shop/web/3 has 10.0.0.13 on front reserved, but no container, and why; it " +
			"may not be from a deploy, so it stays: `berth reservation rm --owner shop/web/3 --everywhere` ends " +
			"the reservation",
		"Unclaimed.0.InUse=true":       "",
		"Unclaimed.0.Owner=shop/web/2": "",
		"+web3@10.0.0.13":              "delete web/3 (the files want 2 of web)",
		"Task.Do=start":                "",
	})
}

// TestTask: which containers a task starts, stops, recreates or leaves alone (BD-10). It pulls only images of
// containers that it creates.
func TestTask(t *testing.T) {
	const dropped = " +mail1@10.0.0.20 +web5@10.0.0.15"
	scenes(t, "Images=", true, map[string]string{
		"": "pull db:1, pull web:1, recreate db/1 (its image will be pulled: db:1), recreate web/1 (its image will " +
			"be pulled: web:1), recreate web/2 (its image will be pulled: web:1)",
		"Task.Do=recreate Task.Service=web Task.Number=1": "pull web:1, recreate web/1 (its image will be pulled: " +
			"web:1; it is requested)",
		"Task.Do=stop": "stop db/1, stop web/1, stop web/2",
	})
	scenes(t, "Task.Do=start", true, map[string]string{
		"":                                  "",
		"web1.State=exited":                 "start web/1 (it does not run: exited)",
		"-web2":                             "create web/2",
		"db1.Hash=d0 web2.Hash=w0":          "",
		"web1.Hash=w0 web1.State=exited":    "recreate web/1 (its configuration has changed)",
		"Task.Service=db web1.State=exited": "",
		"Task.Service=web Task.Number=1 web1.State=exited": "start web/1 (it does not run: exited)",
		"Task.Service=web Task.Number=2 web2.State=exited": "start web/2 (it does not run: exited)",
		"Task.Service=web Task.Number=3": "refused: the files give web 2 replicas, so there is " +
			"no web/3",
		"Task.Service=wbe": `refused: the project shop has no service "wbe"; it has db, web`,
	})
	scenes(t, "Task.Do=stop", true, map[string]string{
		"":                               "stop db/1, stop web/1, stop web/2",
		"web1.State=exited":              "stop db/1, stop web/2",
		"Task.Service=web":               "stop web/1, stop web/2",
		"Task.Service=web Task.Number=2": "stop web/2",
		"Task.Service=mail" + dropped:    "stop mail/1",
		"Task.Service=web Task.Number=5" + dropped: "stop web/5",
		dropped: "stop db/1, stop web/1, stop web/2, stop web/5, stop mail/1",
	})
	const used = " (it shares resources of shop/db/1, which is replaced or removed)"
	scenes(t, "Task.Do=recreate", true, map[string]string{
		"": "recreate db/1 (it is requested), recreate web/1 (it is requested), recreate web/2 (it is requested)",
		"Task.Service=web web1.State=exited db1.Hash=d0 web2.Hash=w0": "recreate web/1 (it is requested), " +
			"recreate web/2 (its configuration has changed; it is requested)",
		"Task.Service=db Services.web.Shares=db web1.Shares=db1 web2.Shares=db1": "recreate db/1 (it is requested), " +
			"recreate web/1" + used + ", recreate web/2" + used,
		"Task.Service=mail" + dropped: `refused: has no service "mail"`,
		"Task.Service=web Task.Number=2 web1.On.0.Addresses=10.0.0.12 web2.On.0.Addresses=10.0.0.11": "refused: " +
			"shop/web/2 gets 10.0.0.12 on shop_front, which the container shop-web-1 has until",
	})
}

// recreated is the plan that recreates the tests' network with its containers.
func recreated(why string) string {
	why = " (the network shop_front is recreated: " + why + ")"
	return "recreate web/1" + why + ", recreate web/2" + why + ", network shop_front"
}

// TestDrawNetwork: a network that differs from the files is recreated with all of the project's containers on it. The
// plan refuses if others are on it. A difference that Compose ignores changes nothing.
func TestDrawNetwork(t *testing.T) {
	const off = " (it is not on the network shop_back)"
	scenes(t, "front", true, map[string]string{
		"":                                      "",
		"There=false Has=":                      "",
		"Has.Project= Wants.Driver=macvlan":     "",
		"Has.Project=blog Wants.Driver=macvlan": "",
		"Wants.Driver=macvlan":                  recreated("its driver changes bridge -> macvlan"),
		"Wants.IPAM=default":                    recreated("its IPAM driver changes berth -> default"),
		"Wants.Internal=true":                   recreated("its internal changes false -> true"),
		"Wants.IPv6=true":                       recreated("its enable_ipv6 changes false -> true"),
		"Has.IPv6=true":                         "",
		"Wants.Options=":                        recreated("its option mtu changes 1400 -> none"),
		"Wants.IPAMOptions.network=back":        recreated("its IPAM option network changes front -> back"),
		"Has.IPAMOptions=":                      "",
		"Has.Hashed=true Wants.Labels.a=b":      recreated("its label a changes none -> b"),
		"Wants.Labels.a=b":                      "",
		"Wants.Pools.0.Subnet=10.0.1.0/24":      recreated("its subnet changes 10.0.0.0/24 -> 10.0.1.0/24"),
		"Wants.Pools.1.Subnet=fd00::/64":        recreated("its subnet changes none -> fd00::/64"),
		"Wants.Pools=":                          "",
		"Wants.Pools.0.Range=10.0.0.64/26": recreated("the ip_range of its subnet 10.0.0.0/24 changes none " +
			"-> 10.0.0.64/26"),
		"Wants.Pools.0.Gateway=10.0.0.254": recreated("the gateway of its subnet 10.0.0.0/24 changes 10.0.0.1 " +
			"-> 10.0.0.254"),
		"Wants.Pools.0.Gateway=10.0.0.1": "",
		"Wants.Internal=true Has.On.2.ID=x Has.On.2.Name=probe": "refused: the container probe of another project " +
			"is on it",
		"Wants.Network=shop_back": "recreate db/1" + off + ", recreate web/1" + off + ", recreate web/2" + off,
	})
}

// TestDrawNetworkLasting: a network is recreated only with the whole project, and not while a container of the project
// on it stays as it is.
func TestDrawNetworkLasting(t *testing.T) {
	const base, change = "front Wants.Internal=true ", "its internal changes false -> true"
	const asked = " (the network shop_front is recreated: " + change + "; it is requested)"
	const whole = "refused: that requires a deploy of the whole project"
	scenes(t, base, true, map[string]string{
		"Task.Do=recreate": "recreate db/1 (it is requested), recreate web/1" + asked + ", recreate web/2" + asked +
			", network shop_front",
		"Task.Do=stop":  "stop db/1, stop web/1, stop web/2",
		"Task.Do=start": whole,
		"Task.Do=recreate Task.Service=db Task.Number=1": whole,
	})
	for guest, all := range map[string]map[string]string{
		"+web9@10.0.0.30 web9.Number=1 web9.OneOff=true": {
			"": "refused: the network shop_front is recreated: " + change + ", and the container shop-web-9 is on " +
				"it and stays unchanged; remove or disconnect that container",
			"web9.State=created": "refused: the container shop-web-9 is on it and stays unchanged",
			"web9.State=exited":  "delete shop-web-9 (`compose run` made it, and it has ended), " + recreated(change),
		},
		"+web5@10.0.0.15": {
			"":                 "delete web/5 (the files want 2 of web), " + recreated(change),
			"Task.Do=recreate": "refused: the container shop-web-5 is on it and stays unchanged",
		},
		"+migrate1@10.0.0.16 migrate1.ImageID=sha256:ff": {
			"": "refused: the container shop-migrate-1 is on it and stays unchanged",
			"Hashes.migrate=m2": strings.Replace(recreated(change), ", network", ", run migrate/1 (it has not run yet), network",
				1),
		},
	} {
		id, _, _ := strings.Cut(guest[1:], "@")
		on := guest + " Has.On.2.ID=" + id + " Has.On.2.Project=shop Has.On.2.Name=shop-" + id[:len(id)-1] + "-" +
			id[len(id)-1:]
		if strings.HasPrefix(id, "migrate") {
			on = migrate + " " + on
		}
		scenes(t, base+on, true, all)
	}
	scenes(t, base+"Services.web.Update.StartFirst=true *web1@10.0.0.11 web1.On= Has.On= Has.On.0.ID=0123456789ab "+
		"Has.On.0.Project=shop", true, map[string]string{"": "delete web/1 (an earlier deploy left it), recreate " +
		"web/1 (it is not on the network shop_front), network shop_front"})
}

// TestDrawVolumes: which volumes become orphans, which are copied and to where, and which containers are recreated for
// that (BD-5, BD-8).
func TestDrawVolumes(t *testing.T) {
	scenes(t, "volumes", false, map[string]string{
		"":                    "",
		"~shop_old":           "orphan shop_old",
		"~shop_old !shop_old": "",
		"!shop_log":           "use shop_log",
		"~other_data Stored.other_data.Project=other Stored.nobodys.Driver=":        "",
		"~shop_old Stored.shop_old.Users.0.ID=x Stored.shop_old.Users.0.Name=guest": "",
		"~shop_old Volumes.shop_old.Key=old Volumes.shop_old.Asleep=true":           "",
		"Volumes.data.Driver=nfs": "copy shop_data>shop_data-orphan-1, recreate db/1, recreate web/1",
		"Volumes.log.Options.o=bind ~shop_log-orphan-1 !shop_log-orphan-1 !shop_log-orphan-2": "copy " +
			"shop_log>shop_log-orphan-3, recreate db/1",
		"Stored.shop_log.Labels.shelf=top":                    "copy shop_log>shop_log-orphan-1, recreate db/1",
		"Stored.shop_log.Labels=com.docker.compose.version:5": "",
		"Volumes.log.Driver=nfs Volumes.log.External=true":    "",
		"Volumes.log.Driver=nfs Volumes.log.Services=mail":    "",
		"Volumes.data.Name=fresh Services.db.Mounts.data.Volume=fresh": "copy fresh<shop_data, orphan shop_data, " +
			"recreate db/1, recreate web/1",
		"Volumes.log.Name=fresh Stored.fresh.Driver=local": "orphan shop_log",
		"Stored.shop_data.Project= Stored.shop_data.Key= Stored.shop_data.Name=nas": "copy shop_data<nas foreign, " +
			"recreate db/1, recreate web/1",
		"Volumes.data.Driver=nfs ~shop_data-orphan-1 !shop_data-orphan-1:saving": "discard shop_data-orphan-1, copy " +
			"shop_data>shop_data-orphan-1, recreate db/1, recreate web/1",
		"~shop_data-orphan-1 !shop_data-orphan-1:saving": "discard shop_data-orphan-1",
		"-shop_data -db1 -web1 ~shop_data-orphan-1 !shop_data-orphan-1:restoring": "copy shop_data<shop_data-orphan-1, " +
			"create db/1, create web/1",
		"~shop_data-orphan-1 !shop_data-orphan-1:restoring": "copy shop_data<shop_data-orphan-1, recreate db/1, recreate " +
			"web/1",
		"~shop_old-orphan-1 !shop_old-orphan-1:restoring":        "orphan shop_old-orphan-1",
		"~shop_old-orphan-1":                                     "orphan shop_old-orphan-1",
		"Volumes.data.Driver=nfs Stored.shop_data.Project=other": "refused: belongs to the project other",
		"Volumes.data.Driver=nfs Stored.shop_data.Users.2.ID=x Stored.shop_data.Users.2.Name=guest " +
			"Stored.shop_data.Users.2.Project=other": "refused: the container guest of the project other uses it",
		"Volumes.data.Driver=nfs Task.Do=recreate Task.Service=web": "refused: the container shop-db1, which stays " +
			"unchanged, uses it",
		"Volumes.log.Driver=nfs Task.Do=recreate Task.Service=web": "recreate web/1, recreate web/2",
	})
}
