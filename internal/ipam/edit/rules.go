package edit

import (
	"net/netip"
	"reflect"

	"berth/internal/ipam"
)

// rule makes one edit or refuses it, and sets the result of the run. It may run again, so it changes only the
// transaction, and copies a record before it changes it.
type rule func(*run, ipam.Edit) error

// ruleOf is the rule of one type of edit.
type ruleOf struct {
	edit reflect.Type
	make rule
}

// rules are the rules of all edits but those of elastic addresses, which package elastic has.
var rules = byEdit(
	alone(createNetwork),
	inNetwork(modifyNetwork),
	inNetwork(removeNetwork),
	inNetwork(addSubnet),
	inNetwork(modifySubnet),
	inNetwork(removeSubnet),
	inNetwork(addPool),
	inNetwork(modifyPool),
	inNetwork(removePool),
	inNetwork(addExclusion),
	inNetwork(removeExclusion),
	inNetwork(addReservation),
	inNetwork(removeReservation),
	alone(bindReservations),
	alone(releaseOwner),
	alone(releaseKnowing),
	alone(leaveStore),
	inNetwork(takeAddress),
	inNetwork(releaseAddress),
	alone(drainHost),
	alone(removeHost),
	alone(admitHost),
	alone(lockDeploy),
	alone(unlockDeploy),
	alone(keepOrphan),
	alone(removeOrphan),
	alone(recordWorker),
)

func byEdit(all ...ruleOf) map[reflect.Type]rule {
	rules := map[reflect.Type]rule{}
	for _, one := range all {
		rules[one.edit] = one.make
	}
	return rules
}

// alone is the rule of an edit of no network, or of several.
func alone[E ipam.Edit](make func(*run, E) error) ruleOf {
	return ruleOf{reflect.TypeFor[E](), func(c *run, e ipam.Edit) error { return make(c, e.(E)) }}
}

// inNetwork is the rule of an edit of one network, which is opened for it.
func inNetwork[E ipam.Edit](make func(*Plan, E) error) ruleOf {
	return alone(func(c *run, e E) error {
		network, _ := ipam.NetworkOf(e)
		p, err := openPlan(c, network, e)
		if err != nil {
			return err
		}
		c.result.Network = p.N.ID
		return make(p, e)
	})
}

// cameIn notes the subnet of an edit in its result.
func (p *Plan) cameIn(sub *ipam.Subnet) { p.run.result.Subnet, p.run.result.CIDR = sub.ID, sub.CIDR }

// gave notes addresses in the result of an edit.
func (c *run) gave(all ...netip.Addr) { c.result.Addresses = append(c.result.Addresses, all...) }
