package docker

import (
	"context"
	"net/netip"
	"slices"
	"time"

	"berth/internal/ipam"
)

// place is an address in its space, where it is unique.
type place struct {
	space string
	addr  netip.Addr
}

// segment is a subnet of a space. Docker does not report the pool of a network, so a segment is what both sides know.
type segment struct {
	space string
	cidr  netip.Prefix
}

// networkCreation is the longest time that an engine takes to create a network. It requests pools and gateways first,
// from a managed plugin for up to 30 s, and lists the network last.
const networkCreation = 30 * time.Second

// planned identifies a network of Berth by its space and name.
type planned struct{ space, name string }

// records are Berth's records, read after a view was taken.
type records struct {
	leases       []ipam.LeaseInfo // held and remembered
	reservations []ipam.ReservationInfo
	standIns     []ipam.StandIn                    // of this host
	networks     map[string]string                 // spaces of networks, by name and by id
	rules        map[planned]*ipam.Network         // the owner rules of these networks
	elastic      map[planned]bool                  // networks with elastic addresses turned on
	all          map[segment][]ipam.AttachmentInfo // of all hosts
	here         map[segment][]ipam.AttachmentInfo // of the host that is judged
	attachments  map[ipam.ID]ipam.AttachmentInfo

	justLeft func(network string, addr netip.Addr, taken time.Time) bool // Roster.justLeft; nil: unknown

	creation time.Duration // how long an attachment may exist before its Docker network

	mapped []ipam.ElasticGuest // elastic addresses of containers that publish ports
	gaps   []ipam.SystemGap

	other   bool  // the view is of another engine than the records
	cluster bool  // the records include other hosts'
	partial error // why the cluster's records could not be read
}

// read reads the records to compare with a view: the leases of all spaces in which this host has something. With
// memories it reads the remembered ones, too. Attachments come last, so a lease without its attachment is being ended.
func read(ctx context.Context, s Records, view *ipam.EngineView, memories bool) (*records, error) {
	rec := &records{networks: map[string]string{}, rules: map[planned]*ipam.Network{}, elastic: map[planned]bool{},
		partial: s.Partial()}
	for r, err := range s.Reservations(ctx, ipam.AddressFilter{}) {
		if err != nil {
			return nil, err
		}
		rec.reservations = append(rec.reservations, r)
	}
	var err error
	if rec.standIns, err = s.StandIns(ctx); err != nil {
		return nil, err
	}
	if err := rec.readNetworks(ctx, s, view); err != nil {
		return nil, err
	}
	spaces, err := rec.spaces(ctx, s, view)
	if err != nil {
		return nil, err
	}
	for _, space := range spaces {
		for l, err := range s.Leases(ctx, ipam.LeaseFilter{Space: space, Remembered: memories}) {
			if err != nil {
				return nil, err
			}
			rec.leases = append(rec.leases, l)
		}
	}
	attachments, err := s.Attachments(ctx)
	if err != nil {
		return nil, err
	}
	rec.index(attachments, view.Host)
	if memories {
		err = rec.readElastic(ctx, s, view)
	}
	return rec, err
}

func (w *Witness) read(ctx context.Context, view *ipam.EngineView, memories bool) (*records, error) {
	rec, err := read(ctx, w.cfg.Service, view, memories)
	if err == nil {
		rec.cluster, rec.justLeft = w.cfg.Cluster, w.cfg.Roster.justLeft
		rec.creation = min(networkCreation, w.cfg.Grace)
		w.recognize(view, rec)
	}
	return rec, err
}

// recognize decides whether a view is of the engine of the records. A wrong engine, or one whose data is gone, shows no
// container of theirs, and its word must end nothing. An engine with another id is the right one all the same if it has
// a container of the records.
func (w *Witness) recognize(view *ipam.EngineView, rec *records) {
	rec.other = !w.lastSeen.knows(view) && !rec.has(view)
	w.cfg.Roster.recognize(!rec.other)
	if rec.other {
		return
	}
	if err := w.lastSeen.keep(view); err != nil && !w.keepTold {
		w.keepTold = true
		w.log.WithError(err).Error("cannot save the list of running containers next to the state; after a restore, " +
			"Berth protects their addresses only once the engine has answered")
	}
}

// has reports whether a lease of this host names one of the view's containers.
func (rec *records) has(view *ipam.EngineView) bool {
	there := make(map[string]bool, len(view.Containers))
	for _, c := range view.Containers {
		there[ipam.ShortContainer(c.ID)] = true
	}
	return slices.ContainsFunc(rec.leases, func(l ipam.LeaseInfo) bool {
		return l.Host == view.Host && l.Container != "" && there[l.Container]
	})
}

// readNetworks reads networks if they are needed. A Docker network may name one (--ipam-opt network=), reservations
// depend on owner rules, and a firewall may block elastic addresses.
func (rec *records) readNetworks(ctx context.Context, s Records, view *ipam.EngineView) error {
	names := slices.ContainsFunc(view.Networks, func(n ipam.EngineNetwork) bool { return n.Options["network"] != "" })
	if !names && len(rec.reservations) == 0 && view.Firewall != nftables {
		return nil
	}
	all, err := s.Networks(ctx, ipam.NetworkFilter{})
	if err != nil {
		return err
	}
	for _, n := range all {
		rec.networks[n.ID.String()] = n.Space
		rec.elastic[planned{n.Space, n.Name}] = n.Elastic != "" && n.Elastic != ipam.ElasticOff.String()
		if len(n.OwnerRules) > 0 {
			rec.rules[planned{n.Space, n.Name}] = &ipam.Network{Name: n.Name, Rules: n.OwnerRules}
		}
		if other, two := rec.networks[n.Name]; two && other != n.Space {
			rec.networks[n.Name] = "" // ambiguous: the subnet decides
		} else {
			rec.networks[n.Name] = n.Space
		}
	}
	return nil
}

// spaces lists the spaces in which the host has a subnet, or the view shows one.
func (rec *records) spaces(ctx context.Context, s Records, view *ipam.EngineView) ([]string, error) {
	attachments, err := s.Attachments(ctx)
	if err != nil {
		return nil, err
	}
	rec.index(attachments, view.Host)
	var all []string
	for i := range view.Networks {
		n := &view.Networks[i]
		for _, sub := range n.Subnets {
			all = append(all, rec.spacesOf(n, sub.CIDR)...)
		}
	}
	for seg := range rec.here {
		all = append(all, seg.space)
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

func (rec *records) index(attachments []ipam.AttachmentInfo, host string) {
	rec.all, rec.here = map[segment][]ipam.AttachmentInfo{}, map[segment][]ipam.AttachmentInfo{}
	rec.attachments = make(map[ipam.ID]ipam.AttachmentInfo, len(attachments))
	for _, at := range attachments {
		seg := segment{at.Space, at.CIDR}
		rec.attachments[at.ID] = at
		rec.all[seg] = append(rec.all[seg], at)
		if at.Host == host {
			rec.here[seg] = append(rec.here[seg], at)
		}
	}
}

// spacesOf returns the spaces in which Berth may have a Docker network's subnet, the likeliest first. A swarm's network
// has its addresses in the manager's space, and also in the space local of each node that uses it. If a planned network
// was renamed since, its subnet identifies it.
func (rec *records) spacesOf(n *ipam.EngineNetwork, cidr netip.Prefix) []string {
	space, named := n.Options["space"], n.Options["network"]
	if space == "" && named != "" {
		space = rec.networks[named]
		if space == "" && !n.Swarm {
			if found := rec.spacesWith(cidr); len(found) > 0 {
				return found
			}
		}
	}
	switch {
	case !n.Swarm && space == "":
		return []string{ipam.LocalSpace}
	case !n.Swarm:
		return []string{space}
	case space == "":
		space = ipam.GlobalSpace
	}
	if len(rec.here[segment{ipam.LocalSpace, cidr}]) > 0 {
		return []string{ipam.LocalSpace, space}
	}
	return []string{space}
}

// spacesWith returns the spaces in which this host has the subnet.
func (rec *records) spacesWith(cidr netip.Prefix) (all []string) {
	for seg := range rec.here {
		if seg.cidr == cidr {
			all = append(all, seg.space)
		}
	}
	slices.Sort(all)
	return all
}
