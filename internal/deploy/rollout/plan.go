package rollout

import (
	"net/netip"

	"berth/internal/deploy"
)

// Plan is what a deploy would do. It is plain data, so that it can be saved, shown, and compared with another one.
type Plan struct {
	Project  string      `json:"project"`
	Compose  string      `json:"compose"` // the version of the compose command
	Files    []File      `json:"files"`
	Pull     []string    `json:"pull"` // images that the engine does not have
	Delete   []*Instance `json:"delete"`
	Services []*Service  `json:"services"` // in the order of their dependencies
}

// File is one of the project's files as it was read.
type File struct {
	Path   string `json:"path"`
	Digest string `json:"digest"` // SHA-256
}

// Service is what becomes of a service.
type Service struct {
	Name      string        `json:"name"`
	Image     string        `json:"image"`
	ImageID   string        `json:"image_id"` // what the engine has by that name; empty: it is pulled
	Digests   []string      `json:"digests,omitempty"`
	Hash      string        `json:"hash"` // Compose's, of the service as the files describe it
	Update    deploy.Update `json:"update"`
	Instances []*Instance   `json:"instances"`
}

// Action is what becomes of an instance.
type Action string

// The actions.
const (
	Keep     Action = "keep"
	Create   Action = "create"
	Recreate Action = "recreate"
	Start    Action = "start" // it is as it should be, and does not run
	Delete   Action = "delete"
)

// Instance is what becomes of one replica.
type Instance struct {
	Owner     string    `json:"owner"`
	Service   string    `json:"service"`
	Number    int       `json:"number"`
	Do        Action    `json:"do"`
	Why       []string  `json:"why,omitempty"`
	Container string    `json:"container,omitempty"` // its id, where it is there
	Name      string    `json:"name,omitempty"`      // and its name
	State     string    `json:"state,omitempty"`
	On        []Address `json:"on,omitempty"`
}

// Address is what an instance has and gets on a Docker network.
type Address struct {
	Network string       `json:"network"`
	Planned string       `json:"planned,omitempty"`
	Has     []netip.Addr `json:"has,omitempty"`
	Gets    []netip.Addr `json:"gets,omitempty"`
	// Fixed: the address is set in the container's configuration. Else Berth gives it by the container's name.
	Fixed bool `json:"fixed,omitempty"`
}

// Changes tells whether there is anything to be done.
func (p *Plan) Changes() bool {
	for _, one := range p.all() {
		if one.Do != Keep {
			return true
		}
	}
	return false
}

// all are the instances of the plan, those that are deleted first.
func (p *Plan) all() (all []*Instance) {
	all = append(all, p.Delete...)
	for _, s := range p.Services {
		all = append(all, s.Instances...)
	}
	return all
}

// Count is how many instances an action is planned for.
func (p *Plan) Count(do Action) (count int) {
	for _, one := range p.all() {
		if one.Do == do {
			count++
		}
	}
	return count
}
