package allocator

import "berth/internal/ipam/ledger"

// Allocator answers what the engine and its witness ask.
type Allocator struct{ homes ledger.Homes }

// Of returns the Allocator over the stores of a host's records.
func Of(homes ledger.Homes) Allocator { return Allocator{homes} }
