package stores

import "berth/internal/ipam/ledger"

// Keeper looks after whole stores.
type Keeper struct{ homes ledger.Homes }

// Of is the room over the homes of a host's records.
func Of(homes ledger.Homes) Keeper { return Keeper{homes} }
