//go:build engine

package engine

import (
	"slices"
	"strings"
	"testing"
)

// `berth deploy` stops, starts and recreates a project without its files, by the labels of its containers, with both
// generations of Compose. Dependencies determine the order, and each replica keeps its addresses. The history lists
// the tasks (BD-10).
func TestDeploySteps(t *testing.T) {
	eachGeneration(t, newer, 201, func(h *Harness, command []string) {
		p := h.deployed(command, deployedFile, h.says("one", "3"))
		running := func() []string {
			return strings.Fields(p.docker("ps", "--quiet", "--no-trunc", "--filter",
				"label=com.docker.compose.project="+p.name))
		}
		p.deploys()
		ids, has := p.ids(), p.addresses()
		said := p.does("stop")
		for n := 1; n <= 3; n++ {
			p.inOrder(said, "stop "+p.webOwner(n), "stop "+p.name+"/db/1")
		}
		p.same("the containers", ids, p.ids())
		if all := running(); len(all) > 0 {
			p.Errorf("after a stop %v run", all)
		}
		for n := 1; n <= 3; n++ {
			p.same(p.webOwner(n)+"'s reservations", has[n-1:n], p.reserved(p.planned, p.webOwner(n)))
		}
		p.docker("rm", "--force", p.containerOf("web", 2))
		p.does("start", "web/2") // its container was removed, but the files still have it
		p.same("the running containers", []string{p.containerOf("web", 2)}, running())
		p.inOrder(p.does("start"), "done "+p.name+"/db/1", "watch "+p.name+"/web/")
		p.plans(0)
		p.hasAgain(has)
		ids = p.ids()
		p.inOrder(p.does("recreate", "web"), "done "+p.webOwner(1)+" (canary)", "stop "+p.webOwner(2))
		again := p.ids()
		kept := slices.DeleteFunc(slices.Clone(again), func(id string) bool { return !slices.Contains(ids, id) })
		p.same("the containers that were not recreated", []string{p.containerOf("db", 1)}, kept)
		p.hasAgain(has)
		p.plans(0)
		p.upLeaves(4)
		p.same("the steps of the history", []string{"recreate web: done", "start: done", "start web/2: done",
			"stop: done", "apply: done"}, p.history())
	})
}
