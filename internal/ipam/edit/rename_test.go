package edit_test

import (
	"slices"
	"testing"

	"berth/internal/ipam/ipamtest"
)

// A renamed network keeps its former name for Docker's requests, until another network gets the name. Both edits name
// the Docker networks that were created with it.
func TestFormerNames(t *testing.T) {
	ipamtest.RunScripts(t, []ipamtest.Script{
		{"a request with the former name", `
			network office subnet=192.0.2.0/24,pool+198.51.100.0/24,pool
			attach A net=office -> 192.0.2.0/24
			network.set office name=hq -> the Docker network on 192.0.2.0/24 was created with --ipam-opt network=office; use network=hq when you create it again; Docker commands can still use network=office for this network until another network gets that name
			attach B net=office -> 198.51.100.0/24
			ask B mac=1 -> 198.51.100.1
			detach A
			attach A net=office -> 192.0.2.0/24
			# a person uses the new name
			reserve office web ! notfound; there is no network "office": it was renamed to hq
			network.set office name=x ! notfound; renamed to hq
		`},
		{"given away to a new network", `
			network office subnet=192.0.2.0/24,pool
			attach A net=office -> 192.0.2.0/24
			network.set office name=hq
			network office subnet=198.51.100.0/24,pool -> network hq had the name office before; from now on, --ipam-opt network=office means another network; the Docker network on 192.0.2.0/24 was created with network=office, and is on network hq
			attach B net=office -> 198.51.100.0/24
			detach B
			network.rm office
			attach B net=office ! notfound; there is no network "office"
		`},
		{"given away to another one", `
			network office subnet=192.0.2.0/24,pool
			network lab subnet=198.51.100.0/24,pool
			network.set office name=hq
			network.set lab name=office -> network hq had the name office before; from now on, --ipam-opt network=office means another network; Docker commands can still use network=lab for this network until another network gets that name
			attach A net=office -> 198.51.100.0/24
			network.set office name=lab2
			attach B net=lab ! inuse; lab2
			detach A
			attach B net=lab -> 198.51.100.0/24
		`},
		{"taken back", `
			network office subnet=192.0.2.0/24,pool
			network.set office name=hq
			network.set hq name=office -> Docker commands can still use network=hq for this network until another network gets that name
			attach A net=hq -> 192.0.2.0/24
		`},
	})
	r := ipamtest.New(t)
	r.Run(`
		network office
		network.set office name=hq
		network.set hq name=main
	`)
	if got := r.Show("main").FormerNames; !slices.Equal(got, []string{"office", "hq"}) {
		t.Errorf("the former names are %q", got)
	}
	r.Run(`
		network.set main name=hq
		network.set hq name=main
		restart
	`)
	if got := r.Show("main").FormerNames; !slices.Equal(got, []string{"office", "hq"}) {
		t.Errorf("the former names are %q", got)
	}
}
