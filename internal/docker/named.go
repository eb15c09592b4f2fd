package docker

import (
	"context"
	"slices"

	"berth/internal/ipam"
)

// Named returns the Docker networks of a name, as last listed.
func (r *Roster) Named(name string) (all []ipam.EngineNetwork) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, n := range r.networks {
		if n.Name == name {
			all = append(all, *n)
		}
	}
	return all
}

// Places returns the places in Berth of the Docker networks of a name. Docker sends no names to IPAM drivers, so space
// and subnet identify them. A swarm's network is in its manager's space, not where a node has the same addresses.
func (w *Witness) Places(ctx context.Context, name string) (all []ipam.DockerPlace, err error) {
	networks := w.cfg.Roster.Named(name)
	if len(networks) == 0 {
		return nil, nil
	}
	view := &ipam.EngineView{Host: w.cfg.Host, Networks: networks}
	rec := &records{networks: map[string]string{}, rules: map[planned]*ipam.Network{}, elastic: map[planned]bool{}}
	if err := rec.readNetworks(ctx, w.cfg.Service, view); err != nil {
		return nil, err
	}
	attachments, err := w.cfg.Service.Attachments(ctx)
	if err != nil {
		return nil, err
	}
	rec.index(attachments, w.cfg.Host)
	for i := range networks {
		for _, sub := range networks[i].Subnets {
			for _, at := range rec.placesOf(&networks[i], sub) {
				place := ipam.DockerPlace{Network: at.Network, Space: at.Space, Subnet: at.CIDR}
				if !slices.Contains(all, place) {
					all = append(all, place)
				}
			}
		}
	}
	return all, nil
}

// placesOf returns the attachments that may be a Docker network's, in the first of its spaces that has any. For a swarm
// the manager's space comes first.
func (rec *records) placesOf(n *ipam.EngineNetwork, sub ipam.EngineSubnet) []ipam.AttachmentInfo {
	spaces := rec.spacesOf(n, sub.CIDR)
	known := rec.here
	if n.Swarm {
		slices.Reverse(spaces)
		known = rec.all
	}
	for _, space := range spaces {
		if all := known[segment{space, sub.CIDR}]; len(all) > 0 {
			return all
		}
	}
	return nil
}
