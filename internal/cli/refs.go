package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"berth/internal/admin/api"
	"berth/internal/admin/client"
	"berth/internal/ipam"
)

// This file completes the names of the plan's objects in the shell.

// NamesOf completes with the names of what a client lists.
func NamesOf[T any](list func(*client.Client, context.Context) ([]T, error), name func(*T) string) Refs {
	return func(r *Run, _ string) (names []string, err error) {
		all, err := list(r.Client, r)
		for i := range all {
			names = append(names, name(&all[i]))
		}
		return names, err
	}
}

// Completions with what the daemon has once, whatever the network.
var (
	SpaceRefs   = NamesOf((*client.Client).Spaces, func(s *ipam.SpaceInfo) string { return s.Name })
	AccountRefs = NamesOf((*client.Client).Accounts, func(a *ipam.AccountInfo) string { return a.Name })
)

// NetworksOf returns one network with its maps or, if the name is empty, all without maps. It is for commands that only
// read. If Docker uses the name for several networks, as for both families of one, it returns all of these.
func (r *Run) NetworksOf(network string) ([]ipam.NetworkInfo, error) {
	if network == "" {
		return r.Networks(r, "")
	}
	n, err := r.Network(r, network)
	var refused *api.Problem
	if err == nil || !errors.As(err, &refused) || refused.Status != http.StatusBadRequest {
		return []ipam.NetworkInfo{n}, err
	}
	listed, failed := r.Networks(r, "")
	if failed != nil {
		return nil, failed
	}
	var all []ipam.NetworkInfo
	for i := range listed {
		if listed[i].Name != network {
			continue
		}
		one, failed := r.Network(r, listed[i].ID.String())
		if failed != nil {
			return nil, failed
		}
		all = append(all, one)
	}
	if len(all) == 0 {
		return nil, err
	}
	slices.SortFunc(all, func(a, b ipam.NetworkInfo) int { return strings.Compare(familyOf(&a), familyOf(&b)) })
	return all, nil
}

// familyOf is a sort key that puts IPv4 networks before IPv6 networks.
func familyOf(n *ipam.NetworkInfo) string {
	if n.CIDR.IsValid() {
		return "4 " + n.ID.String()
	}
	return "6 " + n.ID.String()
}

func NetworkRefs(r *Run, _ string) (names []string, err error) {
	all, err := r.Networks(r, "")
	for _, n := range all {
		names = append(names, n.Name+"\t"+SomeSubnets(n.Subnets, completedSubnets))
	}
	return names, err
}

// completedSubnets is the number of subnets shown next to a completed network.
const completedSubnets = 2

// SomeSubnets names the first some subnets and the number of the others. 0 means all.
func SomeSubnets(subnets []ipam.SubnetPlan, some int) string {
	var texts []string
	for i, s := range subnets {
		if i == some && some > 0 {
			texts = append(texts, fmt.Sprintf("+%d", len(subnets)-i))
			break
		}
		texts = append(texts, s.CIDR.String())
	}
	return strings.Join(texts, ",")
}

func SubnetRefs(r *Run, network string) (names []string, err error) {
	all, err := r.NetworksOf(network)
	for _, n := range all {
		for _, s := range n.Subnets {
			names = append(names, s.CIDR.String()+"\t"+s.Name)
			if s.Name != "" {
				names = append(names, s.Name+"\t"+s.CIDR.String())
			}
		}
	}
	return names, err
}

func ReservationOwners(r *Run, network string) ([]string, error) {
	all, err := r.Reservations(r, network, "")
	return owners(all, func(one ipam.ReservationInfo) string { return one.Owner }), err
}

func AddressOwners(r *Run, network string) ([]string, error) {
	all, err := r.Addresses(r, network, "")
	return owners(all, func(a ipam.TakenAddress) string { return a.Owner }), err
}

func AnyOwners(r *Run, network string) ([]string, error) {
	reserving, err := ReservationOwners(r, network)
	if err != nil {
		return nil, err
	}
	taking, err := AddressOwners(r, network)
	return owners(append(reserving, taking...), func(name string) string { return name }), err
}

// AnyNames lists owners and the current holders of addresses.
func AnyNames(r *Run, network string) ([]string, error) {
	names, err := AnyOwners(r, network)
	if err != nil {
		return nil, err
	}
	all, err := r.Leases(r, ipam.LeaseFilter{})
	for i := range all {
		if l := &all[i]; l.SeenBy != nil && l.SeenBy.Container != "" {
			names = append(names, l.SeenBy.Container)
		} else if l.Name != "" {
			names = append(names, l.Name)
		}
	}
	return owners(names, func(name string) string { return name }), err
}

// ContainerRefs completes containers that have an address.
func ContainerRefs(r *Run, _ string) ([]string, error) {
	return seenRefs(r, func(s *ipam.SeenBy) string { return s.Container })
}

// ProjectRefs completes Compose projects whose containers have an address.
func ProjectRefs(r *Run, _ string) ([]string, error) {
	return seenRefs(r, func(s *ipam.SeenBy) string { return s.Project })
}

// UsedRefs completes Compose projects and Docker networks whose containers have an address.
func UsedRefs(r *Run, _ string) ([]string, error) {
	projects, err := ProjectRefs(r, "")
	if err != nil {
		return nil, err
	}
	networks, err := seenRefs(r, func(s *ipam.SeenBy) string { return s.Network })
	return append(projects, networks...), err
}

// seenRefs completes with what the witness knows of leases.
func seenRefs(r *Run, of func(*ipam.SeenBy) string) ([]string, error) {
	all, err := r.Leases(r, ipam.LeaseFilter{})
	all = slices.DeleteFunc(all, func(l ipam.LeaseInfo) bool { return l.SeenBy == nil || of(l.SeenBy) == "" })
	return owners(all, func(l ipam.LeaseInfo) string { return of(l.SeenBy) }), err
}

// owners lists each owner once.
func owners[T any](all []T, of func(T) string) []string {
	var names []string
	seen := map[string]bool{}
	for _, item := range all {
		if name := of(item); !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	return names
}

// Ref is the shortest unique name of a thing in a network, which Places can parse. In the space local a CIDR, a range
// or an address stands alone, because subnets there do not overlap. In other spaces it is NETWORK/THING.
func Ref(space, network, thing string) string {
	if space == ipam.LocalSpace {
		return thing
	}
	return network + "/" + thing
}
