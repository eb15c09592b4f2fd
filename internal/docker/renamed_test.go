package docker

import (
	"context"
	"testing"
	"time"

	"berth/internal/ipam"
)

// TestContainersNoted: a look writes the container into each lease once, even if the engine sends names.
func TestContainersNoted(t *testing.T) {
	tn := newTown(t)
	guessed := tn.run("web", "front")
	tn.number++
	sent, err := tn.service.RequestAddress(t.Context(),
		ipam.AddressRequest{Pool: tn.pools["front"], MAC: macN(tn.number), Name: "db"})
	must(t, err)
	tn.appear("db", "front", sent.Addr())
	tn.settle(time.Second)
	tn.look(time.Second)
	for at, name := range map[string]string{guessed.String(): "web", sent.Addr().String(): "db"} {
		if l := tn.leaseOf(addr(at)); l.Container != "id-"+name || l.Name != name {
			t.Errorf("%s is leased to %q, container %q", at, l.Name, l.Container)
		}
	}
	tn.w.cfg.Service = &unnamed{tn.w.cfg.Service, t}
	tn.look(time.Second)
}

// unnamed are records whose leases all have names.
type unnamed struct {
	Records
	t *testing.T
}

func (u *unnamed) NameLeases(_ context.Context, names []ipam.LeaseName) error {
	u.t.Errorf("named once more: %+v", names)
	return nil
}
