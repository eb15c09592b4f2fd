package api

import (
	"net/netip"
	"time"

	"berth/internal/ipam"
)

// Version is the answer of GET /v1/version.
type Version struct {
	Version string    `json:"version"`
	Host    string    `json:"host"`
	Driver  string    `json:"driver"`  // as the engine calls it (--ipam-driver), unless it is a managed plugin
	Drivers []string  `json:"drivers"` // all such names: Driver, and that of the socket on which it asks for MACs
	Store   string    `json:"store"`   // kind of store: bolt
	StoreID string    `json:"store_id"`
	State   string    `json:"state"` // path of the state's file, as the daemon sees it
	PID     int       `json:"pid"`   // as the daemon sees itself
	Started time.Time `json:"started"`
}

// Status is the answer of GET /v1/status.
type Status struct {
	Version
	Uptime   float64        `json:"uptime"` // seconds
	Totals   ipam.Totals    `json:"totals"`
	Writable bool           `json:"writable"`
	Reason   string         `json:"reason,omitempty"`   // why it is not
	Hooks    *HookCounts    `json:"hooks,omitempty"`    // where there are hooks (serve --hook)
	Webhooks []WebhookState `json:"webhooks,omitempty"` // one for each receiver (serve --webhook)

	Settings []Setting `json:"settings,omitempty"`         // the flags of serve, with what is in force
	Unknown  []string  `json:"unknown_settings,omitempty"` // variables BERTH_... of its environment that it does not know

	Names *NamesState `json:"names,omitempty"` // where names are answered (serve --dns-listen)

	Witness *ipam.WitnessState `json:"witness,omitempty"` // where there is one
	// where the host shares a store with others (serve --store etcd)
	Cluster *ClusterStatus `json:"cluster,omitempty"`
}

// Setting is what is in force of one flag, and where it comes from.
type Setting struct {
	Name   string `json:"name"`
	Value  string `json:"value"`
	Source string `json:"source"` // flag, environment or default
}

// HookCounts tell what became of hooks since the daemon began.
type HookCounts struct {
	Runs     uint64 `json:"runs"`
	Failures uint64 `json:"failures"` // of these
}

// NamesState tells how it stands with the names that the daemon answers.
type NamesState struct {
	Zone    string            `json:"zone"`
	Listen  []netip.AddrPort  `json:"listen"`
	Names   int               `json:"names"`   // below the zone
	Queries map[string]uint64 `json:"queries"` // since the daemon began, by the code of the answer
}

// WebhookState tells how it stands with one receiver of events since the daemon began.
type WebhookState struct {
	Receiver  string    `json:"receiver"`         // scheme and host of its URL
	Delivered uint64    `json:"delivered"`        // messages that it has taken
	Failures  uint64    `json:"failures"`         // attempts that it has not
	Aside     uint64    `json:"aside"`            // messages that it has refused for good; they are not sent again
	Waiting   time.Time `json:"waiting,omitzero"` // when what it has not taken yet happened; zero: it has all
	Error     string    `json:"error,omitempty"`  // why the last attempt failed; empty: it did not
}

// ClusterStatus says how a daemon stands with the store that its host shares with others. It is a part of GET
// /v1/status.
type ClusterStatus struct {
	Endpoints []string  `json:"endpoints"`
	Prefix    string    `json:"prefix"`             // of all keys there
	ID        string    `json:"id,omitempty"`       // of the cluster; empty: none was ever reached
	Away      string    `json:"away,omitempty"`     // why the store is out of reach; empty: it is within
	NoSpace   bool      `json:"no_space,omitempty"` // it answers, and has no room for any write
	Refused   string    `json:"refused,omitempty"`  // why this host is refused there; empty: it is not
	Since     time.Time `json:"since,omitzero"`     // when either began
	// it went back, and is being mended: Away says which hosts are waited for
	Mending *Mending `json:"mending,omitempty"`
	Back    *Back    `json:"back,omitempty"` // it is in reach, and is not trusted: Away says why
	// what is read of it is all that there was then; zero: it was never read
	Fresh   time.Time `json:"fresh,omitzero"`
	Age     float64   `json:"age,omitempty"`   // seconds since then
	Waiting int       `json:"waiting"`         // releases, and uses of headroom, that the store has not heard of
	Oldest  time.Time `json:"oldest,omitzero"` // since when the first of them waits

	Headroom []ipam.HeadroomState `json:"headroom"` // by space and subnet

	HostID    ipam.ID        `json:"host_id"`
	HostState ipam.HostState `json:"host_state,omitempty"` // empty: it takes part as usual, as far as is known
	Others    []string       `json:"others"`               // hosts whose daemons are there, but for this one

	// What the daemon has done to the store since it opened it.
	Commits uint64 `json:"commits"` // transactions
	Updates uint64 `json:"updates"` // changes that were in them
	// changes that were made again, because others had changed what they were decided by
	Conflicts uint64 `json:"conflicts"`
	Unknown   uint64 `json:"unknown"` // transactions whose outcome had to be found out
}

// Back says what a store lacks that was put back to an earlier state.
type Back struct {
	Emptied bool   `json:"emptied"` // nothing is there
	Own     uint64 `json:"own"`     // so many writes of this host, as far as is known
	All     uint64 `json:"all"`     // so many of all hosts
}

// Mending says who is waited for until a store is mended that went back.
type Mending struct {
	By      string   `json:"by"`      // the host that was first
	Missing []string `json:"missing"` // hosts
}

// FileReport says what a check of the state's file found.
type FileReport struct {
	Path     string   `json:"path"`
	StoreID  string   `json:"store_id"`
	Format   int      `json:"format"`
	Commit   uint64   `json:"commit"` // number of the last commit
	Size     int64    `json:"size"`   // in bytes
	Records  int      `json:"records"`
	Problems []string `json:"problems"`         // of the file's structure and checksums
	Astray   bool     `json:"astray,omitempty"` // its path does not lead to it, which is one of these
}

// SavedState is the answer of POST /v1/store/save.
type SavedState struct {
	Path    string `json:"path"`
	StoreID string `json:"store_id"`
	Records int    `json:"records"`
	Kept    string `json:"kept,omitempty"`    // where the file is now that was in the place
	Restart string `json:"restart,omitempty"` // why the daemon must be started again before it goes on
}

// FsckReport is the answer of POST /v1/fsck.
type FsckReport struct {
	OK       bool       `json:"ok"`
	File     FileReport `json:"file"`
	Problems []string   `json:"problems"` // between the records
}
