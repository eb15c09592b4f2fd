package neighbours

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"berth/internal/ipam"

	"github.com/sirupsen/logrus"
)

const (
	// window is the length of one round of listening, before the results are compared with the records.
	window = 10 * time.Second
	// silence is the time without a claim after which a machine counts as gone.
	silence = 5 * time.Minute
)

// ListenConfig is what a Listener needs.
type ListenConfig struct {
	Host     string
	Networks func(context.Context, ipam.NetworkFilter) ([]ipam.NetworkInfo, error)
	Network  func(ctx context.Context, ref string) (ipam.NetworkInfo, error)
	Leases   func(context.Context, ipam.LeaseFilter) iter.Seq2[ipam.LeaseInfo, error]
	SeenBy   func(space string, addr netip.Addr, lease uint64) *ipam.SeenBy
	Ask      ipam.AskLAN
	Log      *logrus.Entry
}

// Listener finds machines that claim the address of a container of this host on the LANs of probed networks.
type Listener struct {
	cfg ListenConfig

	mu    sync.Mutex
	heard map[answer]ipam.Finding
	last  map[answer]time.Time
	deaf  map[ipam.ID]listenFailure // networks on whose LAN nobody can listen
}

// listenFailure is a network on whose LAN nobody can listen, with the reason.
type listenFailure struct {
	finding ipam.Finding
	rounds  int // the number of such rounds in a row
}

// answer is a claim to an address during one lease of it.
type answer struct {
	lease uint64
	addr  netip.Addr
	mac   ipam.MAC
}

// NewListener returns a Listener without findings.
func NewListener(cfg ListenConfig) *Listener {
	return &Listener{cfg: cfg, heard: map[answer]ipam.Finding{}, last: map[answer]time.Time{},
		deaf: map[ipam.ID]listenFailure{}}
}

// Findings returns the networks that are not probed, by name, and the recent claims, by address.
func (l *Listener) Findings() []ipam.Finding {
	all := l.foreign()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, d := range l.deaf {
		if d.rounds > 1 { // an edge that is being replaced is away for a moment
			all = append(all, d.finding)
		}
	}
	slices.SortFunc(all, func(a, b ipam.Finding) int {
		return cmp.Or(a.Address.Compare(b.Address), strings.Compare(a.Network, b.Network))
	})
	return all
}

// foreign returns the recent claims.
func (l *Listener) foreign() []ipam.Finding {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Values(l.heard))
}

// Run listens until ctx ends. If no network is probed, or nobody can listen, it tries again after a while.
func (l *Listener) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		begun := time.Now()
		if err := l.round(ctx); err != nil && ctx.Err() == nil {
			l.cfg.Log.WithError(err).Debug("the sender of a message on the LAN is unknown")
		}
		rest := time.NewTimer(window - min(window, time.Since(begun)))
		select {
		case <-ctx.Done():
			rest.Stop()
		case <-rest.C:
		}
	}
	return nil
}

// round listens once on the LANs of all probed networks in parallel.
func (l *Listener) round(ctx context.Context) error {
	all, err := l.cfg.Networks(ctx, ipam.NetworkFilter{Brief: true})
	if err != nil {
		return err
	}
	var wg sync.WaitGroup
	begun := time.Now()
	probed := map[ipam.ID]bool{}
	for i := range all {
		parent := ipam.LANTerms{DHCPParent: all[i].Probe}.ParentOn(l.cfg.Host)
		if parent == "" {
			continue
		}
		n, err := l.cfg.Network(ctx, all[i].ID.String())
		if err != nil {
			continue // removed meanwhile
		}
		probed[n.ID] = true
		wg.Go(func() { l.hear(ctx, &n, parent, begun) })
	}
	wg.Wait()
	l.mu.Lock()
	maps.DeleteFunc(l.deaf, func(id ipam.ID, _ listenFailure) bool { return !probed[id] })
	l.mu.Unlock()
	return l.forget(ctx)
}

// hear listens for the addresses of all subnets of a network, and records whether that was possible.
func (l *Listener) hear(ctx context.Context, n *ipam.NetworkInfo, parent string, begun time.Time) {
	whys := make([]string, len(n.Subnets))
	var wg sync.WaitGroup
	for i := range n.Subnets {
		wg.Go(func() { whys[i] = l.listen(ctx, parent, n.Subnets[i].CIDR, n.Space, begun) })
	}
	wg.Wait()
	why := cmp.Or(whys...)
	l.mu.Lock()
	defer l.mu.Unlock()
	if why == "" || ctx.Err() != nil {
		delete(l.deaf, n.ID)
		return
	}
	d := l.deaf[n.ID]
	if d.rounds++; d.rounds == 1 {
		d.finding = ipam.Finding{Kind: ipam.UnprobedNetwork, Space: n.Space, Network: n.Name, Host: l.cfg.Host,
			Seen: begun.UTC()}
	}
	d.finding.Detail = fmt.Sprintf("network %s should be probed by %s of host %s, but no edge can probe there (%s): "+
		"Berth gives the addresses of the network unprobed; start `berth edge`, or name another interface with "+
		"`berth network "+
		"modify %s --probe`",
		n.Name, parent, l.cfg.Host, why, n.Name)
	l.deaf[n.ID] = d
}

// listen listens for the addresses of a subnet and compares the claims with the leases. It returns why nobody could
// listen, or "".
func (l *Listener) listen(ctx context.Context, parent string, cidr netip.Prefix, space string,
	begun time.Time) (why string) {
	got, err := l.cfg.Ask(ctx, ipam.LANAsk{Verb: ipam.LANHear, Parent: parent, IPv6: cidr.Addr().Is6(), Subnet: cidr,
		Within: ipam.Duration(window)})
	switch {
	case err != nil:
		return err.Error()
	case got.Failure != "":
		return cmp.Or(got.Error, string(got.Failure))
	case len(got.Answered) == 0:
		return ""
	}
	said := map[netip.Addr][]ipam.MAC{}
	for _, one := range got.Answered {
		said[one.Address] = append(said[one.Address], one.MAC)
	}
	for lease, err := range l.cfg.Leases(ctx, ipam.LeaseFilter{Space: space, Subnet: cidr}) {
		if err != nil {
			return "" // the leases cannot be read, which is reported elsewhere
		}
		for _, mac := range said[lease.Address] {
			l.judge(&lease, mac, parent, begun)
		}
	}
	return ""
}

// judge records a claim to an address that a container of this host held all the time with another known MAC.
func (l *Listener) judge(lease *ipam.LeaseInfo, mac ipam.MAC, parent string, begun time.Time) {
	if lease.Host != l.cfg.Host || lease.State != "held" || lease.Kind == ipam.Gateway ||
		!lease.Since.Before(begun.Add(-time.Second)) { // the previous holder may have claimed it
		return
	}
	who, own := lease.Name, lease.MAC
	if seen := l.cfg.SeenBy(lease.Space, lease.Address, lease.ID); seen != nil {
		who = seen.Container
		if seen.MAC != (ipam.MAC{}) && seen.MAC != own && own != (ipam.MAC{}) {
			return // the container's own MAC is not certain
		}
		if own == (ipam.MAC{}) {
			own = seen.MAC
		}
	}
	if own == (ipam.MAC{}) || own == mac {
		return
	}
	key := answer{lease.ID, lease.Address, mac}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last[key] = time.Now()
	if _, known := l.heard[key]; known {
		return
	}
	if who == "" {
		who = "the container with MAC " + own.String()
	}
	f := ipam.Finding{Kind: ipam.ForeignAnswer, Space: lease.Space, Address: lease.Address, Network: lease.Network,
		Host: l.cfg.Host, Owner: who, Seen: time.Now().UTC(), Lease: lease.ID, Subnet: lease.Subnet, MAC: mac,
		Detail: fmt.Sprintf("a machine with MAC %s claims on the LAN behind %s that it has %s, which %s of host %s "+
			"has with MAC %s: traffic may reach either of them; find that machine (the router and switches list its "+
			"MAC), "+
			"give it another address, and exclude the addresses that it keeps with `berth exclusion add`", mac, parent,
			lease.Address, who,
			l.cfg.Host, own)}
	l.heard[key] = f
	l.cfg.Log.Warn(f.Detail)
}

// forget removes claims that were not repeated for a while, and those of ended leases.
func (l *Listener) forget(ctx context.Context) error {
	for _, f := range l.foreign() {
		held := false
		for lease, err := range l.cfg.Leases(ctx, ipam.LeaseFilter{Space: f.Space, Address: f.Address}) {
			if err != nil {
				return err
			}
			held = held || lease.ID == f.Lease && lease.State == "held"
		}
		key := answer{f.Lease, f.Address, f.MAC}
		l.mu.Lock()
		if !held || time.Since(l.last[key]) > silence {
			delete(l.heard, key)
			delete(l.last, key)
		}
		l.mu.Unlock()
	}
	return nil
}
