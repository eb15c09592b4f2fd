package allocator

import (
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"
	"time"

	"berth/internal/alloc"
	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

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
		if in && (!t.Sx.HasRecord(w.Address) || t.Sx.Remembers(w.Address)) {
			f.kept = append(f.kept, fmt.Sprintf("%s by %s", w.Address, w.Container))
		}
	}
}

// String names at most four pools.
func (f Fullness) String() string {
	const shown = 4
	text := strings.Join(f.Pools[:min(len(f.Pools), shown)], ", ")
	if more := len(f.Pools) - shown; more > 0 {
		text += fmt.Sprintf(" and those of %d more", more)
	}
	if !f.until.IsZero() {
		text += fmt.Sprintf(" or in quarantine, the first until %s", f.until.Format(time.RFC3339))
	}
	if len(f.kept) > 0 {
		text += fmt.Sprintf(" or asked for by containers themselves (%s",
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
		text += fmt.Sprintf(" (headroom among them: %s)", strings.Join(hosts[:min(len(hosts), shown)], ", "))
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
		return name + " has no host address that is not excluded" + sub.OrStatic()
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

// noPool explains why there is no pool to choose from (GA-15).
func (t *Target) noPool() error {
	what := "no pool"
	if t.Pool != "" {
		what = "no pool named " + t.Pool
	} else if !t.At.Pool.IsZero() {
		what = fmt.Sprintf("no pool in the range %s", t.At.Pool)
	}
	return ipam.RefuseAs(ipam.NotEnoughCapacity, ipam.ErrExhausted,
		"the subnet %s of network %s has %s, so that no address can be chosen; ask for one by address",
		t.Sub.CIDR, t.NetworkName(t.Sub.Network), what).OrAdvise(ipam.DoAddPoolTo)
}
