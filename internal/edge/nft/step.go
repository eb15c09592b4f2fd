package nft

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"berth/internal/edge"

	"sigs.k8s.io/knftables"
)

// If one mapping of ten thousand changes, only that one is written. To compute and compare all of them would take
// longer than the kernel's own work.

// mostSteps is the maximum number of mappings that are changed one by one. Above that, the whole state is set.
const mostSteps = 256

// step is the difference between two states with the same ranges. A changed mapping is in both lists.
type step struct{ gone, come []edge.Mapping }

func byElastic(a, b edge.Mapping) int { return a.Elastic.Compare(b.Elastic) }

// stepTo returns the step from the last state to s, if it is small. ok is false if the whole state must be set: the
// ranges differ, too much has changed, or the last state may not be in place.
func (p *Provider) stepTo(s edge.State) (one step, ok bool) {
	if p.state == nil || !p.whole || p.failed || !slices.IsSortedFunc(s.Mappings, byElastic) ||
		!slices.Equal(s.Ranges, p.state.Ranges) {
		return one, false
	}
	had, want := p.state.Mappings, s.Mappings
	for len(had)+len(want) > 0 && len(one.gone)+len(one.come) <= mostSteps {
		switch {
		case len(want) == 0 || len(had) > 0 && had[0].Elastic.Less(want[0].Elastic):
			one.gone, had = append(one.gone, had[0]), had[1:]
		case len(had) == 0 || want[0].Elastic.Less(had[0].Elastic):
			one.come, want = append(one.come, want[0]), want[1:]
		default:
			if had[0] != want[0] {
				one.gone, one.come = append(one.gone, had[0]), append(one.come, want[0])
			}
			had, want = had[1:], want[1:]
		}
	}
	return one, len(one.gone)+len(one.come) <= mostSteps
}

// checkStep is State.Check for the state after a step.
func (p *Provider) checkStep(one step) error {
	free := map[string]bool{} // elastic addresses whose guests may get another mapping
	for _, m := range one.gone {
		free[bytesOf(m.Elastic)] = true
	}
	taken := map[netip.Addr]netip.Addr{}
	var last netip.Addr
	for _, m := range one.come {
		err := edge.CheckMapping(m, p.state.Ranges)
		if err != nil {
			return err
		}
		if m.Elastic == last {
			return fmt.Errorf("elastic address %s is mapped twice; map it to one guest", m.Elastic)
		}
		last = m.Elastic
		other, double := taken[m.Guest]
		had, there := p.want[place{familyOf(m.Guest), mapOut}][bytesOf(m.Guest)]
		if there && !free[had] {
			other, double = addrOf(had), true
		}
		if double {
			return fmt.Errorf("guest %s has the elastic addresses %s and %s; a guest can have only one", m.Guest,
				other, m.Elastic)
		}
		taken[m.Guest] = m.Elastic
	}
	return nil
}

// take applies a step to the kernel, whose contents were found complete.
func (p *Provider) take(ctx context.Context, s edge.State, one step) error {
	until := p.state.Until
	change := p.want.step(one, p.countSubnets(one))
	s.Ranges, s.Mappings = p.state.Ranges, slices.Clone(s.Mappings)
	p.state = &s
	left, come := p.moveHere(one)
	p.whole = false
	failed := p.takeOff(left)
	p.announcer.Change(left, nil)
	err := p.move(ctx, change)
	if err != nil {
		return err
	}
	err = p.grantFrom(ctx, until)
	if err != nil {
		return err
	}
	err = p.forget(touchedBy(change))
	if err != nil {
		return err
	}
	entered, refused := p.putOn(come)
	failed = append(failed, refused...)
	failed = append(failed, p.announcer.Change(nil, entered)...)
	p.whole, p.failed = true, len(failed) > 0
	return errors.Join(failed...)
}

// grantFrom renews the live elements if the state's Until differs from until.
func (p *Provider) grantFrom(ctx context.Context, until edge.BootTime) error {
	if p.state.Until == until || len(p.live) == 0 && !p.fences() {
		return nil
	}
	return p.grant(ctx)
}

// step changes contents to those after a step, and returns the difference. subnets are the guests' subnets if they have
// changed; nil: they have not.
func (c contents) step(one step, subnets map[netip.Prefix]bool) delta {
	before, after := contents{}, contents{}
	for at, m := range each(one.gone) {
		before.put(at, m.key, m.value)
		delete(c[at], m.key)
	}
	for at, m := range each(one.come) {
		after.put(at, m.key, m.value)
		c.put(at, m.key, m.value)
	}
	if subnets != nil {
		fresh := contents{}
		for _, family := range []knftables.Family{knftables.IPv4Family, knftables.IPv6Family} {
			at := place{family, setInside}
			before[at], fresh[at] = c[at], elements{}
		}
		fresh.inside(subnets)
		for at, all := range fresh {
			c[at], after[at] = all, all
		}
	}
	for at := range before {
		if after[at] == nil {
			after[at] = elements{}
		}
	}
	return deltaOf(before, after)
}

func (c contents) put(at place, key, value string) {
	if c[at] == nil {
		c[at] = elements{}
	}
	c[at][key] = value
}

// countSubnets updates the number of guests in each subnet, and returns the subnets if their set has changed.
func (p *Provider) countSubnets(one step) map[netip.Prefix]bool {
	before := len(p.subnets)
	others := false
	for _, m := range one.come {
		in := m.Subnet.Masked()
		p.subnets[in]++
		others = others || p.subnets[in] == 1
	}
	for _, m := range one.gone {
		in := m.Subnet.Masked()
		if p.subnets[in]--; p.subnets[in] <= 0 {
			delete(p.subnets, in)
			others = true
		}
	}
	if !others && before == len(p.subnets) {
		return nil
	}
	all := map[netip.Prefix]bool{}
	for in := range p.subnets {
		all[in] = true
	}
	return all
}

// moveHere updates the addresses that this host answers for, and returns those that leave and those that come.
func (p *Provider) moveHere(one step) (left, come map[netip.Addr]string) {
	left, come = map[netip.Addr]string{}, announced(edge.State{Ranges: p.state.Ranges, Mappings: one.come})
	for a, device := range announced(edge.State{Ranges: p.state.Ranges, Mappings: one.gone}) {
		if come[a] == device {
			delete(come, a) // it is there already and stays
			continue
		}
		left[a] = device
		delete(p.here, a)
	}
	for a, device := range come {
		p.here[a] = device
	}
	return left, come
}
