package ipam

import "net/netip"

// CreateAccount makes an account.
type CreateAccount struct {
	Account string   `json:"account" plan:"name"`
	Domain  string   `json:"domain,omitempty"`
	Quota   *int     `json:"quota,omitempty"`  // maximum number of addresses; nil: no limit
	Owners  []string `json:"owners,omitempty"` // owner patterns of the account, such as shop/*
}

// RemoveAccount removes an account without addresses. Force releases its addresses first.
type RemoveAccount struct {
	Account string `json:"account"`
	Force   bool   `json:"force,omitempty"`
}

// AddElasticRange adds a range of elastic addresses. It belongs to the cluster or, with Host, to one host.
type AddElasticRange struct {
	Range    Range     `json:"range"`
	Host     string    `json:"host,omitempty"`
	Announce string    `json:"announce,omitempty"` // a device, or none (default)
	TTL      *Duration `json:"ttl,omitempty"`      // default: DefaultElasticTTL
	OnCut    string    `json:"on_cut,omitempty"`   // withdraw (default) or keep
}

// RemoveElasticRange removes a range if all of its addresses are free.
type RemoveElasticRange struct {
	Range Range `json:"range"`
}

// AllocateElastic allocates an address to an account. Without Address it takes the lowest free one of the
// cluster's ranges, or of Host's.
type AllocateElastic struct {
	Account string     `json:"account,omitempty"` // default: DefaultAccount
	Address netip.Addr `json:"address,omitzero"`
	Host    string     `json:"host,omitempty"`
	// never (default), destroy or stop: when Berth releases it automatically. Empty leaves it unchanged.
	ReleaseOn string `json:"release_on,omitempty"`
}

// AssociateElastic maps an address to a guest address of an owner. Network and Guest choose among several.
type AssociateElastic struct {
	Address    netip.Addr `json:"address"`
	Instance   string     `json:"instance"` // the owner
	Network    string     `json:"network,omitempty"`
	Guest      netip.Addr `json:"guest,omitzero"`
	Move       bool       `json:"move,omitempty"` // also if it is associated elsewhere
	EgressOnly bool       `json:"egress_only,omitempty"`
}

// DisassociateElastic ends the association of an address. An address without one stays as it is.
type DisassociateElastic struct {
	Address netip.Addr `json:"address"`
}

// ReleaseElastic releases an address that has no association.
type ReleaseElastic struct {
	Address netip.Addr `json:"address"`
}

// DeclareElastic maps an address to an owner for a Compose project. Without Address it uses the one that the owner has.
// Otherwise it allocates the lowest free one to the owner's account.
type DeclareElastic struct {
	Project    string     `json:"project"`
	Instance   string     `json:"instance"` // the owner
	Network    string     `json:"network,omitempty"`
	Address    netip.Addr `json:"address,omitzero"`
	EgressOnly bool       `json:"egress_only,omitempty"`
}

// EndDeclaredElastic ends the associations that a Compose project declared, except those in But.
type EndDeclaredElastic struct {
	Project string            `json:"project"`
	But     []DeclaredElastic `json:"but,omitempty"`
}

// DeclaredElastic is an owner with an address. The zero address means any.
type DeclaredElastic struct {
	Instance string     `json:"instance"`
	Address  netip.Addr `json:"address,omitzero"`
}

// elasticEdits returns one empty edit of each elastic operation.
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
