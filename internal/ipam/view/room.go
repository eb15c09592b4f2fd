package view

import "berth/internal/ipam/ledger"

// Views tells what is and what was.
type Views struct{ ledger *ledger.Ledger }

// Of is the room over a ledger.
func Of(l *ledger.Ledger) Views { return Views{l} }
