package ipam

import (
	"fmt"
	"slices"
)

func (e *AddExclusion) apply(c *change) (Result, error) {
	p, err := c.plan(e.Network)
	if err != nil {
		return Result{}, err
	}
	sub, err := p.holding(e.Range)
	if err != nil {
		return Result{}, err
	}
	if err := checkText("the note", e.Note); err != nil {
		return Result{}, err
	}
	if gateway := sub.Gateway; gateway.IsValid() && e.Range.From() == gateway && e.Range.To() == gateway {
		return Result{}, &refusal{ErrInUse, fmt.Sprintf("%s is the gateway of the subnet %s, which nobody is given anyway", gateway, sub.CIDR)}
	}
	at, other := sub.placeOfExclusion(e.Range)
	if other != nil {
		return Result{}, &refusal{ErrOverlap, fmt.Sprintf("the range %s overlaps the exclusion %s of the subnet %s; give a range beside it, or remove that one first", e.Range, *other, sub.CIDR)}
	}
	if err := sub.outsideStatic(e.Range); err != nil {
		return Result{}, err
	}
	x := Exclusion{e.Range, e.Note}
	if err := p.note(&Event{Verb: ExclusionAdded, Subnet: sub.CIDR}, nil, x); err != nil {
		return Result{}, err
	}
	edited := *sub
	edited.Exclusions = slices.Insert(slices.Clone(sub.Exclusions), at, x)
	return Result{Network: p.n.ID, Subnet: sub.ID, CIDR: sub.CIDR}, c.setSubnet(&edited)
}

func (e *RemoveExclusion) apply(c *change) (Result, error) {
	p, err := c.plan(e.Network)
	if err != nil {
		return Result{}, err
	}
	sub, err := p.holding(e.Range)
	if err != nil {
		return Result{}, err
	}
	edited := *sub
	edited.Exclusions = []Exclusion{}
	cut := false
	for _, x := range sub.Exclusions {
		if !x.Range.Overlaps(e.Range.IPRange) {
			edited.Exclusions = append(edited.Exclusions, x)
			continue
		}
		cut = true
		left := []Exclusion{}
		for _, part := range less(x.Range.IPRange, e.Range.IPRange) {
			left = append(left, Exclusion{Range{part}, x.Note})
		}
		if err := p.note(&Event{Verb: ExclusionRemoved, Subnet: sub.CIDR, Detail: e.Range.String()}, x, left); err != nil {
			return Result{}, err
		}
		edited.Exclusions = append(edited.Exclusions, left...)
	}
	if !cut {
		return Result{}, &refusal{ErrNotFound, fmt.Sprintf("no exclusion of the subnet %s has an address of the range %s; `berth exclusion ls %s` lists them", sub.CIDR, e.Range, p.n.Name)}
	}
	return Result{Network: p.n.ID, Subnet: sub.ID, CIDR: sub.CIDR}, c.setSubnet(&edited)
}
