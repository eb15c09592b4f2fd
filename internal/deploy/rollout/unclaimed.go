package rollout

import (
	"fmt"
	"strings"

	"berth/internal/deploy"
)

// Unclaimed is a replica with reservations that is no longer in the files.
type Unclaimed struct {
	Owner   string
	Service string
	Number  int
	Why     string    // why it is not in the files
	On      []Address // its addresses, by planned network
	InUse   bool      // one of these addresses is in use, here or on another host
	Made    bool      // only deploys made and changed the reservations
}

// unclaimed plans the end of reservations from deploys whose replicas are no longer in the files and whose containers
// were removed by hand. Other reservations stay and are only reported.
func (d *drawing) unclaimed() {
	for i := range d.in.Unclaimed {
		u := &d.in.Unclaimed[i]
		switch {
		case u.InUse || d.names(u.Owner) || d.hasContainer(u.Owner):
		case u.Made:
			d.plan.Delete = append(d.plan.Delete, &Instance{Owner: u.Owner, Service: u.Service, Number: u.Number,
				Do: Delete, Why: []string{u.Why, fmt.Sprintf("it has %s reserved, but no "+
					"container", u.has())}, On: u.On})
		default:
			d.note("%s has %s reserved, but no container, and %s; it may not be from a deploy, so it stays: `berth "+
				"reservation rm --owner %s --everywhere` ends the reservation", u.Owner, u.has(), u.Why, u.Owner)
		}
	}
}

// has lists the reservations.
func (u *Unclaimed) has() string {
	var all []string
	for _, a := range u.On {
		all = append(all, fmt.Sprintf("%s on %s", deploy.Listed(a.Has, ", "), a.Planned))
	}
	return strings.Join(all, ", ")
}

// names reports whether the files have an instance of an owner.
func (d *drawing) names(owner string) bool {
	for i := range d.in.Services {
		for k := range d.in.Services[i].Instances {
			if d.in.Services[i].Instances[k].Owner == owner {
				return true
			}
		}
	}
	return false
}

// hasContainer reports whether an owner has a container.
func (d *drawing) hasContainer(owner string) bool {
	for i := range d.in.Containers {
		if d.ownerOf(&d.in.Containers[i]) == owner {
			return true
		}
	}
	return false
}
