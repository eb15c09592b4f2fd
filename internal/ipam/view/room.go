package view

import "berth/internal/ipam/ledger"

// Views tells what is and what was, in all homes of a host's records.
type Views struct{ homes ledger.Homes }

// Of is the room over the homes of a host's records.
func Of(homes ledger.Homes) Views { return Views{homes} }
