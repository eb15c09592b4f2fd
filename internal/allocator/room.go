package allocator

import "berth/internal/ipam/ledger"

// Allocator answers what the engine and its witness ask.
type Allocator struct{ ledger *ledger.Ledger }

// Of is the room over a ledger.
func Of(l *ledger.Ledger) Allocator { return Allocator{l} }
