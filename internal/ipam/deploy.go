package ipam

import (
	"slices"
	"strings"
	"time"
)

// DeployLock reserves a project for one deploy. Until it ends, no other deploy may run, and nobody else may change the
// reservations of the project's owners.
type DeployLock struct {
	Project string    `json:"project"`
	ID      ID        `json:"id"`
	Holder  string    `json:"holder"` // the actor that requested it
	Host    string    `json:"host"`
	PID     int       `json:"pid,omitempty"`    // the deploy's process
	Task    string    `json:"task,omitempty"`   // what the deploy does, such as apply, or stop web/2
	Owners  []string  `json:"owners,omitempty"` // the project's owners outside its own path
	Since   time.Time `json:"since"`
	Expires time.Time `json:"expires"`
	TTL     Duration  `json:"ttl"` // how long the lock lasts without renewal
}

// Lasts reports whether the lock is in force. It is not if it expires more than two TTLs from now. Then the clock was
// set back, and the time of the last renewal is unknown. A live deploy soon renews it.
func (l *DeployLock) Lasts(now time.Time) bool {
	return now.Before(l.Expires) && l.Expires.Sub(now) <= 2*time.Duration(l.TTL)
}

// Of reports whether an owner belongs to the project.
func (l *DeployLock) Of(owner string) bool {
	project, _, below := strings.Cut(owner, "/")
	return owner == l.Project || below && project == l.Project || slices.Contains(l.Owners, owner)
}

// LockDeploy locks a project for a deploy, or renews the lock that has the same ID.
type LockDeploy struct {
	Project string   `json:"project"`
	ID      ID       `json:"id"` // chosen by the deploy, so that it can repeat the request
	Host    string   `json:"host,omitempty"`
	PID     int      `json:"pid,omitempty"`
	Task    string   `json:"task,omitempty"` // what the deploy does
	Owners  []string `json:"owners,omitempty"`
	TTL     Duration `json:"ttl"`
	Renews  bool     `json:"renews,omitempty"` // only renew: fail if the lock is gone
}

// UnlockDeploy ends the lock with this ID. Force ends the project's lock whatever its ID.
type UnlockDeploy struct {
	Project string        `json:"project"`
	ID      ID            `json:"id,omitzero"`
	Force   bool          `json:"force,omitempty"`
	Outcome DeployOutcome `json:"outcome,omitempty"` // the result of the deploy; empty: not reported
	Did     string        `json:"did,omitempty"`     // what the deploy did, in words
}

// DeployOutcome is the result of a deploy.
type DeployOutcome string

// The outcomes. A deploy reports the first four itself; Berth derives the others from the lock.
const (
	DeployDone    DeployOutcome = "done"
	DeployFailed  DeployOutcome = "failed"
	DeployRefused DeployOutcome = "refused"   // nothing was changed
	DeployLost    DeployOutcome = "lock_lost" // the deploy lost its lock and stopped
	DeployTaken   DeployOutcome = "lock_taken_away"
	DeployRuns    DeployOutcome = "running"
	DeploySilent  DeployOutcome = "silent" // it ended without reporting
)

// MaxDid is the limit, in bytes, on the stored description of what a deploy did.
const MaxDid = 400

// DeployRun is a deploy of a project, reconstructed from its events.
type DeployRun struct {
	Project string        `json:"project"`
	ID      ID            `json:"id"`
	Task    string        `json:"task,omitempty"` // what the deploy did
	By      string        `json:"by"`
	Host    string        `json:"host"`
	PID     int           `json:"pid,omitempty"`
	Begun   time.Time     `json:"begun"`
	Ended   time.Time     `json:"ended,omitzero"`
	Outcome DeployOutcome `json:"outcome"`
	Did     string        `json:"did,omitempty"`
}

// DeployBeginning is the extra data in the event that starts a deploy.
type DeployBeginning struct {
	ID   ID     `json:"id"`
	Host string `json:"host,omitempty"`
	PID  int    `json:"pid,omitempty"`
	Task string `json:"task,omitempty"`
}

// DeployEnding is the extra data in the event that ends a deploy.
type DeployEnding struct {
	ID      ID            `json:"id"`
	Outcome DeployOutcome `json:"outcome,omitempty"`
	Did     string        `json:"did,omitempty"`
}

// Op is the name of the operation.
func (*LockDeploy) Op() string { return "deploy.lock" }

// Op is the name of the operation.
func (*UnlockDeploy) Op() string { return "deploy.unlock" }

// The bounds of a deploy lock's TTL.
const (
	LeastDeployTTL = Duration(5 * time.Second)
	MostDeployTTL  = Duration(10 * time.Minute)
)

// WorkerRun records the service hash and image of a worker's last successful run. It is needed because the
// worker's container is deleted then. It belongs to one host, as containers do.
type WorkerRun struct {
	Project string    `json:"project"`
	Service string    `json:"service"`
	Hash    string    `json:"hash"`  // Compose's hash of the service
	Image   string    `json:"image"` // the image's id
	At      time.Time `json:"at"`
}

// RecordWorker records that a worker has just finished successfully.
type RecordWorker struct {
	Project string `json:"project"`
	Service string `json:"service"`
	Hash    string `json:"hash"`
	Image   string `json:"image,omitempty"`
}

// Op is the name of the operation.
func (*RecordWorker) Op() string { return "deploy.worker" }

// OrphanStage is the progress of copying a volume's content.
type OrphanStage string

// The stages of a copy. The empty stage means that the volume is complete and nothing depends on it.
const (
	// OrphanSaving: the content is being copied into this volume; the source is complete.
	OrphanSaving OrphanStage = "saving"
	// OrphanRestoring: this volume is complete. It may be the only copy until the new volume has the content.
	OrphanRestoring OrphanStage = "restoring"
)

// Orphan is a volume that no service of its project uses any more, or a copy of a volume being recreated.
// It belongs to one host, as volumes do.
type Orphan struct {
	Volume  string      `json:"volume"` // the engine's name for it
	Project string      `json:"project"`
	Service string      `json:"service"` // the last users, separated by commas; empty: unknown
	Since   time.Time   `json:"since"`
	Host    string      `json:"host,omitempty"`
	Of      string      `json:"of,omitempty"` // the volume whose content this one holds
	Stage   OrphanStage `json:"stage,omitempty"`
	// Foreign: the volume does not belong to the project. Once the new volume has its content, it is no orphan of
	// the project.
	Foreign bool `json:"foreign,omitempty"`
}

// KeepOrphan records a volume as an orphan, or updates the stage of a recorded one.
type KeepOrphan struct {
	Volume  string      `json:"volume"`
	Project string      `json:"project"`
	Service string      `json:"service,omitempty"`
	Host    string      `json:"host,omitempty"`
	Of      string      `json:"of,omitempty"`
	Stage   OrphanStage `json:"stage,omitempty"`
	Foreign bool        `json:"foreign,omitempty"`
}

// RemoveOrphan deletes the record of an orphan, because the volume is gone or in use again. A missing record is no
// error.
type RemoveOrphan struct {
	Volume string `json:"volume"`
}

// Op is the name of the operation.
func (*KeepOrphan) Op() string { return "deploy.orphan" }

// Op is the name of the operation.
func (*RemoveOrphan) Op() string { return "deploy.orphan.remove" }
