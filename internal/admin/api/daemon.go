package api

import (
	"net/netip"
	"time"

	"berth/internal/ipam"
)

// Version is the answer of GET /v1/version.
type Version struct {
	Version string `json:"version"`
	Host    string `json:"host"`
	// the driver's name in the engine (--ipam-driver), unless Berth is a managed plugin
	Driver  string    `json:"driver"`
	Drivers []string  `json:"drivers"` // all driver names: Driver, and that of the socket that asks for MACs
	Store   string    `json:"store"`   // kind of store: bolt
	StoreID string    `json:"store_id"`
	State   string    `json:"state"` // path of the state's file in the daemon's file system
	PID     int       `json:"pid"`   // in the daemon's process namespace
	Started time.Time `json:"started"`
}

// Status is the answer of GET /v1/status.
type Status struct {
	Version
	Uptime   float64        `json:"uptime"` // seconds
	Totals   ipam.Totals    `json:"totals"`
	Writable bool           `json:"writable"`
	Reason   string         `json:"reason,omitempty"`   // if it is not
	Waiting  int            `json:"waiting,omitempty"`  // as in ipam.CheckReport
	Hooks    *HookCounts    `json:"hooks,omitempty"`    // if there are hooks (serve --hook)
	Webhooks []WebhookState `json:"webhooks,omitempty"` // one for each receiver (serve --webhook)

	Settings []Setting `json:"settings,omitempty"`         // the settings of serve in force
	Unknown  []string  `json:"unknown_settings,omitempty"` // BERTH_... variables that the daemon does not know

	Names *NamesState `json:"names,omitempty"` // if names are answered (serve --dns-listen)

	Witness *ipam.WitnessState `json:"witness,omitempty"` // if there is one
	// if the host shares a store with others (serve --store etcd)
	Cluster *ClusterStatus `json:"cluster,omitempty"`
}

// Setting is the value in force of one setting, and its source.
type Setting struct {
	Name   string `json:"name"`
	Value  string `json:"value"`
	Source string `json:"source"` // flag, environment or default
}

// HookCounts counts the runs of hooks since the daemon's start.
type HookCounts struct {
	Runs     uint64 `json:"runs"`
	Failures uint64 `json:"failures"` // of these
}

// NamesState is the state of the daemon's name server.
type NamesState struct {
	Zone    string            `json:"zone"`
	Listen  []netip.AddrPort  `json:"listen"`
	Names   int               `json:"names"`   // below the zone
	Queries map[string]uint64 `json:"queries"` // since the daemon's start, by the code of the answer
}

// WebhookState is the state of one receiver of events since the daemon's start.
type WebhookState struct {
	Receiver  string `json:"receiver"`  // scheme and host of its URL
	Delivered uint64 `json:"delivered"` // accepted messages
	Failures  uint64 `json:"failures"`  // failed attempts
	// messages that the receiver refused permanently; they are not sent again
	Aside   uint64    `json:"aside"`
	Waiting time.Time `json:"waiting,omitzero"` // time of the oldest event that the receiver lacks; zero: none
	Error   string    `json:"error,omitempty"`  // why the last attempt failed; empty: it succeeded
}

// ClusterStatus is the daemon's view of the store that its host shares with others. It is part of GET /v1/status.
type ClusterStatus struct {
	Endpoints []string  `json:"endpoints"`
	Prefix    string    `json:"prefix"`             // of all keys there
	ID        string    `json:"id,omitempty"`       // of the cluster; empty: never reached
	Away      string    `json:"away,omitempty"`     // why the store is unreachable; empty: it is reachable
	NoSpace   bool      `json:"no_space,omitempty"` // the store answers but has no space for writes
	Refused   string    `json:"refused,omitempty"`  // why the store refuses this host; empty: it does not
	Since     time.Time `json:"since,omitzero"`     // when either began
	// the store went back and is being mended; Away lists the missing hosts
	Mending *Mending `json:"mending,omitempty"`
	Back    *Back    `json:"back,omitempty"` // the store is reachable but not trusted; Away gives the reason
	// all reads are at least as recent as this; zero: never read
	Fresh   time.Time `json:"fresh,omitzero"`
	Age     float64   `json:"age,omitempty"`   // seconds since then
	Waiting int       `json:"waiting"`         // releases and uses of headroom that the store lacks
	Oldest  time.Time `json:"oldest,omitzero"` // when the oldest of them happened

	Headroom []ipam.HeadroomState `json:"headroom"` // by space and subnet

	HostID    ipam.ID        `json:"host_id"`
	HostState ipam.HostState `json:"host_state,omitempty"` // empty: the host is a regular member, as far as known
	Others    []string       `json:"others"`               // other hosts with a running daemon

	// What the daemon has done in the store since it opened it.
	Commits uint64 `json:"commits"` // transactions
	Updates uint64 `json:"updates"` // changes in these transactions
	// changes that were repeated because another host changed what they read
	Conflicts uint64 `json:"conflicts"`
	Unknown   uint64 `json:"unknown"` // transactions whose outcome had to be found out
}

// Back says what a store lacks that went back to an earlier state.
type Back struct {
	Emptied bool   `json:"emptied"` // the store is empty
	Own     uint64 `json:"own"`     // number of missing writes of this host, as far as known
	All     uint64 `json:"all"`     // number of missing writes of all hosts
}

// Mending is the progress in mending a store that went back.
type Mending struct {
	By      string   `json:"by"`      // the host that was first
	Missing []string `json:"missing"` // hosts
}

// FileReport is the result of a check of the state's file.
type FileReport struct {
	Path     string   `json:"path"`
	StoreID  string   `json:"store_id"`
	Format   int      `json:"format"`
	Commit   uint64   `json:"commit"` // number of the last commit
	Size     int64    `json:"size"`   // in bytes
	Records  int      `json:"records"`
	Problems []string `json:"problems"`         // of the file's structure and checksums
	Astray   bool     `json:"astray,omitempty"` // its path does not lead to it, which is one of the problems
}

// SavedState is the answer of POST /v1/store/save.
type SavedState struct {
	Path    string `json:"path"`
	StoreID string `json:"store_id"`
	Records int    `json:"records"`
	Kept    string `json:"kept,omitempty"`    // the new path of the file that was there
	Restart string `json:"restart,omitempty"` // why the daemon must be restarted before it continues
	Tokens  string `json:"tokens,omitempty"`  // the path of the API's tokens, if their file was missing or different
}

// FsckReport is the answer of POST /v1/fsck.
type FsckReport struct {
	OK       bool       `json:"ok"`
	File     FileReport `json:"file"`
	Problems []string   `json:"problems"` // between the records
}
