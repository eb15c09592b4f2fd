package docker

import (
	"fmt"

	"berth/internal/ipam"
)

// maxNamed is the most names in a sentence.
const maxNamed = 5

// judgeEmpty finds an empty state next to an engine that has Docker networks of this Berth. The state was lost, or is
// not the one of these networks. Berth would then lease addresses that are in use.
func (c *comparison) judgeEmpty() {
	if len(c.rec.attachments) > 0 || c.rec.partial != nil {
		return
	}
	var with []*ipam.EngineNetwork
	for i := range c.view.Networks {
		if n := &c.view.Networks[i]; len(n.Subnets) > 0 && (!n.Swarm || c.seen.used[n.ID]) {
			with = append(with, n)
		}
	}
	if len(with) == 0 {
		return
	}
	which := names(with[:min(len(with), maxNamed)])
	if n := len(with) - maxNamed; n > 0 {
		which += fmt.Sprintf(" and %d more", n)
	}
	space := c.rec.spacesOf(with[0], with[0].Subnets[0].CIDR)[0]
	c.add(finding{Finding: ipam.Finding{Kind: ipam.EmptyState, Space: space, Network: which}},
		"Berth knows no Docker network, but the engine has some with its IPAM driver: %s. Its state was lost or "+
			"replaced (serve --state), so no container can start there: restore a backup with `berth state restore`, "+
			"then run `berth check --repair`; without a backup, remove and create these networks", which)
}

// tellEmpty logs once, as an error, that the state is empty and should not be. The caller holds the turn.
func (w *Witness) tellEmpty(found []finding) {
	for i := range found {
		if found[i].Kind == ipam.EmptyState {
			if !w.emptyTold {
				w.log.Error(found[i].Detail)
			}
			w.emptyTold = true
			return
		}
	}
	w.emptyTold = false
}
