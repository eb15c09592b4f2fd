package rollout

import (
	"fmt"
	"strings"

	"berth/internal/deploy"
)

// Unclaimed is a replica that the files name no more, and for which something is reserved.
type Unclaimed struct {
	Owner   string
	Service string
	Number  int
	Why     string    // it is not named
	On      []Address // what it has, by planned network
	InUse   bool      // somebody has an address of these in use, here or on another host
	Made    bool      // all of it was reserved by deploys, and nobody has said anything of it since
}

// unclaimed plans the end of what deploys have reserved for replicas that the files name no more, and whose containers
// are gone: they were removed by hand (BO-3, BO-15). What others have reserved is told, and stays.
func (d *drawing) unclaimed() {
	for i := range d.in.Unclaimed {
		u := &d.in.Unclaimed[i]
		switch {
		case u.InUse || d.names(u.Owner) || d.hasContainer(u.Owner):
		case u.Made:
			d.plan.Delete = append(d.plan.Delete, &Instance{Owner: u.Owner, Service: u.Service, Number: u.Number,
				Do: Delete, Why: []string{u.Why, fmt.Sprintf("it has %s reserved, and no container", u.has())}, On: u.On})
		default:
			d.note("%s has %s reserved, and no container, and %s; it is not known that a deploy chose that, so that it "+
				"stays: `berth reservation rm --owner %s --everywhere` ends that", u.Owner, u.has(), u.Why, u.Owner)
		}
	}
}

// has says what is reserved.
func (u *Unclaimed) has() string {
	var all []string
	for _, a := range u.On {
		all = append(all, fmt.Sprintf("%s on %s", deploy.Listed(a.Has, ", "), a.Planned))
	}
	return strings.Join(all, ", ")
}

// names tells whether the files describe an instance of an owner.
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

// hasContainer tells whether an owner has a container.
func (d *drawing) hasContainer(owner string) bool {
	for i := range d.in.Containers {
		if d.ownerOf(&d.in.Containers[i]) == owner {
			return true
		}
	}
	return false
}
