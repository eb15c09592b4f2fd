package stores

import "berth/internal/ipam/ledger"

// Stores works on whole stores.
type Stores struct{ homes ledger.Homes }

// Of returns the Stores of a host's records.
func Of(homes ledger.Homes) Stores { return Stores{homes} }
