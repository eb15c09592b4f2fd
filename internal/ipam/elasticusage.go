package ipam

import "time"

// UsageFilter says of which time the usage of elastic addresses is asked for. A zero Since is as far back as is known,
// a zero Until now.
type UsageFilter struct {
	Since time.Time
	Until time.Time
}

// UsageReport is how long accounts had elastic addresses (CS-10).
type UsageReport struct {
	Since time.Time `json:"since"`
	Until time.Time `json:"until"`
	// KnownSince is since when the events tell what was released: of what was released before, nothing is in the sums.
	// Zero where that is all of the time that is asked for.
	KnownSince time.Time      `json:"known_since,omitzero"`
	Accounts   []AccountUsage `json:"accounts"` // by name
}

// AccountUsage is how long an account had elastic addresses in some time. System addresses do not count: nobody asked
// for them.
type AccountUsage struct {
	Account   string  `json:"account"`
	Domain    string  `json:"domain"`    // empty: it has none, or is no more
	Addresses int     `json:"addresses"` // how many it had in that time, each counted once
	Hours     float64 `json:"hours"`     // of address and hour, summed
}
