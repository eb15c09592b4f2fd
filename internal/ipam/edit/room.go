package edit

import "berth/internal/ipam/ledger"

// Editor changes the plan and ends what owners have.
type Editor struct{ ledger *ledger.Ledger }

// Of returns the Editor of a ledger.
func Of(l *ledger.Ledger) Editor { return Editor{l} }
