package network

import (
	"berth/internal/cli"
)

func poolRefs(r *cli.Run, network string) (names []string, err error) {
	all, err := r.NetworksOf(network)
	for _, pool := range parts(all, poolRows) {
		names = append(names, pool.Range+"\t"+pool.Name)
		if pool.Name != "" {
			names = append(names, pool.Name+"\t"+pool.Range)
		}
	}
	return names, err
}

func exclusionRefs(r *cli.Run, network string) (names []string, err error) {
	all, err := r.NetworksOf(network)
	for _, e := range parts(all, exclusionRows) {
		names = append(names, e.Range+"\t"+e.Note)
	}
	return names, err
}

func ruleRefs(run *cli.Run, network string) (patterns []string, err error) {
	all, err := run.NetworksOf(network)
	for _, n := range all {
		for _, r := range n.OwnerRules {
			patterns = append(patterns, r.Pattern+"\t"+r.String())
		}
	}
	return patterns, err
}
