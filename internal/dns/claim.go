package dns

import (
	"net/netip"
	"strings"

	"berth/internal/ipam"
)

// rank orders the claims to a name. The lowest rank has the name.
type rank uint8

// The ranks. Up to rankGroup, one of several claimants gets the name. After that, a name is valid only if it is unique.
const (
	rankLong         rank = iota + 1 // OWNER.NETWORK, spelled as the owner is
	rankAltered                      // the same, if DNS requires another spelling
	rankGroup                        // SERVICE.PROJECT.NETWORK
	rankAlias                        // of the container, and of an owner that its name can mean: NAME.NETWORK
	rankService                      // SERVICE.NETWORK
	rankShort                        // OWNER
	rankShortAlias                   // NAME
	rankShortGroup                   // SERVICE.PROJECT
	rankShortService                 // SERVICE
)

// kinds are the words for the ranks.
var kinds = [...]string{rankLong: "long", rankAltered: "long", rankGroup: "service", rankAlias: "alias",
	rankService: "service", rankShort: "short", rankShortAlias: "short", rankShortGroup: "short",
	rankShortService: "short"}

// Kinds returns all of these words.
func Kinds() []string { return []string{"long", "service", "alias", "short"} }

// entry is an address with its owner.
type entry struct {
	ipam.NamedAddress
	area *area
}

// area is a range of addresses with its entries.
type area struct {
	ipam.NamedRange
	store   string
	label   string // its label in the zone
	entries map[netip.Addr]*entry
}

// claim is the claim of an address to a name.
type claim struct {
	*entry
	rank rank
	who  string // the owner or service; claims of one rank, network and who belong together
}

// claims calls put with each name in the zone that an address claims.
func (x *Index) claims(e *entry, put func(name string, r rank, who string)) {
	label := e.area.label
	r := rankLong
	if !spelled(e.Owner) || !e.area.Elastic && !spelled(e.area.Network) {
		r = rankAltered
	}
	put(x.longName(e), r, e.Owner)
	short := !e.area.Elastic // an elastic address has no short name
	if project, service, _, ok := ipam.ServiceOf(e.Owner); ok {
		name := labelOf(ipam.ComposeName(e.Owner))
		put(name+"."+label, rankAlias, e.Owner)
		if short {
			put(name, rankShortAlias, e.Owner)
		}
		e.ofService(project, service, short, put)
	} else if short {
		put(pathOf(e.Owner), rankShort, e.Owner)
	}
	for _, text := range []string{e.Owner, e.Name} {
		if text == "" || strings.Contains(text, "/") {
			continue
		}
		if text != e.Owner {
			put(labelOf(text)+"."+label, rankAlias, e.Owner)
			if short {
				put(labelOf(text), rankShortAlias, e.Owner)
			}
		}
		for owner := range ipam.ComposeOwners(text) {
			project, service, _, _ := ipam.ServiceOf(owner)
			if owner == e.Owner || project == "" {
				continue
			}
			put(pathOf(owner)+"."+label, rankAlias, e.Owner)
			e.ofService(project, service, short, put)
		}
	}
}

// ofService claims the names of a running address's service.
func (e *entry) ofService(project, service string, short bool, put func(name string, r rank, who string)) {
	if !e.Held {
		return
	}
	who := project + "/" + service
	group := pathOf(who)
	put(group+"."+e.area.label, rankGroup, who)
	put(labelOf(service)+"."+e.area.label, rankService, who)
	if short {
		put(group, rankShortGroup, who)
		put(labelOf(service), rankShortService, who)
	}
}

// mostName is the maximum length of a name as text (RFC 1035, 2.3.4: 255 octets with the lengths of the labels).
const mostName = 253

// longName returns the name of an owner on its network, in the zone. If it would be too long, the owner becomes one
// label.
func (x *Index) longName(e *entry) string {
	own := pathOf(e.Owner)
	if len(own)+1+len(e.area.label)+1+len(x.zone)+1+markRoom > mostName {
		own = labelOf(strings.ReplaceAll(e.Owner, "/", "-"))
	}
	return own + "." + e.area.label
}

// markRoom is the number of characters that a mark adds.
const markRoom = 9

// marked returns an owner's name with its mark, for an owner whose name another owner has.
func (e *entry) marked(long string) string {
	first, rest, _ := strings.Cut(long, ".")
	return first + "-" + e.mark() + "." + rest
}

func (e *entry) mark() string {
	return markOf(e.area.Space + "\x00" + e.area.Network + "\x00" + e.Owner)
}
