package docker

import (
	"context"
	"testing"

	"berth/internal/ipam"
)

// TestContainersNoted: a look writes the container into each lease, even if the engine sends names, and only once.
func TestContainersNoted(t *testing.T) {
	tn := newScenario(t)
	tn.plays("run web front\nask db front 10.8.0.3\nwait 1s\nlook")
	for at, name := range map[string]string{"10.8.0.2": "web", "10.8.0.3": "db"} {
		if l := tn.leaseOf(addr(at)); l.Container != "id-"+name || l.Name != name {
			t.Errorf("%s is leased to %q, container %q", at, l.Name, l.Container)
		}
	}
	tn.w.cfg.Service = &unnamed{tn.w.cfg.Service, t}
	tn.plays("wait 1s\nlook")
}

// unnamed fails the test if a lease is named again.
type unnamed struct {
	Records
	t *testing.T
}

func (u *unnamed) NameLeases(_ context.Context, names []ipam.LeaseName) error {
	u.t.Errorf("named once more: %+v", names)
	return nil
}
