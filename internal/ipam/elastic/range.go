package elastic

import (
	"net/netip"
	"slices"
	"strings"
	"time"
	"unicode"

	"go4.org/netipx"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// Limits of a range's TTL. With a shorter one the kernel's elements would end before they are renewed: the edge hears
// of a keepalive after keptEvery and up to keptWithin more.
const (
	leastTTL = keptEvery + keptWithin + time.Second
	mostTTL  = time.Minute
)

// maxDevice is the maximum length of the name of a network device (IFNAMSIZ without its end).
const maxDevice = 15

// rangeFacts is the part of a range that its events record.
type rangeFacts struct {
	Range    ipam.Range    `json:"range"`
	Host     string        `json:"host,omitempty"`
	Announce string        `json:"announce,omitempty"`
	TTL      ipam.Duration `json:"ttl"`
	OnCut    ipam.OnCut    `json:"on_cut"`
}

func factsOfRange(r *ipam.ElasticRange) rangeFacts {
	return rangeFacts{r.Range, r.Host, r.Announce, r.TTL, r.OnCut}
}

func addRange(e *ipam.AddElasticRange, c *ledger.Change) error {
	r, err := readRange(e, c)
	if err != nil {
		return err
	}
	for _, other := range c.Index().AllElasticRanges() {
		if other.Range.Overlaps(r.Range.IPRange) {
			return ipam.RefuseAs(ipam.ElasticRangeOverlaps, ipam.ErrOverlap,
				"the range %s overlaps the elastic range %s of %s", r.Range, other.Range, whoseRange(other)).
				Advise(ipam.DoListElasticRanges)
		}
	}
	if err := overNoSubnet(c, r); err != nil {
		return err
	}
	r.ID, r.Created = c.NewID(), c.Now()
	_, err = tell(c, &ipam.Event{Verb: ipam.ElasticRangeAdded, Name: r.Range.String()}, nil, factsOfRange(r))
	if err != nil {
		return err
	}
	return c.SetElasticRange(r.ID, r)
}

// overNoSubnet refuses a range that overlaps a subnet of the store: guests there would ask for its addresses as
// neighbours, which no edge can answer.
func overNoSubnet(c *ledger.Change, r *ipam.ElasticRange) error {
	var over *ipam.Subnet
	for _, sx := range c.Index().Subnets() {
		sub := sx.Record()
		if r.Range.Overlaps(netipx.RangeOfPrefix(sub.CIDR)) && (over == nil || sub.CIDR.Addr().Less(over.CIDR.Addr())) {
			over = sub
		}
	}
	if over == nil {
		return nil
	}
	return ipam.RefuseAs(ipam.ElasticRangeOverlaps, ipam.ErrOverlap,
		"the range %s overlaps the subnet %s of network %s in space %s; choose addresses that no network has", r.Range,
		over.CIDR, c.NetworkName(over.Network), over.Space)
}

func whoseRange(r *ipam.ElasticRange) string {
	if r.Host == "" {
		return "the cluster"
	}
	return "host " + r.Host
}

// readRange returns the range that an edit describes.
func readRange(e *ipam.AddElasticRange, c *ledger.Change) (*ipam.ElasticRange, error) {
	r := &ipam.ElasticRange{Range: e.Range, Host: e.Host, TTL: ipam.DefaultElasticTTL, OnCut: ipam.CutWithdraw}
	if err := checkRange(e.Range); err != nil {
		return nil, err
	}
	if e.Host != "" {
		if err := knownHost(c, e.Host); err != nil {
			return nil, err
		}
	}
	if e.Announce != "" && e.Announce != "none" {
		if err := checkDevice(e.Announce); err != nil {
			return nil, err
		}
		r.Announce = e.Announce
	}
	if e.TTL != nil {
		r.TTL = *e.TTL
	}
	if ttl := time.Duration(r.TTL); ttl < leastTTL || ttl > mostTTL {
		return nil, ipam.Refuse(ipam.ErrInvalid, "the range %s would answer for %s after its host is cut off; give a "+
			"time from %s to %s", e.Range, ttl, leastTTL, mostTTL)
	}
	switch on := ipam.OnCut(e.OnCut); on {
	case "":
	case ipam.CutWithdraw, ipam.CutKeep:
		r.OnCut = on
	default:
		return nil, ipam.Refuse(ipam.ErrInvalid, "the action for a host that is cut off is %q, but must be %s or %s",
			e.OnCut, ipam.CutWithdraw, ipam.CutKeep)
	}
	return r, nil
}

// checkRange refuses addresses that no host on a network can have.
func checkRange(r ipam.Range) error {
	if r.IsZero() {
		return ipam.Refuse(ipam.ErrInvalid,
			"a range is missing: write one as A-B, A+N, a CIDR, or one address")
	}
	for _, addr := range []netip.Addr{r.From(), r.To()} {
		if addr.IsUnspecified() || addr.IsLoopback() || addr.IsMulticast() || addr.IsLinkLocalUnicast() ||
			addr.Is4In6() || addr == netip.AddrFrom4([4]byte{255, 255, 255, 255}) {
			return ipam.Refuse(ipam.ErrInvalid, "the range %s contains %s, at which no guest can be reached", r, addr)
		}
	}
	return nil
}

func checkDevice(name string) error {
	odd := func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) || r == '/' || r == '"' }
	if len(name) > maxDevice || name == "." || name == ".." || strings.ContainsFunc(name, odd) {
		return ipam.Refuse(ipam.ErrInvalid, "%q is not the name of a network device: write one such as eth0, or "+
			"none", name)
	}
	return nil
}

// knownHost refuses a host that is not in the cluster.
func knownHost(c *ledger.Change, host string) error {
	if err := ipam.CheckName("host", host); err != nil {
		return err
	}
	switch {
	case c.Member() == nil && host != c.Host():
		return ipam.Refuse(ipam.ErrNotFound, "there is no host %q: this Berth has its own store, and knows only its "+
			"host %s", host, c.Host())
	case c.Member() != nil && c.Index().Host(host) == nil:
		return ipam.Refuse(ipam.ErrNotFound, "there is no host %q in the cluster", host).Advise(ipam.DoListHosts)
	}
	return nil
}

func removeRange(e *ipam.RemoveElasticRange, c *ledger.Change) error {
	if e.Range.IsZero() {
		return checkRange(e.Range)
	}
	for _, r := range c.Index().ElasticRanges() {
		if r.Range != e.Range {
			continue
		}
		if err := rangeUnused(c.Index(), r); err != nil {
			return err
		}
		_, err := tell(c, &ipam.Event{Verb: ipam.ElasticRangeRemoved, Name: r.Range.String()}, factsOfRange(r), nil)
		if err != nil {
			return err
		}
		return c.SetElasticRange(r.ID, nil)
	}
	return ipam.Refuse(ipam.ErrNotFound, "there is no elastic range %s", e.Range).Advise(ipam.DoListElasticRanges)
}

// rangeUnused refuses to remove a range if somebody has one of its addresses.
func rangeUnused(ix *ledger.Index, r *ipam.ElasticRange) error {
	used := recordsOf(ix, func(one *ipam.Elastic) bool { return r.Range.Contains(one.Address) })
	if len(used) == 0 {
		return nil
	}
	return ipam.RefuseAs(ipam.ElasticRangeInUse, ipam.ErrInUse,
		"the elastic range %s is in use: %s of account %s; release the allocated addresses first", r.Range, few(used),
		accountsOf(used)).Advise(ipam.DoListElastic)
}

// accountsOf names the accounts of some addresses.
func accountsOf(all []*ipam.Elastic) string {
	var names []string
	for _, one := range all {
		names = append(names, one.Account)
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), ", ")
}

// rangeOf returns the range that contains an address, or nil.
func rangeOf(ix *ledger.Index, addr netip.Addr) *ipam.ElasticRange {
	for _, r := range ix.ElasticRanges() {
		if r.Range.Contains(addr) {
			return r
		}
	}
	return nil
}

// isMoving reports whether an address belongs to a range that is being copied.
func isMoving(ix *ledger.Index, addr netip.Addr) bool {
	for _, r := range ix.AllElasticRanges() {
		if r.Moving && r.Range.Contains(addr) {
			return true
		}
	}
	return false
}

// rangesOf lists the ranges of a host, or with an empty name the cluster's, by address.
func rangesOf(ix *ledger.Index, host string) []*ipam.ElasticRange {
	return slices.DeleteFunc(ranges(ix), func(r *ipam.ElasticRange) bool { return r.Host != host })
}

// ranges lists all ranges by address.
func ranges(ix *ledger.Index) (all []*ipam.ElasticRange) {
	for _, r := range ix.ElasticRanges() {
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b *ipam.ElasticRange) int { return a.Range.From().Compare(b.Range.From()) })
	return all
}
