package stores

import "berth/internal/ipam/ledger"

// Keeper looks after whole stores.
type Keeper struct{ ledger *ledger.Ledger }

// Of is the room over a ledger.
func Of(l *ledger.Ledger) Keeper { return Keeper{l} }
