package ipam

import (
	"berth/store"
)

// CopyOptions say what CopySpaces copies.
type CopyOptions struct {
	Spaces   []string // none: all that the source has but the local one
	DryRun   bool
	Undo     bool        // take back a copy that was cut off
	Command  string      // that goes on with a copy which is cut off, for errors
	ReadBack store.Store // another handle on the target, through which it is compared; nil: the target's own
	Progress func(done, total int)
}

// CopyReport says what was copied.
type CopyReport struct {
	DryRun bool          `json:"dry_run,omitempty"`
	Undone bool          `json:"undone,omitempty"`
	Spaces []CopiedSpace `json:"spaces"`
}

// CopiedSpace is a space that was copied.
type CopiedSpace struct {
	Name     string          `json:"name"`
	Networks []CopiedNetwork `json:"networks"`
	Events   int             `json:"events"`
	// it was compared by a run before, which was cut off behind that
	Finished bool `json:"finished,omitempty"`
}

// CopiedNetwork counts the records of a network. The digest is that of all of them, and the same in both stores.
type CopiedNetwork struct {
	Name         string `json:"name"`
	Subnets      int    `json:"subnets"`
	Docker       int    `json:"docker"` // Docker networks
	Leases       int    `json:"leases"`
	Memories     int    `json:"memories"`
	Reservations int    `json:"reservations"`
	Digest       string `json:"digest,omitempty"`
}
