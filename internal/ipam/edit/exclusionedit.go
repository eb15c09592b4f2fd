package edit

import (
	"fmt"

	"berth/internal/ipam"
)

func addExclusion(p *Plan, e *ipam.AddExclusion) error {
	sub, err := p.Holding(e.Range)
	if err != nil {
		return err
	}
	p.cameIn(sub)
	if err := ipam.CheckNote(e.Note); err != nil {
		return err
	}
	if gateway := sub.Gateway; gateway.IsValid() && e.Range.From() == gateway && e.Range.To() == gateway {
		return ipam.Refuse(ipam.ErrInUse, "%s is the gateway of the subnet %s, and a gateway needs no exclusion",
			gateway, sub.CIDR)
	}
	if e.Answered != (ipam.MAC{}) {
		return p.excludeAnswered(sub, e)
	}
	if _, err := p.addExclusions(sub, ipam.Exclusion{Range: e.Range, Note: e.Note}); err != nil {
		return err
	}
	p.run.result.Warnings, err = p.keepers(sub, e.Range)
	return err
}

// excludeAnswered excludes an address that answered a probe, if it has no record. A record means that the answer may
// come from its present or last holder: probed addresses had no record when the probe began.
func (p *Plan) excludeAnswered(sub *ipam.Subnet, e *ipam.AddExclusion) error {
	addr := e.Range.From()
	if addr != e.Range.To() {
		return ipam.Refuse(ipam.ErrInvalid, "%s answers for one address, but %s is a range", e.Answered, e.Range)
	}
	l, err := p.Lease(sub.ID, addr)
	if err != nil {
		return err
	}
	if l != nil {
		return ipam.Refuse(ipam.ErrInUse, "%s answers for %s, but Berth does not exclude it: %s", e.Answered, addr,
			answererText(l))
	}
	_, err = p.exclude(ipam.Event{Verb: ipam.AnswerFound, Address: addr, MAC: e.Answered, Detail: e.Note}, sub,
		ipam.Exclusion{Range: e.Range, Note: e.Note})
	return err
}

// maxKeepers is how many holders of excluded addresses are named.
const maxKeepers = 10

// keepers names those who keep an address although it is excluded: holders and owners of reservations. It
// leaves out the gateway.
func (p *Plan) keepers(sub *ipam.Subnet, r ipam.Range) (warnings []string, err error) {
	more := 0
	err = eachLeaseIn(p.Tx(), sub.ID, r, func(l *ipam.Lease) error {
		if l.Address == sub.Gateway || !l.Held() && l.Reservation == nil {
			return nil
		}
		if len(warnings) == maxKeepers {
			more++
			return nil
		}
		warnings = append(warnings, keeperText(l))
		return nil
	})
	if more > 0 {
		warnings = append(warnings, fmt.Sprintf("%d more addresses of the range stay held or reserved", more))
	}
	return warnings, err
}

// answererText names who may have answered for an address.
func answererText(l *ipam.Lease) string {
	if l.Held() || l.Reservation != nil {
		has, _ := holding(l)
		return has
	}
	return fmt.Sprintf("%s was held by %s until %s; that holder may have answered", l.Address, l.Holder(),
		l.Released.Format("2006-01-02 15:04:05 MST"))
}

func keeperText(l *ipam.Lease) string {
	has, keeps := holding(l)
	return has + ". " + keeps + ", nobody gets it"
}

// holding says who has an address, and that its exclusion leaves it to them.
func holding(l *ipam.Lease) (has, keeps string) {
	switch {
	case l.Reservation == nil:
		return fmt.Sprintf("%s is held by %s", l.Address, l.Holder()),
			"The holder keeps it; once the holder gives it up"
	case !l.Held():
		return fmt.Sprintf("%s is reserved for %s", l.Address, l.Reservation.Owner),
			"The owner keeps it; once the owner gives it up"
	}
	return fmt.Sprintf("%s is held by %s and reserved for %s", l.Address, l.Holder(), l.Reservation.Owner),
		"They keep it; once they give it up"
}

func removeExclusion(p *Plan, e *ipam.RemoveExclusion) error {
	sub, err := p.Holding(e.Range)
	if err != nil {
		return err
	}
	p.cameIn(sub)
	edited := *sub
	edited.Exclusions, err = cut(p, ipam.ExclusionRemoved, sub, sub.Exclusions, exclusionRange, e.Range,
		ipam.DoListExclusions)
	if err != nil {
		return err
	}
	return p.SetSubnet(&edited)
}
