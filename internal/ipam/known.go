package ipam

import (
	"context"
	"net/netip"
	"slices"
	"time"
)

// Known is what a witness can tell of its engine. The zero Known knows nothing. All but Ask answers from memory, at
// once, and may be called within a transaction.
type Known struct {
	// Ask tells from whom a request is that says no name. It may ask the engine, for a quarter of a second at most, and
	// is called before a transaction, with no lock held.
	Ask func(context.Context, Question) Hint

	// Wanted tells which addresses of a subnet containers of this host ask for by their own configuration (`--ip`),
	// whether these run or not. Such an address is lent to nobody else, save that who had it last has it again where
	// the container that asks never ran. The answer is in the order of addresses, each is there once, of one that ran
	// before one that never did, and it is never changed again.
	Wanted func(space string, cidr netip.Prefix) []Want

	// Container is the id of the container that has a name; empty: none is known. Unless it is live, one may be there
	// all the same.
	Container func(name string) (id string, live bool)

	// Containers are those, be they stopped, whose id begins with some digits.
	Containers func(id string) []Container

	// Newcomer tells of a container that Compose has made which numbers of its service it may stand in for.
	Newcomer func(name string) Newcomer

	// Endpoint tells whether a lease of this host, which was taken at a time, has an endpoint.
	Endpoint func(lease LeaseRef, since time.Time) Sighting

	// Exists tells whether there is a container on this host, be it stopped, that has this short id, or whose name has
	// this NameKey.
	Exists func(name, id string) bool

	// Publishes tells which container of those whose name has a property publishes ports, and which; none: it is not
	// known that one does.
	Publishes func(is func(name string) bool) (container string, ports []string)

	// NetworkDriver tells by which driver the engine connects the Docker network of a subnet, such as bridge; empty: it
	// is not known.
	NetworkDriver func(space string, cidr netip.Prefix) string

	// DockerNetwork tells what the engine calls the Docker network of a subnet; empty: it is not known, or several are
	// on it.
	DockerNetwork func(space string, cidr netip.Prefix) string

	// Holder tells what is known of the container that has a lease of this host, which was taken at a time under a
	// name.
	Holder func(lease LeaseRef, name string, since time.Time) Holder

	// NameHolder tells which name in DNS an owner would have on a network, by space and name, and which other owner has
	// it; empty: none has, or the owner has one already. It is who answers for names that knows.
	NameHolder func(space, network, owner string) (name, other string)

	// Watch lets somebody know of each change of what is known, through a channel of one place, until end is called.
	Watch func() (changed <-chan struct{}, end func())

	// Look has the witness look soon, and waits for nothing.
	Look func()
}

// Container is one of Docker's, as it is called now.
type Container struct{ ID, Name string }

// Holder is what a witness knows of the container that has a lease.
type Holder struct {
	Known      bool     // there is such a container
	Ended      bool     // it ended after the lease was taken, or two looks have shown no endpoint of it
	Unsure     bool     // it may have ended, which a later look tells
	PortsKnown bool     // it publishes nothing but what is named
	Published  []string // ports of the host that lead to it, such as 8080/tcp
}

// Want is an address that a container asks for by its own configuration.
type Want struct {
	Address   netip.Addr
	Container string // its name
	New       bool   // it was created and never ran: the address was never its own
}

// NameKey is the form of a container's name by which it is known again: while Compose recreates it, it has another one.
func NameKey(name string) string { return RememberedName(name) }

// shortContainer is the length of a short id, as Docker shows it.
const shortContainer = 12

// ShortContainer is the short id of a container, by which records know it whatever it is called.
func ShortContainer(id string) string { return id[:min(len(id), shortContainer)] }

// ContainerOf is the short id of the container that has a name now; empty: it is not known.
func (k *Known) ContainerOf(name string) string {
	if name == "" || k.Container == nil {
		return ""
	}
	id, _ := k.Container(name)
	return ShortContainer(id)
}

// StillExists tells whether the container is there still that had an address last, by its name or its short id.
func (k *Known) StillExists(name, id string) bool {
	return (name != "" || id != "") && k.Exists != nil && k.Exists(NameKey(name), id)
}

// All are those who can be it.
func (l *Locked) All() []string { return slices.Concat(l.Silent, l.Elsewhere) }

// Question is what a request without a name says.
type Question struct {
	Space   string       `json:"space"`
	CIDR    netip.Prefix `json:"cidr"`             // of the subnet
	Address netip.Addr   `json:"address,omitzero"` // that is asked for; zero: any
}

// Hint is what a witness makes of a Question. It chooses among free addresses, and nothing else rests on it: it may
// be wrong.
type Hint struct {
	Name string // the container's; empty: it can be several, or nobody is known
	Live bool   // whoever is not known here is known to nobody: the engine said so, or its events are followed
	Soon bool   // it may be known in a moment: what the engine tells comes late, or of nobody who could ask

	// Others are the containers that start together with the one that asks, in the order in which they ended. Where his
	// own address is not free, or nobody knows which of them he is, he is given one of theirs.
	Others []string

	// Home are the addresses that he is being put back to, as he is known, one of each family at most.
	Home []netip.Addr

	// Boots says that the engine is starting, so that whoever asks had an address before.
	Boots bool
}

// Locked is what an engine's locks tell of a Question: it inspects no container that is being started, and a container
// asks for its address while it is being started.
type Locked struct {
	Told   bool     `json:"told,omitempty"`   // the engine answered: who is not silent is not the one who asks
	Silent []string `json:"silent,omitempty"` // who can be it, by name, in the order in which they ended
	// Elsewhere are those of whom nothing is known on this network: one that runs may be connected to it, or end.
	Elsewhere []string `json:"elsewhere,omitempty"`
	Boots     bool     `json:"boots,omitempty"` // the engine answers nobody: it starts its containers first
}

// GuessCounts is how often a name was guessed since the start, and how often the engine showed another container then.
type GuessCounts struct {
	Made  uint64 `json:"made"`
	Wrong uint64 `json:"wrong"`
}

// QuestionCounts is what came of the questions to an engine, since the start, of who asks: how many containers it had
// locked that could be it.
type QuestionCounts struct {
	One     uint64 `json:"one"`
	Several uint64 `json:"several"` // at least two
	None    uint64 `json:"none"`
	Late    uint64 `json:"late"`  // it did not answer in time
	Boots   uint64 `json:"boots"` // it was starting
}

// PutBackCounts is how many containers were put back to the addresses that are reserved for them, since the start.
type PutBackCounts struct {
	Done    uint64 `json:"done"`
	Refused uint64 `json:"refused"` // they could not be
}

// Wants is the addresses that are lent to nobody because a container asks for them (Known.Wanted).
type Wants []Want

// After is the first that is not below addr.
func (w Wants) After(addr netip.Addr) (at int, there bool) {
	return slices.BinarySearchFunc(w, addr, func(one Want, addr netip.Addr) int { return one.Address.Compare(addr) })
}

// Has tells whether a container asks for addr.
func (w Wants) Has(addr netip.Addr) bool {
	_, there := w.After(addr)
	return there
}

// And are these with another address, which somebody keeps who has no name.
func (w Wants) And(addr netip.Addr) Wants {
	at, there := w.After(addr)
	if there {
		return w
	}
	return slices.Insert(slices.Clone(w), at, Want{Address: addr})
}

// From tells whether an address is kept from one of a name who had it last. It may be what he asks for himself. One who
// never ran keeps nothing from him: its start may have been refused because he had the address.
func (w Wants) From(name string, addr netip.Addr) bool {
	at, there := w.After(addr)
	return there && !w[at].New && RememberedName(w[at].Container) != RememberedName(name)
}

// The engine never sends a request twice: when it asks again with a MAC that has a lease, that is another endpoint
// which was given the same MAC, or the next start of one whose address the engine has lost. The first must not have the
// address and the second is to have it at once. So a lease is taken over only where it is in doubt whether an endpoint
// has it.

// Sight is a witness's word on whether a lease has an endpoint.
type Sight uint8

// The words of a witness.
const (
	NotSeen Sight = iota // nothing is known
	Seen                 // an endpoint has the address, or had it before the last look at the least
	// two looks, one after the other, have shown no endpoint of it, which it has had the time to show
	Gone
	CutOff // the engine ended before it was seen: what was being started then may never have come to be
)

// Sighting is what a witness knows of the endpoint of a lease.
type Sighting struct {
	Sight
	Container string // that has it or had it last, by its name now; empty: not known
	MAC       MAC    // of the endpoint; zero: not known
}

// Sighting is what the witness knows of a lease.
func (k *Known) Sighting(space string, l *Lease) Sighting {
	if k.Endpoint == nil || !l.Held() || l.Attachment == (ID{}) {
		return Sighting{}
	}
	return k.Endpoint(LeaseRef{Space: space, Address: l.Address, ID: l.ID}, l.Since)
}
