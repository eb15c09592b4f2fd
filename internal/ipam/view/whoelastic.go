package view

import (
	"encoding/json"
	"net/netip"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// The holder of an elastic address is the instance that it is associated with. The tenure begins with the event of the
// association. It ends when the address is disassociated, or when it is moved, which is one event.

// elasticTenant identifies the tenure of an association. An address has one association at a time.
func elasticTenant(addr netip.Addr) tenant { return tenant{space: "elastic address", addr: addr} }

// elasticFacts is the part of an event that describes an association.
type elasticFacts struct {
	Host     string     `json:"host"`
	Instance string     `json:"instance"`
	Guest    netip.Addr `json:"guest"`
}

// associationIn reads the association in an event. It is false if there is none.
func associationIn(told json.RawMessage) (facts elasticFacts, is bool) {
	return facts, len(told) > 0 && json.Unmarshal(told, &facts) == nil && facts.Instance != ""
}

// readElastics notes the current associations.
func (h *history) readElastics() {
	h.s.Read(func(ix *ledger.Index) {
		for addr, one := range ix.Elastics() {
			a := one.Association
			if a == nil {
				continue
			}
			space, network := "", ""
			if n := ix.Network(a.Network); n != nil {
				space, network = n.Space, h.s.ShownName(ix, n)
			}
			if !h.chooses(space, addr, ipam.MAC{}, a.Instance) {
				continue
			}
			h.known[elasticTenant(addr)] = &beginning{id: a.ID, Tenure: ipam.Tenure{Space: space, Address: addr,
				Network: network, NetworkID: a.Network,
				What: ipam.ElasticTenure, Name: a.Instance, Guest: a.Guest, From: ipam.EventTime(a.ID), Early: true}}
		}
	})
}

// associate handles an event that ends an association, begins one, or does both.
func (h *history) associate(e *ipam.Event) {
	k := elasticTenant(e.Address)
	was, had := associationIn(e.Before)
	if known := h.known[k]; known != nil && known.id < e.ID && h.open[k] == nil {
		h.open[k] = known
	}
	if had && h.open[k] == nil && h.chooses(e.Space, e.Address, ipam.MAC{}, was.Instance) {
		t := tenureOf(e, ipam.ElasticTenure, was.Instance)
		t.Host, t.Guest, t.From, t.Early = was.Host, was.Guest, h.oldest, true
		h.open[k] = &beginning{Tenure: t}
	}
	if h.open[k] != nil {
		h.end(k, e)
	}
	is, has := associationIn(e.After)
	if has && h.chooses(e.Space, e.Address, ipam.MAC{}, is.Instance) {
		t := tenureOf(e, ipam.ElasticTenure, is.Instance)
		t.Host, t.Guest, t.By = is.Host, is.Guest, e.Actor
		h.open[k] = &beginning{Tenure: t, id: e.ID}
	}
}
