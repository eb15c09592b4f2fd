package docker

import (
	"slices"
	"testing"

	"berth/internal/ipam"

	"github.com/google/go-cmp/cmp"
	"github.com/moby/moby/api/types/container"
)

// TestAdoptProject: each network keeps Docker's name. The owner is the replica if the container has the replica's
// name; otherwise it is the container_name. Addresses of the network itself, which Compose requests again, are not
// planned.
func TestAdoptProject(t *testing.T) {
	var views []ipam.EngineView
	readJSON(t, "project.json", &views)
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

// TestPathsOf: docker-compose 1.29 names files relative to its directory, and newer versions by path. Other
// programs name none.
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
