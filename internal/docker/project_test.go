package docker

import (
	"net/netip"
	"slices"
	"testing"

	"berth/internal/ipam"

	"github.com/google/go-cmp/cmp"
	"github.com/moby/moby/api/types/container"
)

// TestAdoptProject: each network keeps Docker's name. An owner is the replica, if the container's name means it, or
// else the container_name. Addresses of the network itself, which Compose requests again, are not planned.
func TestAdoptProject(t *testing.T) {
	of := func(name, service string, network string, addresses ...string) ipam.EngineContainer {
		return ipam.EngineContainer{ID: "c-" + name, Name: name, State: "running", Project: "shop", Service: service,
			Number:    1,
			Endpoints: []ipam.EngineEndpoint{{Network: network, ID: "e-" + name, Addresses: addrs(addresses...)}}}
	}
	views := []ipam.EngineView{{
		Networks: []ipam.EngineNetwork{{ID: "n1", Name: "shop_default", Driver: "default", Subnets: []ipam.EngineSubnet{
			{CIDR: prefix("172.20.0.0/16"), Gateway: addr("172.20.0.1"),
				Aux: map[string]netip.Addr{"router": addr("172.20.0.2")}}}}},
		Containers: []ipam.EngineContainer{of("shop-web-1", "web", "n1", "172.20.0.4"),
			of("shop_mail_1", "mail", "n1", "172.20.0.5"),
			of("database", "db", "n1", "172.20.0.3"), of("0123456789ab_shop-job-1", "job", "n1", "172.20.0.6")},
	}, {
		Networks: []ipam.EngineNetwork{{ID: "n2", Name: "shop_back", Driver: "default",
			Subnets: []ipam.EngineSubnet{{CIDR: prefix("172.21.0.0/16")}}}},
		Containers: []ipam.EngineContainer{of("database", "db", "n2", "172.21.0.2")},
	}}
	plan, err := AdoptProject(views)
	must(t, err)
	var got []string
	for _, n := range plan.Networks {
		for _, r := range n.Reservations {
			got = append(got, n.Name+" "+r.Owner+" "+r.Address.String())
		}
		if len(n.Addresses) > 0 {
			t.Errorf("%s has %+v taken, which Compose asks for", n.Name, n.Addresses)
		}
	}
	want := []string{"shop_default shop/web/1 172.20.0.4", "shop_default shop/mail/1 172.20.0.5",
		"shop_default database 172.20.0.3",
		"shop_default shop/job/1 172.20.0.6", "shop_back database 172.21.0.2"}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("what is reserved:\n%s", d)
	}
}

// TestPathsOf: docker-compose 1.29 names files relative to its directory, newer versions by path, and other programs
// not at all.
func TestPathsOf(t *testing.T) {
	for _, c := range []struct {
		directory, files string
		want             []string
	}{
		{"/srv/shop", "compose.yaml,more/m.yaml", []string{"/srv/shop/compose.yaml", "/srv/shop/more/m.yaml"}},
		{"/srv/shop", "/srv/shop/compose.yaml,/etc/x.yaml", []string{"/srv/shop/compose.yaml", "/etc/x.yaml"}},
		{"", "", nil},
	} {
		made := &container.Summary{Labels: map[string]string{labelDirectory: c.directory, labelFiles: c.files}}
		if files := pathsOf(made, labelFiles); !slices.Equal(files, c.want) {
			t.Errorf("%+v: made of %q", c, files)
		}
	}
}
