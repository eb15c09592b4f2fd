package rollout

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"berth/internal/deploy"
	"berth/internal/deploy/scene"
)

// NetworkState is a Docker network of the project in the files and in the engine.
type NetworkState struct {
	Wants deploy.Definition
	Has   scene.Network
	There bool // the engine has it
}

// Network is a Docker network that is recreated, because it differs from the files.
type Network struct {
	Name string   `json:"name"`
	ID   string   `json:"id"`
	Why  []string `json:"why"`

	on []string // ids of the containers on it when the plan was made
}

// networks plans which Docker networks are recreated. The project's containers on them are recreated, too. A network
// with a container from outside the project cannot be recreated.
func (d *drawing) networks() {
	for i := range d.in.Networks {
		n := &d.in.Networks[i]
		if !n.There || n.Has.Project != d.in.Project { // Compose creates it, or reports whose it is
			continue
		}
		why := otherwise(&n.Wants, &n.Has)
		if len(why) == 0 || d.in.Task.Do == Stop {
			continue
		}
		renewed := &Network{Name: n.Has.Name, ID: n.Has.ID, Why: why}
		change := renewed.describe()
		if do := d.in.Task.Do; do == Start || do == Recreate && d.in.Task.Service != "" {
			d.problem("%s; that requires a deploy of the whole project", change)
			continue
		}
		for _, guest := range n.Has.On {
			if guest.Project != d.in.Project {
				d.problem("%s, and %w", change, foreignGuest(guest.Name))
			}
		}
		for _, guest := range n.Has.On {
			renewed.on = append(renewed.on, guest.ID)
			d.renewed[guest.ID] = change
		}
		d.plan.Networks = append(d.plan.Networks, renewed)
	}
}

// Stay returns the subnets of the networks that the plan leaves as they are, by name.
func (p *Plan) Stay(all []NetworkState) map[string][]netip.Prefix {
	stay := map[string][]netip.Prefix{}
	for i := range all {
		has := &all[i].Has
		if !all[i].There || slices.ContainsFunc(p.Networks, func(n *Network) bool { return n.ID == has.ID }) {
			continue
		}
		for j := range has.Pools {
			stay[has.Name] = append(stay[has.Name], has.Pools[j].Subnet.Masked())
		}
	}
	return stay
}

// describe describes the change of the network for a person.
func (n *Network) describe() string {
	return fmt.Sprintf("the network %s is recreated: %s", n.Name, strings.Join(n.Why, "; "))
}

func foreignGuest(name string) error {
	return fmt.Errorf("the container %s of another project is on it; disconnect that container", name)
}

func lastingGuest(name string) error {
	return fmt.Errorf("the container %s is on it and stays unchanged; remove or disconnect that container", name)
}

// leftOn refuses to recreate a network while a container of the project is on it that the plan does not change, such as
// one of `compose run`. Nobody would connect it again.
func (d *drawing) leftOn() {
	for _, n := range d.plan.Networks {
		for i := range d.in.Networks {
			if d.in.Networks[i].Has.ID != n.ID {
				continue
			}
			for _, guest := range d.in.Networks[i].Has.On {
				if guest.Project == d.in.Project && !d.plan.takes(guest.ID) {
					d.problem("%s, and %w", n.describe(), lastingGuest(guest.Name))
				}
			}
		}
	}
}

// takes reports whether the plan removes or replaces a container.
func (p *Plan) takes(container string) bool {
	one := p.instance(container)
	return one != nil && one.Successor != container && (one.Do == Delete || one.Do == Recreate || one.Do == Work)
}

// renews reports whether a container of a service is on a recreated network. Its successor cannot start before it stops
// then.
func (d *drawing) renews(there map[int]*replica) bool {
	for _, r := range there {
		for _, c := range append([]*scene.Container{r.c}, r.beside...) {
			if c != nil && d.renewed[c.ID] != "" {
				return true
			}
		}
	}
	return false
}

// off returns why a container must change networks: it is not on one of its service, or must leave one.
func (d *drawing) off(service string, one *Instance, c *scene.Container) (why []string) {
	for i := range d.in.Networks {
		name := d.in.Networks[i].Wants.Network
		if !slices.Contains(d.in.Networks[i].Wants.Services, service) ||
			slices.ContainsFunc(one.On, func(a Address) bool { return a.Network == name }) {
			continue
		}
		if _, on := c.At(name); !on {
			why = append(why, fmt.Sprintf("it is not on the network %s", name))
		}
	}
	if change := d.renewed[c.ID]; change != "" {
		why = append(why, change)
	}
	return why
}

// otherwise returns the differences between a network and the files. What the files do not set is not compared.
func otherwise(wants *deploy.Definition, has *scene.Network) (why []string) {
	differ := func(what, had, gets string) {
		if had != gets {
			why = append(why, fmt.Sprintf("its %s changes %s -> %s", what, cmp.Or(had, "none"), cmp.Or(gets, "none")))
		}
	}
	differ("driver", has.Driver, wants.Driver)
	differ("IPAM driver", has.IPAM, wants.IPAM)
	if has.Internal != wants.Internal {
		differ("internal", fmt.Sprint(has.Internal), fmt.Sprint(wants.Internal))
	}
	if wants.IPv6 != nil && has.IPv6 != *wants.IPv6 {
		differ("enable_ipv6", fmt.Sprint(has.IPv6), fmt.Sprint(*wants.IPv6))
	}
	optionsDiffer("option", has.Options, wants.Options, differ)
	if len(has.IPAMOptions) > 0 { // Compose 5.5 passes none of them on, and the subnet identifies the network
		optionsDiffer("IPAM option", has.IPAMOptions, wants.IPAMOptions, differ)
	}
	if has.Hashed { // otherwise no Compose recreates it for its labels
		optionsDiffer("label", has.Labels, wants.Labels, differ)
	}
	return append(why, poolsDiffer(wants.Pools, has.Pools)...)
}

// ownOptions is the prefix of options that an engine adds itself.
const ownOptions = "com.docker.network.enable_ipv"

func optionsDiffer(what string, has, wants map[string]string, differ func(what, had, gets string)) {
	names := slices.AppendSeq(slices.Collect(maps.Keys(has)), maps.Keys(wants))
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if _, said := wants[name]; said || !strings.HasPrefix(name, ownOptions) {
			differ(what+" "+name, has[name], wants[name])
		}
	}
}

// poolsDiffer compares the subnets if the files name any.
func poolsDiffer(wants []deploy.Pool, has []scene.Pool) (why []string) {
	named := slices.ContainsFunc(wants, func(p deploy.Pool) bool { return p.Subnet != "" })
	if !named {
		return nil
	}
	var gone, new []string
	for i := range has {
		if poolOf(wants, has[i].Subnet) == nil {
			gone = append(gone, has[i].Subnet.String())
		}
	}
	for i := range wants {
		want := &wants[i]
		if want.Subnet == "" {
			continue
		}
		at := slices.IndexFunc(has, func(p scene.Pool) bool { return p.Subnet == prefix(want.Subnet) })
		if at < 0 {
			new = append(new, want.Subnet)
			continue
		}
		why = append(why, poolDiffers(want, &has[at])...)
	}
	if len(gone)+len(new) == 0 {
		return why
	}
	return append([]string{fmt.Sprintf("its subnet changes %s -> %s", cmp.Or(strings.Join(gone, ", "), "none"),
		cmp.Or(strings.Join(new, ", "), "none"))}, why...)
}

func poolOf(all []deploy.Pool, subnet netip.Prefix) *deploy.Pool {
	for i := range all {
		if prefix(all[i].Subnet) == subnet {
			return &all[i]
		}
	}
	return nil
}

// poolDiffers compares the other settings of a subnet. If the files name no gateway, the engine chooses it.
func poolDiffers(want *deploy.Pool, has *scene.Pool) (why []string) {
	differ := func(what, had, gets string) {
		if had != gets {
			why = append(why, fmt.Sprintf("the %s of its subnet %s changes %s -> %s", what, has.Subnet, had, gets))
		}
	}
	shown := func(valid bool, text fmt.Stringer) string {
		if !valid {
			return "none"
		}
		return text.String()
	}
	block := prefix(want.Range)
	differ("ip_range", shown(has.Range.IsValid(), has.Range), shown(block.IsValid(), block))
	if want.Gateway != "" {
		gateway, _ := netip.ParseAddr(want.Gateway)
		differ("gateway", shown(has.Gateway.IsValid(), has.Gateway), shown(gateway.IsValid(), gateway))
	}
	for _, name := range slices.Sorted(maps.Keys(want.Aux)) {
		differ("auxiliary address "+name, shown(has.Aux[name].IsValid(), has.Aux[name]), want.Aux[name])
	}
	return why
}

// prefix parses a prefix like Compose. An unreadable one is invalid.
func prefix(text string) netip.Prefix {
	p, _ := netip.ParsePrefix(text)
	return p.Masked()
}

// renumber removes the networks that are recreated. It stops the containers on them together and disconnects them; they
// return when they are replaced. Compose creates the networks with the first container.
func (r *run) renumber(ctx context.Context) error {
	if len(r.plan.Networks) == 0 {
		return nil
	}
	for _, s := range slices.Backward(r.plan.Services) {
		var on []*Instance
		for _, one := range s.Instances {
			if one.Container != "" && one.Do == Recreate && running(one.State) && r.onRenewed(one) {
				on = append(on, one)
			}
		}
		err := several(on, len(on), func(one *Instance) error {
			if err := r.down(ctx, one); err != nil {
				return r.fail(ctx, one, false, err)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	for _, n := range r.plan.Networks {
		if err := r.removeNetwork(ctx, n); err != nil {
			return fmt.Errorf("the network %s cannot be recreated: %w", n.Name, err)
		}
	}
	return nil
}

// onRenewed reports whether an instance is on a recreated network.
func (r *run) onRenewed(one *Instance) bool {
	return slices.ContainsFunc(r.plan.Networks, func(n *Network) bool { return slices.Contains(n.on, one.Container) })
}

func (r *run) removeNetwork(ctx context.Context, n *Network) error {
	if err := r.may(ctx); err != nil {
		return err
	}
	r.tell(Event{Step: removing, Detail: "the network " + n.Name})
	now, there, err := r.Engine.Network(ctx, n.Name)
	switch {
	case err != nil:
		return err
	case !there || now.ID != n.ID:
		return nil
	}
	for _, guest := range now.On {
		switch {
		case guest.Project != r.plan.Project:
			return foreignGuest(guest.Name)
		case !r.plan.takes(guest.ID): // it was connected later
			return lastingGuest(guest.Name)
		}
	}
	for _, guest := range now.On {
		if err := r.may(ctx); err != nil {
			return err
		}
		left, err := r.Engine.Leave(ctx, &now, guest.ID)
		if err != nil {
			return fmt.Errorf("cannot disconnect the container %s: %w", guest.Name, err)
		}
		r.left[guest.ID] = append(r.left[guest.ID], left)
	}
	return r.Engine.RemoveNetwork(ctx, n.ID)
}

// movedNetworks compares the recreated networks of two plans.
func movedNetworks(p, now *Plan) (moved []string) {
	same := func(a, b *Network) bool { return a.ID == b.ID && slices.Equal(a.Why, b.Why) }
	for _, n := range now.Networks {
		if !slices.ContainsFunc(p.Networks, func(before *Network) bool { return same(before, n) }) {
			moved = append(moved, fmt.Sprintf("the network %s is recreated now: %s", n.Name, strings.Join(n.Why, "; ")))
		}
	}
	for _, before := range p.Networks {
		if !slices.ContainsFunc(now.Networks, func(n *Network) bool { return n.Name == before.Name }) {
			moved = append(moved, fmt.Sprintf("the network %s is no longer recreated", before.Name))
		}
	}
	return moved
}
