package bulk

import "berth/internal/ipam/ledger"

// Importer takes in whole plans.
type Importer struct{ ledger *ledger.Ledger }

// Of is the room over a ledger.
func Of(l *ledger.Ledger) Importer { return Importer{l} }
