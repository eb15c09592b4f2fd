package rollout

import (
	"net/netip"

	"berth/internal/deploy"
)

// Plan is what a deploy would do. It is plain data that can be saved, shown and compared.
type Plan struct {
	Project  string      `json:"project"`
	Compose  string      `json:"compose"` // the version of the compose command
	Files    []File      `json:"files"`
	Pull     []string    `json:"pull"`            // images that the engine does not have
	Notes    []string    `json:"notes,omitempty"` // observations that change nothing
	Delete   []*Instance `json:"delete"`
	Networks []*Network  `json:"networks,omitempty"` // to be recreated
	Services []*Service  `json:"services"`           // in the order of their dependencies
	Workers  int         `json:"workers,omitempty"`  // the number that run at the same time; 0: one
	Task     Task        `json:"task,omitzero"`
	Volumes  []*Volume   `json:"volumes,omitempty"`
}

// File is one of the project's files, as it was read.
type File struct {
	Path   string `json:"path"`
	Digest string `json:"digest"` // SHA-256
}

// Service is the plan for a service.
type Service struct {
	Name      string         `json:"name"`
	Image     string         `json:"image"`
	ImageID   string         `json:"image_id"` // the engine's image of that name; empty: it is pulled
	Digests   []string       `json:"digests,omitempty"`
	Hash      string         `json:"hash"` // Compose's hash of the service in the files
	Update    deploy.Update  `json:"update"`
	Needs     []string       `json:"needs,omitempty"`  // the services that it depends on
	Shares    []string       `json:"shares,omitempty"` // services whose containers its own need to run
	Worker    bool           `json:"worker,omitempty"` // it runs to its end and is deleted
	Once      bool           `json:"once,omitempty"`   // it runs to its end and stays
	Drain     *deploy.Hook   `json:"drain,omitempty"`
	Snapshot  *deploy.Hook   `json:"snapshot,omitempty"`
	Mounts    []deploy.Mount `json:"mounts,omitempty"`
	Instances []*Instance    `json:"instances"`
}

// Action is what happens to an instance.
type Action string

// The actions.
const (
	Keep     Action = "keep"
	Create   Action = "create"
	Recreate Action = "recreate"
	Start    Action = "start" // it is up to date but does not run
	Work     Action = "run"   // a worker: it runs to its end and is deleted
	Delete   Action = "delete"
	Stop     Action = "stop" // it stays after the stop
)

// Instance is the plan for one replica.
type Instance struct {
	Owner     string    `json:"owner"`
	Service   string    `json:"service"`
	Number    int       `json:"number"`
	Do        Action    `json:"do"`
	Why       []string  `json:"why,omitempty"`
	Container string    `json:"container,omitempty"` // the id, if it exists
	Name      string    `json:"name,omitempty"`      // its name
	State     string    `json:"state,omitempty"`
	Successor string    `json:"successor,omitempty"` // the id of its successor that an earlier deploy started
	Uses      []string  `json:"uses,omitempty"`      // containers whose network, processes or volumes it uses
	Leftover  bool      `json:"leftover,omitempty"`  // the reservations belong to another container of the same owner
	On        []Address `json:"on,omitempty"`
}

// Address is what an instance has and gets on a Docker network.
type Address struct {
	Network string       `json:"network"`
	Planned string       `json:"planned,omitempty"`
	Has     []netip.Addr `json:"has,omitempty"`
	Gets    []netip.Addr `json:"gets,omitempty"`
	// Fixed: the address is set in the container's configuration. Otherwise Berth gives it by the container's name.
	Fixed bool `json:"fixed,omitempty"`
}

// Changes reports whether there is anything to do. A worker counts only if it has changed since it ran last.
func (p *Plan) Changes() bool {
	for _, one := range p.all() {
		if one.Do != Keep {
			return true
		}
	}
	return len(p.Networks) > 0 || len(p.Volumes) > 0
}

// all returns the instances of the plan, deleted ones first.
func (p *Plan) all() (all []*Instance) {
	all = append(all, p.Delete...)
	for _, s := range p.Services {
		all = append(all, s.Instances...)
	}
	return all
}

// Count returns the number of instances with an action.
func (p *Plan) Count(do Action) (count int) {
	for _, one := range p.all() {
		if one.Do == do {
			count++
		}
	}
	return count
}

// service returns a service of the plan, or nil.
func (p *Plan) service(name string) *Service {
	for _, s := range p.Services {
		if s.Name == name {
			return s
		}
	}
	return nil
}
