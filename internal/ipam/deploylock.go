package ipam

import (
	"slices"
	"strings"
	"time"
)

// DeployLock has a project be of one deploy: until it ends nobody else deploys it, or changes what is reserved for its
// owners (BD-1).
type DeployLock struct {
	Project string    `json:"project"`
	ID      ID        `json:"id"`
	Holder  string    `json:"holder"` // who asked for it
	Host    string    `json:"host"`
	PID     int       `json:"pid,omitempty"`    // of the deploy's process
	Owners  []string  `json:"owners,omitempty"` // of the project, besides those below its name
	Since   time.Time `json:"since"`
	Expires time.Time `json:"expires"`
}

// Of tells whether an owner is the project's.
func (l *DeployLock) Of(owner string) bool {
	project, _, below := strings.Cut(owner, "/")
	return owner == l.Project || below && project == l.Project || slices.Contains(l.Owners, owner)
}

// LockDeploy locks a project for a deploy, or renews the lock that has the same ID.
type LockDeploy struct {
	Project string   `json:"project"`
	ID      ID       `json:"id"` // is chosen by the deploy, so that it may ask again
	Host    string   `json:"host,omitempty"`
	PID     int      `json:"pid,omitempty"`
	Owners  []string `json:"owners,omitempty"`
	TTL     Duration `json:"ttl"`
}

// UnlockDeploy ends the lock of a project: the one of the ID, or with Force whichever there is.
type UnlockDeploy struct {
	Project string `json:"project"`
	ID      ID     `json:"id,omitzero"`
	Force   bool   `json:"force,omitempty"`
}

// Op is the name of the operation.
func (*LockDeploy) Op() string { return "deploy.lock" }

// Op is the name of the operation.
func (*UnlockDeploy) Op() string { return "deploy.unlock" }

// Bounds of how long a deploy's lock lasts without a sign of life.
const (
	LeastDeployTTL = Duration(5 * time.Second)
	MostDeployTTL  = Duration(10 * time.Minute)
)
