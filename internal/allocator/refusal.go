package allocator

import (
	"fmt"
	"maps"
	"math/big"
	"net/netip"
	"slices"
	"strings"
	"time"

	"berth/internal/alloc"
	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// ReservedError is the refusal of an address that is reserved for another owner.
func ReservedError(c *ledger.Change, addr netip.Addr, r *ipam.Reservation) error {
	return ipam.RefuseAs(ipam.AlreadyInUse, ipam.ErrInUse,
		"%s is held by %s (reserved since %s); ask for another address",
		addr, r.Owner, r.Since().Format("2006-01-02 15:04:05 MST")).OrAdvise(ipam.DoEndReservation)
}

// HeldError is the refusal of a leased address. It also asks the witness to check that the holder still has it.
func HeldError(c *ledger.Change, sub *ipam.Subnet, held *ipam.Lease) error {
	doLook(c)
	todo, advice := "remove that container, or ask for another address", []ipam.Advice{ipam.Advise(ipam.DoReleaseDead)}
	if held.Host != c.Host() {
		advice = []ipam.Advice{ipam.Advise(ipam.DoReleaseDeadOn, held.Host)}
	}
	switch held.Kind {
	case ipam.Gateway, ipam.Auxiliary:
		todo, advice = "ask for another address", nil
	case ipam.Headroom:
		todo, advice = "ask for another address", []ipam.Advice{ipam.OrAdvise(ipam.DoLowerHeadroom)}
	case ipam.External:
		todo, advice = "ask for another address", []ipam.Advice{ipam.OrAdvise(ipam.DoReleaseTaken)}
	}
	whose := ""
	if r := held.Reservation; r != nil {
		whose = fmt.Sprintf(" (reserved for %s)", r.Owner)
	}
	return ipam.Help(ipam.RefuseAs(ipam.AlreadyInUse, ipam.ErrInUse, "%s is held by %s%s since %s; %s",
		held.Address, holder(c, sub.Space, held), whose, held.Since.Format("2006-01-02 15:04:05 MST"), todo), advice...)
}

// runsError is the refusal of an address that nobody leases, although a container runs with it. The records are older
// than what runs. It also asks the witness to lease the address to that container.
func runsError(c *ledger.Change, addr netip.Addr, by ipam.Container) error {
	doLook(c)
	return ipam.RefuseAs(ipam.AlreadyInUse, ipam.ErrInUse, "the container %s uses %s without a lease; remove that "+
		"container, or ask for another address", by.Name, addr)
}

// CheckRuns refuses an address with which a container runs, whatever the records say.
func CheckRuns(c *ledger.Change, sub *ipam.Subnet, addr netip.Addr) error {
	if by, runs := c.Known().RunsElsewhere(sub.Space, sub.CIDR, addr, ""); runs {
		return runsError(c, addr, by)
	}
	return nil
}

// holder names the holder of an address, for an error. It uses the current name of a renamed container if a witness
// knows it.
func holder(c *ledger.Change, space string, held *ipam.Lease) string {
	now := c.Known().Sighting(space, held).Container
	if now == "" || ipam.RememberedName(now) == ipam.RememberedName(held.Name) {
		return held.Holder()
	}
	seen := *held
	seen.Name = now
	if held.Name == "" {
		return seen.Holder()
	}
	return fmt.Sprintf("%s, formerly called %s,", seen.Holder(), held.Name)
}

// exhausted returns an error that shows how many addresses there are, and what holds them.
func (t *Target) exhausted() error {
	pools := t.Pools()
	if len(pools) == 0 {
		return t.noPool()
	}
	var f Fullness
	f.Add(t, pools)
	if n := t.Index().Network(t.Sub.Network); n != nil && n.Planned {
		return ipam.RefuseAs(ipam.NotEnoughCapacity, ipam.ErrExhausted,
			"no address is free in the subnet %s of space %s (1 "+
				"wanted, 0 free): %s; remove containers", t.Sub.CIDR, t.Sub.Space, f).
			OrAdvise(ipam.DoEnlargeNetwork, n.Name)
	}
	return ipam.RefuseAs(ipam.NotEnoughCapacity, ipam.ErrExhausted,
		"no address is free in the subnet %s of space %s (1 wanted, 0 "+
			"free): %s; remove containers, or create a network with a larger subnet or range", t.Sub.CIDR, t.Sub.Space,
		f)
}

// Fullness describes the use of pools, for an error.
type Fullness struct {
	Pools    []string
	until    time.Time      // the first end of a quarantine, if any
	headroom map[string]int // by host
	// addresses that containers request by their configuration, with the names of these containers
	kept []string
}

// Add counts the pools of a target.
func (f *Fullness) Add(t *Target, pools []ledger.OpenPool) {
	for _, p := range pools {
		f.Pools = append(f.Pools, taken(&p, t.Sub, t.Sx.Idle() > 0))
		if _, ready, _ := t.Sx.LongestReleased(p, t.Now(), t.Kept, t.Known().StillExists); !ready.IsZero() &&
			(f.until.IsZero() || ready.Before(f.until)) {
			f.until = ready
		}
		for at, addrs := range t.Sx.AllHeadroom() {
			for addr := range addrs {
				if known := t.Index().Attachment(at); known != nil && p.Contains(addr) {
					if f.headroom == nil {
						f.headroom = map[string]int{}
					}
					f.headroom[known.Host]++
				}
			}
		}
	}
	for _, w := range t.Kept {
		in := slices.ContainsFunc(pools, func(p ledger.OpenPool) bool { return p.Contains(w.Address) })
		if c := t.Sx.Claim(w.Address); in && !c.Held && !c.Reserved {
			f.kept = append(f.kept, fmt.Sprintf("%s by %s", w.Address, w.Container))
		}
	}
}

// String names at most four pools.
func (f Fullness) String() string {
	const shown = 4
	text := strings.Join(f.Pools[:min(len(f.Pools), shown)], ", ")
	if more := len(f.Pools) - shown; more > 0 {
		text += fmt.Sprintf(" and those of %d more pools", more)
	}
	if !f.until.IsZero() {
		text += fmt.Sprintf(" or in quarantine, the first until %s", f.until.Format(time.RFC3339))
	}
	if len(f.kept) > 0 {
		text += fmt.Sprintf(" or requested by containers themselves (%s",
			strings.Join(f.kept[:min(len(f.kept), shown)], ", "))
		if more := len(f.kept) - shown; more > 0 {
			text += fmt.Sprintf(", and %d more", more)
		}
		text += ")"
	}
	var hosts []string
	for _, host := range slices.Sorted(maps.Keys(f.headroom)) {
		hosts = append(hosts, fmt.Sprintf("%d of host %s", f.headroom[host], host))
	}
	if len(hosts) > 0 {
		text += fmt.Sprintf(" (including headroom: %s)", strings.Join(hosts[:min(len(hosts), shown)], ", "))
	}
	return text
}

// taken describes the addresses of a full pool.
func taken(p *ledger.OpenPool, sub *ipam.Subnet, reserved bool) string {
	name := "the pool " + alloc.FormatRange(p.Range.IPRange)
	if p.Name != "" {
		name = fmt.Sprintf("the pool %s (%s)", p.Name, p.Range)
	}
	if len(p.Ranges) == 0 {
		return name + " has no host addresses except those excluded" + sub.OrStatic()
	}
	n, state := new(big.Int), "taken"
	if reserved {
		state = "taken or reserved"
	}
	for _, r := range p.Ranges {
		n.Add(n, alloc.Size(r))
	}
	if whole, ok := ledger.Intersect(p.Range.IPRange, alloc.Usable(sub.CIDR)); ok && n.Cmp(alloc.Size(whole)) < 0 &&
		len(sub.Exclusions)+len(sub.Static) > 0 {
		return fmt.Sprintf("all %s of %s that are not excluded%s are %s", n, name, sub.OrStatic(), state)
	}
	return fmt.Sprintf("all %s of %s are %s", n, name, state)
}

// noPool explains why there is no pool to choose from.
func (t *Target) noPool() error {
	what := "no pool"
	if t.Pool != "" {
		what = "no pool named " + t.Pool
	} else if !t.At.Pool.IsZero() {
		what = fmt.Sprintf("no pool in the range %s", t.At.Pool)
	}
	return ipam.RefuseAs(ipam.NotEnoughCapacity, ipam.ErrExhausted, "the subnet %s of network %s has %s, so Berth can "+
		"choose no address; request one by address", t.Sub.CIDR, t.NetworkName(t.Sub.Network), what).
		OrAdvise(ipam.DoAddPoolTo)
}

// lanRefused explains why a DHCP server gave nothing: for which client, on which interface, and what helps.
func lanRefused(ask *ipam.LANAsk, got *ipam.LANAnswer) error {
	whom := ask.Client.String()
	if ask.Verb == ipam.LANOffer {
		whom = "this network"
	}
	switch got.Failure {
	case ipam.LANSilent:
		return ipam.Refuse(ipam.ErrLAN, "no DHCP server answered for %s on %s (%s); check that the server runs, and "+
			"that %s is the interface to its LAN", whom, ask.Parent, got.Error, ask.Parent)
	case ipam.LANRefused:
		return ipam.Refuse(ipam.ErrLAN, "the DHCP server has no address for %s on %s (%s); check its range and its "+
			"reservations", whom, ask.Parent, got.Error)
	case ipam.LANWrong:
		return ipam.Refuse(ipam.ErrLAN, "the DHCP offer for %s on %s is unusable (%s); correct the server's range and "+
			"options", whom, ask.Parent, got.Error)
	case ipam.LANOutside:
		return lanOutside(ask, got.Lease.Address, got.Lease.Server)
	case ipam.LANParent:
		return ipam.Refuse(ipam.ErrLAN, "no DHCP request for %s is possible on %s (%s); name an interface of this "+
			"host that is up", whom, ask.Parent, got.Error)
	case ipam.LANNoEdge:
		refused := ipam.Refuse(ipam.ErrLAN, "the DHCP server gives %s no address on %s: %s", whom, ask.Parent,
			got.Error)
		if got.Error == ledger.NoRelay {
			return refused.Advise(ipam.DoRunEdge)
		}
		return refused // it says how to start one
	}
	return fmt.Errorf("%w: the DHCP request for %s on %s failed: %s (%s)", ipam.ErrLAN, whom, ask.Parent, got.Error,
		got.Failure)
}

// lanOutside refuses an address outside the subnet.
func lanOutside(ask *ipam.LANAsk, addr, server any) error {
	return ipam.Refuse(ipam.ErrLAN, "the DHCP server %s offers %s for %s on %s, not a host address of the subnet %s; "+
		"Berth declined it: create the network with the server's subnet, or name another interface", server, addr,
		ask.Client, ask.Parent, ask.Subnet)
}
