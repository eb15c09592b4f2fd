package ipam

import "net/netip"

// CreateAccount makes an account.
type CreateAccount struct {
	Account string   `json:"account" plan:"name"`
	Domain  string   `json:"domain,omitempty"`
	Quota   *int     `json:"quota,omitempty"`  // how many addresses it may have; nil: any number
	Owners  []string `json:"owners,omitempty"` // patterns of the owners that are its own, such as shop/*
}

// RemoveAccount removes an account that has no address; with Force its addresses are released.
type RemoveAccount struct {
	Account string `json:"account"`
	Force   bool   `json:"force,omitempty"`
}

// AddElasticRange makes a range of elastic addresses: the cluster's or, with Host, that of one host (CS-1, CS-15).
type AddElasticRange struct {
	Range    Range     `json:"range"`
	Host     string    `json:"host,omitempty"`
	Announce string    `json:"announce,omitempty"` // a device, or none (default)
	TTL      *Duration `json:"ttl,omitempty"`      // default: DefaultElasticTTL
	OnCut    string    `json:"on_cut,omitempty"`   // withdraw (default) or keep
}

// RemoveElasticRange removes a range of which no address is anybody's (CS-1).
type RemoveElasticRange struct {
	Range Range `json:"range"`
}

// AllocateElastic gives an account an address: the lowest free one of the cluster's ranges, or of those of Host, or
// Address (CS-2).
type AllocateElastic struct {
	Account string     `json:"account,omitempty"` // default: DefaultAccount
	Address netip.Addr `json:"address,omitzero"`
	Host    string     `json:"host,omitempty"`
	// never (default), destroy or stop: when it is released by itself. Empty leaves it as it is.
	ReleaseOn string `json:"release_on,omitempty"`
}

// AssociateElastic maps an address to a guest of an owner (CS-3). Network and Guest say which, where it has several.
type AssociateElastic struct {
	Address    netip.Addr `json:"address"`
	Instance   string     `json:"instance"` // the owner
	Network    string     `json:"network,omitempty"`
	Guest      netip.Addr `json:"guest,omitzero"`
	Move       bool       `json:"move,omitempty"` // also where it is associated elsewhere
	EgressOnly bool       `json:"egress_only,omitempty"`
}

// DisassociateElastic ends the association of an address (CS-4). One that has none stays as it is.
type DisassociateElastic struct {
	Address netip.Addr `json:"address"`
}

// ReleaseElastic gives back an address that is mapped to nobody (CS-2).
type ReleaseElastic struct {
	Address netip.Addr `json:"address"`
}

// DeclareElastic maps an address to an owner because a Compose project says so. Without an Address it is the one that
// the owner has, or else the lowest free one, which the owner's account is given then.
type DeclareElastic struct {
	Project    string     `json:"project"`
	Instance   string     `json:"instance"` // the owner
	Network    string     `json:"network,omitempty"`
	Address    netip.Addr `json:"address,omitzero"`
	EgressOnly bool       `json:"egress_only,omitempty"`
}

// EndDeclaredElastic ends the associations that a Compose project has declared, but for some.
type EndDeclaredElastic struct {
	Project string            `json:"project"`
	But     []DeclaredElastic `json:"but,omitempty"`
}

// DeclaredElastic is an owner with an address, or with any.
type DeclaredElastic struct {
	Instance string     `json:"instance"`
	Address  netip.Addr `json:"address,omitzero"`
}

// elasticEdits are those of elastic addresses, one of each.
func elasticEdits() []Edit {
	return []Edit{
		new(CreateAccount),
		new(RemoveAccount),
		new(AddElasticRange),
		new(RemoveElasticRange),
		new(AllocateElastic),
		new(AssociateElastic),
		new(DisassociateElastic),
		new(ReleaseElastic),
		new(DeclareElastic),
		new(EndDeclaredElastic),
	}
}

// Op is the name of the operation.
func (*CreateAccount) Op() string { return "account.create" }

// Op is the name of the operation.
func (*RemoveAccount) Op() string { return "account.remove" }

// Op is the name of the operation.
func (*AddElasticRange) Op() string { return "elastic.range.add" }

// Op is the name of the operation.
func (*RemoveElasticRange) Op() string { return "elastic.range.remove" }

// Op is the name of the operation.
func (*AllocateElastic) Op() string { return "elastic.allocate" }

// Op is the name of the operation.
func (*AssociateElastic) Op() string { return "elastic.associate" }

// Op is the name of the operation.
func (*DisassociateElastic) Op() string { return "elastic.disassociate" }

// Op is the name of the operation.
func (*ReleaseElastic) Op() string { return "elastic.release" }

// Op is the name of the operation.
func (*DeclareElastic) Op() string { return "elastic.declare" }

// Op is the name of the operation.
func (*EndDeclaredElastic) Op() string { return "elastic.undeclare" }
