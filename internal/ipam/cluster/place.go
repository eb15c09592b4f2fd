package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"berth/internal/ipam"
	"berth/internal/ipam/edit"
	"berth/internal/ipam/elastic"
	"berth/internal/ipam/ledger"
)

// place is what an edit concerns. It determines the store of the edit.
type place struct {
	networks []string           // by name or id
	space    string             // of a new network
	name     string             // the new name of a network
	owner    *ipam.ReleaseOwner // the release of an owner, in any store
	hosts    bool               // hosts of the cluster, or its elastic addresses
	own      bool               // only this host
	elastic  bool               // elastic addresses of a network are turned on
}

func on(networks ...string) place { return place{networks: networks} }

// placeOf returns what an edit concerns.
func placeOf(e ipam.Edit) (p place) {
	switch e := e.(type) {
	case *ipam.CreateNetwork:
		return place{space: cmp.Or(e.Space, ipam.LocalSpace), name: e.Name}
	case *ipam.ModifyNetwork:
		p = on(e.Network)
		if e.Name != nil {
			p.name = *e.Name
		}
		p.elastic = e.Elastic != nil && *e.Elastic != ipam.ElasticOff.String()
	case *ipam.BindReservations:
		for i := range e.Wanted {
			p.networks = append(p.networks, e.Wanted[i].Network)
		}
	case *ipam.ReleaseOwner:
		return place{owner: e}
	case *ipam.KeepOrphan, *ipam.RemoveOrphan, *ipam.RecordWorker:
		return place{own: true}
	case *ipam.DrainHost, *ipam.RemoveHost, *ipam.AdmitHost, *ipam.CreateAccount, *ipam.RemoveAccount,
		*ipam.AddElasticRange, *ipam.RemoveElasticRange, *ipam.AllocateElastic, *ipam.AssociateElastic,
		*ipam.DisassociateElastic, *ipam.ReleaseElastic, *ipam.DeclareElastic, *ipam.EndDeclaredElastic:
		return place{hosts: true}
	default:
		if network, is := ipam.NetworkOf(e); is {
			return on(network)
		}
	}
	return p
}

// halves are the stores that something concerns: the host's own, the cluster's or both. If neither is set, it is not
// known.
type halves struct{ own, shared bool }

func (h halves) or(other halves) halves { return halves{h.own || other.own, h.shared || other.shared} }

// placing finds the store for the edits of one call.
type placing struct {
	*Service
	given map[string]bool // names that these edits give to networks
	names []givenName
}

// givenName is a name that the edit with this index gives to a network.
type givenName struct {
	edit int
	name string
}

// placeEdits returns the stores for edits. It is one store, because the edits are one transaction. Only releases of
// owners can concern both.
func (e *Service) placeEdits(ctx context.Context, edits []ipam.Edit) (halves, error) {
	p := placing{Service: e, given: map[string]bool{}}
	var fixed, owners halves
	first := map[halves]int{}
	for i, edit := range edits {
		at := placeOf(edit)
		h, err := p.halves(ctx, i, &at)
		if err != nil {
			return halves{}, ofEdit(edits, i, err)
		}
		if _, seen := first[h]; !seen {
			first[h] = i
		}
		if at.owner != nil {
			owners = owners.or(h)
		} else {
			fixed = fixed.or(h)
		}
	}
	all := fixed.or(owners)
	if fixed != (halves{}) && all.own && all.shared {
		return halves{}, bothStores(first)
	}
	for _, n := range p.names {
		if err := p.nameFree(n.name, all); err != nil {
			return halves{}, ofEdit(edits, n.edit, err)
		}
	}
	return all, nil
}

// ofEdit adds the index of an edit to its refusal.
func ofEdit(edits []ipam.Edit, i int, err error) error {
	if len(edits) == 1 {
		return err
	}
	return &ipam.EditError{Index: i, Err: err}
}

// bothStores refuses edits of which some concern one store and some the other.
func bothStores(first map[halves]int) error {
	own, shared := first[halves{own: true}], first[halves{shared: true}]
	if both, seen := first[halves{true, true}]; seen {
		return &ipam.EditError{Index: both,
			Err: ipam.Refuse(ipam.ErrInvalid,
				"the owner has addresses in this host's own store and in the cluster's, and one request changes "+
					"only one store; release the owner in its own request")}
	}
	return &ipam.EditError{Index: max(own, shared),
		Err: ipam.Refuse(ipam.ErrInvalid,
			"change %d is for this host's own store, and change %d for the cluster's; one request changes only one "+
				"store, so make two requests",
			own+1, shared+1)}
}

// halves returns the stores that the edit with index i concerns.
func (p *placing) halves(ctx context.Context, i int, at *place) (h halves, err error) {
	switch {
	case at.hosts:
		return halves{shared: true}, nil
	case at.own:
		return halves{own: true}, nil
	case at.owner != nil:
		return p.owned(ctx, at.owner)
	case at.space != "":
		h = halvesOf(p.homes.OwnsSpace(at.space))
	}
	var renamed *ipam.Network
	for _, ref := range at.networks {
		if p.given[ref] {
			continue // in the store of the other edits
		}
		n, own, err := p.homes.Find(ref, "")
		if err != nil {
			return h, err
		}
		if n == nil {
			if several, is := p.several(ref); is {
				h = h.or(several) // the edit says which network it means, or is refused
				continue
			}
			if _, err := p.homes.Cluster(fmt.Sprintf("network %q", ref)); err != nil {
				return h, err
			}
			continue // the store of the edits refuses it
		}
		if at.elastic && own {
			return h, ipam.RefuseAs(ipam.NetworkUnsuited, ipam.ErrInvalid,
				"network %s is in this host's own store; a cluster maps elastic addresses only on networks of its "+
					"own spaces", n.Name)
		}
		renamed, h = n, h.or(halvesOf(own))
	}
	if h.own && h.shared {
		return h, ipam.Refuse(ipam.ErrInvalid,
			"the networks are in this host's own store and in the cluster's, and one change goes to only one store; "+
				"make two changes")
	}
	if at.name != "" && (renamed == nil || renamed.Name != at.name) {
		p.names, p.given[at.name] = append(p.names, givenName{i, at.name}), true
	}
	return h, nil
}

// several returns the store in which several networks have the same Docker name.
func (p *placing) several(ref string) (halves, bool) {
	if p.local.Ledger.Several(ref) != nil {
		return halves{own: true}, true
	}
	s, err := p.shared.service()
	return halves{shared: true}, err == nil && s.Ledger.Several(ref) != nil
}

func halvesOf(own bool) halves { return halves{own, !own} }

// nameFree refuses a name that the other store has. The edit itself refuses a name of its own store.
func (p *placing) nameFree(name string, h halves) error {
	other := p.local
	if h.own {
		var err error
		if other, err = p.shared.service(); err != nil {
			return nil // the host's own store works without the cluster
		}
	}
	if n := other.Ledger.Named(name); n != nil {
		return ipam.Refuse(ipam.ErrInUse, "network %s already exists, in the space %s; choose another name", name,
			n.Space)
	}
	return nil
}

// owned returns the stores in which an owner has something.
func (p *placing) owned(ctx context.Context, e *ipam.ReleaseOwner) (h halves, err error) {
	shared, err := p.shared.service()
	if err != nil {
		return h, ipam.Refuse(err, "cannot read what %s has in the cluster's store: %s", e.Owner, err)
	}
	if h.own, err = owns(ctx, p.local.Ledger, e); err == nil {
		h.shared, err = owns(ctx, shared.Ledger, e)
	}
	return h, err
}

// owns reports whether e would release anything.
func owns(ctx context.Context, s *ledger.Ledger, e *ipam.ReleaseOwner) (bool, error) {
	owners := edit.Owners(e)
	return ledger.Look(ctx, s, func(c *ledger.Change) (bool, error) {
		found := elastic.HasOwners(c.Index(), owners.Has)
		note := func(ledger.Picked) error { found = true; return nil }
		err := errors.Join(edit.EachOwned(c, owners, note), edit.EachTaken(c, owners, note))
		for _, n := range edit.DynamicNetworks(c) {
			known, errN := edit.PlanOf(c, n).DynamicOwners()
			for _, one := range known {
				found = found || owners.Has(one.Owner)
			}
			err = errors.Join(err, errN)
		}
		return found, err
	})
}
