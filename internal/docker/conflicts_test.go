package docker

import (
	"testing"

	"berth/internal/ipam"
)

// newShared is a scene with a second Docker network, n2, of the subnet of n1. A comparison finds nothing.
func newShared(t *testing.T) *scene {
	return newScene().steps(t, `
		attach 2 10.8.0.0/24
		network 2 10.8.0.0/24 -
	`)
}

// TestConflicts: one finding names all Docker networks of a container whose subnets overlap, whether it runs or not.
func TestConflicts(t *testing.T) {
	playScenes(t, func() *scene { return newShared(t) }, `
		a network each:
			run db 2 10.8.0.3 3
			lease 10.8.0.3 3 2
		both, while it runs:
			joins 2 10.8.0.3 3
			lease 10.8.0.3 3 2
			-> conflicting_networks 10.8.0.0/24
			says web is on the Docker networks docker1 (10.8.0.0/24) and docker2 (10.8.0.0/24), on Berth's network front:
		both, and it does not run:
			run job 1 10.8.0.9 9 state=exited endpoints=[] endpoints=[{"network":"n1"}]
			joins 2
			-> conflicting_networks 10.8.0.0/24
			says the container job is on
		both, where the second one was connected while it runs, and not joined:
			joins 2
			-> conflicting_networks 10.8.0.0/24
		two containers on both are two findings:
			joins 2 10.8.0.3 3
			lease 10.8.0.3 3 2
			run db 2 10.8.0.4 4
			lease 10.8.0.4 4 2
			joins 1 10.8.0.5 5
			lease 10.8.0.5 5 1
			-> conflicting_networks 10.8.0.0/24
			-> conflicting_networks 10.8.0.0/24
		three networks of one subnet are one finding:
			attach 3 10.8.0.0/24
			network 3 10.8.0.0/24 -
			joins 2 10.8.0.3 3
			lease 10.8.0.3 3 2
			joins 3 10.8.0.4 4
			lease 10.8.0.4 4 3
			-> conflicting_networks 10.8.0.0/24
			says docker1 (10.8.0.0/24) and docker2 (10.8.0.0/24) and docker3 (10.8.0.0/24)
		two networks of two families are one finding:
			attach 3 fd00:8::/64
			attach 4 fd00:8::/64
			set network subnets=[{"cidr":"10.8.0.0/24","gateway":"10.8.0.1"},{"cidr":"fd00:8::/64"}]
			network 2 10.8.0.0/24 - id=n5 name=docker5 subnets=[] subnets=[{"cidr":"10.8.0.0/24"},{"cidr":"fd00:8::/64"}]
			attach 5 10.8.0.0/24
			joins 5
			-> conflicting_networks 10.8.0.0/24
		only the IPv6 subnets are the same:
			attach 3 fd00:8::/64
			attach 4 fd00:8::/64
			attach 5 10.9.0.0/24
			set network subnets=[{"cidr":"10.8.0.0/24","gateway":"10.8.0.1"},{"cidr":"fd00:8::/64"}]
			network 5 10.9.0.0/24 - subnets=[] subnets=[{"cidr":"10.9.0.0/24"},{"cidr":"fd00:8::/64"}]
			joins 5
			-> conflicting_networks fd00:8::/64
		subnets of two spaces that overlap:
			attach 5 10.8.0.0/16 space=lab network=wide
			network 5 10.8.0.0/16 - options={"space":"lab"}
			joins 5
			-> conflicting_networks 10.8.0.0/16 in lab
		another subnet:
			attach 5 10.9.0.0/24
			network 5 10.9.0.0/24 -
			joins 5
		a Docker network that is not of Berth:
			joins 7
		what is no container, such as a swarm's load balancer:
			run lb 2 10.8.0.3 3 id=
			lease 10.8.0.3 3 2
			joins 1 10.8.0.4 4
			lease 10.8.0.4 4 1
	`, func(*testing.T, *scene, *comparison) {})
}

// TestConflictSays: the finding names the container as an owner, both networks, and the commands that help.
func TestConflictSays(t *testing.T) {
	s := newShared(t).steps(t, "set container project=shop service=web number=1\njoins 2")
	found := s.compare().found
	if len(found) != 1 {
		t.Fatalf("found %q", brief(found))
	}
	f := found[0].Finding
	const says = "the container web is on the Docker networks docker1 (10.8.0.0/24) and docker2 (10.8.0.0/24), which " +
		"are on Berth's network front: their routes conflict, so the engine cannot start the container again; " +
		"disconnect the container from one of them with " +
		"`docker network disconnect docker1 web` or `docker network disconnect docker2 web`"
	if f.Kind != ipam.ConflictingNetworks || f.Owner != "shop/web/1" || f.Network != "front" || f.Detail != says {
		t.Errorf("it says %+v", f)
	}
	if again := both(found, s.compare().found); len(again) != 1 {
		t.Error("a second view does not confirm it")
	}
	// Another network is another conflict, so a second view does not confirm the first.
	other := newScene().steps(t, "attach 3 10.8.0.0/24\nnetwork 3 10.8.0.0/24 -\njoins 3")
	if again := both(found, other.compare().found); len(again) != 0 {
		t.Errorf("confirmed by %+v", again)
	}
}
