package dns

import (
	"net/netip"
	"strings"

	"berth/internal/ipam"
)

// rank orders the claims to one name: the least one has it.
type rank uint8

// The ranks. Up to groups a name that several claim is one's all the same; those behind are had where they are unique.
const (
	rankLong         rank = iota + 1 // OWNER.NETWORK, spelled as the owner is
	rankAltered                      // likewise, where DNS wants another spelling
	rankGroup                        // SERVICE.PROJECT.NETWORK
	rankAlias                        // of the container, and of the owner that its name can mean: NAME.NETWORK
	rankService                      // SERVICE.NETWORK
	rankShort                        // OWNER
	rankShortAlias                   // NAME
	rankShortGroup                   // SERVICE.PROJECT
	rankShortService                 // SERVICE
)

// kinds are what people are told of them.
var kinds = [...]string{rankLong: "long", rankAltered: "long", rankGroup: "service", rankAlias: "alias",
	rankService: "service", rankShort: "short", rankShortAlias: "short", rankShortGroup: "short",
	rankShortService: "short"}

// Kinds are all of them.
func Kinds() []string { return []string{"long", "service", "alias", "short"} }

// entry is an address that is somebody's.
type entry struct {
	ipam.NamedAddress
	area *area
}

// area is a range of addresses with what is known of them.
type area struct {
	ipam.NamedRange
	store   string
	label   string // below the zone
	entries map[netip.Addr]*entry
}

// claim is that of an address to a name.
type claim struct {
	*entry
	rank rank
	who  string // for whom; those of one rank and network that are for the same are one
}

// claims calls with each name that an address claims, below the zone.
func (x *Index) claims(e *entry, put func(name string, r rank, who string)) {
	label := e.area.label
	r := rankLong
	if !spelled(e.Owner) || !e.area.Elastic && !spelled(e.area.Network) {
		r = rankAltered
	}
	put(x.longName(e), r, e.Owner)
	short := !e.area.Elastic // an elastic address is not what a short name is for
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

// ofService claims the names of a service of which an address is one, while it runs.
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

// mostName is how long a name may be in text (RFC 1035, 2.3.4: 255 octets with the lengths of the labels).
const mostName = 253

// longName is the name of an owner on its network, below the zone. One that would be too long is one label.
func (x *Index) longName(e *entry) string {
	own := pathOf(e.Owner)
	if len(own)+1+len(e.area.label)+1+len(x.zone)+1+markRoom > mostName {
		own = labelOf(strings.ReplaceAll(e.Owner, "/", "-"))
	}
	return own + "." + e.area.label
}

// markRoom is how much longer a name is with a mark.
const markRoom = 9

// marked is a name of an owner that another one has, with what tells it apart.
func (e *entry) marked(long string) string {
	first, rest, _ := strings.Cut(long, ".")
	return first + "-" + e.mark() + "." + rest
}

func (e *entry) mark() string {
	return markOf(e.area.Space + "\x00" + e.area.Network + "\x00" + e.Owner)
}
