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
	Task    string    `json:"task,omitempty"`   // what is done with the project, such as apply, or stop web/2
	Owners  []string  `json:"owners,omitempty"` // of the project, besides those below its name
	Since   time.Time `json:"since"`
	Expires time.Time `json:"expires"`
	TTL     Duration  `json:"ttl"` // how long it lasts without a sign of life
}

// Lasts tells whether the lock is in force. One that was renewed later than now by more than it lasts is not: the clock
// was set back, and nobody knows how long ago that was. A deploy that lives renews it soon.
func (l *DeployLock) Lasts(now time.Time) bool {
	return now.Before(l.Expires) && l.Expires.Sub(now) <= 2*time.Duration(l.TTL)
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
	Task    string   `json:"task,omitempty"` // what is done with the project
	Owners  []string `json:"owners,omitempty"`
	TTL     Duration `json:"ttl"`
	Renews  bool     `json:"renews,omitempty"` // it has the lock, and wants no other one where that is gone
}

// UnlockDeploy ends the lock of a project: the one of the ID, or with Force whichever there is.
type UnlockDeploy struct {
	Project string        `json:"project"`
	ID      ID            `json:"id,omitzero"`
	Force   bool          `json:"force,omitempty"`
	Outcome DeployOutcome `json:"outcome,omitempty"` // what came of the deploy; empty: it does not say
	Did     string        `json:"did,omitempty"`     // what it did, in words
}

// DeployOutcome is what came of a deploy.
type DeployOutcome string

// The outcomes. A deploy says one of the first four itself; the others are seen by its lock.
const (
	DeployDone    DeployOutcome = "done"
	DeployFailed  DeployOutcome = "failed"
	DeployRefused DeployOutcome = "refused"   // nothing was changed
	DeployLost    DeployOutcome = "lock_lost" // and it did nothing further
	DeployTaken   DeployOutcome = "lock_taken_away"
	DeployRuns    DeployOutcome = "running"
	DeploySilent  DeployOutcome = "silent" // it ended without a word
)

// MaxDid is how many bytes of what a deploy did are kept.
const MaxDid = 400

// DeployRun is a deploy of a project, as its events tell of it.
type DeployRun struct {
	Project string        `json:"project"`
	ID      ID            `json:"id"`
	Task    string        `json:"task,omitempty"` // what was done with the project
	By      string        `json:"by"`
	Host    string        `json:"host"`
	PID     int           `json:"pid,omitempty"`
	Begun   time.Time     `json:"begun"`
	Ended   time.Time     `json:"ended,omitzero"`
	Outcome DeployOutcome `json:"outcome"`
	Did     string        `json:"did,omitempty"`
}

// DeployBeginning is what the event of a deploy's beginning tells besides.
type DeployBeginning struct {
	ID   ID     `json:"id"`
	Host string `json:"host,omitempty"`
	PID  int    `json:"pid,omitempty"`
	Task string `json:"task,omitempty"`
}

// DeployEnding is what the event of its end tells.
type DeployEnding struct {
	ID      ID            `json:"id"`
	Outcome DeployOutcome `json:"outcome,omitempty"`
	Did     string        `json:"did,omitempty"`
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

// WorkerRun says of what a worker of a project was made when it ran last to a good end (BD-6): its container is deleted
// then, so that nothing else knows. It is a host's, as containers are.
type WorkerRun struct {
	Project string    `json:"project"`
	Service string    `json:"service"`
	Hash    string    `json:"hash"`  // Compose's, of the service
	Image   string    `json:"image"` // its id
	At      time.Time `json:"at"`
}

// RecordWorker records that a worker has run to a good end, now.
type RecordWorker struct {
	Project string `json:"project"`
	Service string `json:"service"`
	Hash    string `json:"hash"`
	Image   string `json:"image,omitempty"`
}

// Op is the name of the operation.
func (*RecordWorker) Op() string { return "deploy.worker" }

// OrphanStage says how far a volume that holds another one's content is.
type OrphanStage string

// The stages of a copy. None: the volume is whole, and nothing waits for it.
const (
	// OrphanSaving: the content is being copied into it; the volume that it comes from is whole.
	OrphanSaving OrphanStage = "saving"
	// OrphanRestoring: the content is whole here, and perhaps nowhere else, until the new volume has it.
	OrphanRestoring OrphanStage = "restoring"
)

// Orphan is a volume that no service of its project uses any more (BD-5), or the copy of one that is made anew (BD-8).
// It is a host's, as volumes are.
type Orphan struct {
	Volume  string      `json:"volume"` // as the engine calls it
	Project string      `json:"project"`
	Service string      `json:"service"` // which used it last, several with commas between; empty: that is not known
	Since   time.Time   `json:"since"`
	Host    string      `json:"host,omitempty"`
	Of      string      `json:"of,omitempty"` // the volume whose content it holds
	Stage   OrphanStage `json:"stage,omitempty"`
	// Foreign: the volume is not the project's, and is none of its orphans once the new one has its content.
	Foreign bool `json:"foreign,omitempty"`
}

// KeepOrphan records a volume as an orphan, or says of one that is recorded how far it is.
type KeepOrphan struct {
	Volume  string      `json:"volume"`
	Project string      `json:"project"`
	Service string      `json:"service,omitempty"`
	Host    string      `json:"host,omitempty"`
	Of      string      `json:"of,omitempty"`
	Stage   OrphanStage `json:"stage,omitempty"`
	Foreign bool        `json:"foreign,omitempty"`
}

// RemoveOrphan ends the record of an orphan, because the volume is gone or in use again. One that is not recorded is no
// error.
type RemoveOrphan struct {
	Volume string `json:"volume"`
}

// Op is the name of the operation.
func (*KeepOrphan) Op() string { return "deploy.orphan" }

// Op is the name of the operation.
func (*RemoveOrphan) Op() string { return "deploy.orphan.remove" }
