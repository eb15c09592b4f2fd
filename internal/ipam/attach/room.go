package attach

import "berth/internal/ipam/ledger"

// Desk answers what the engine and its witness ask.
type Desk struct{ ledger *ledger.Ledger }

// Of is the room over a ledger.
func Of(l *ledger.Ledger) Desk { return Desk{l} }
