package ipam

import (
	"context"
	"net/netip"
	"slices"
	"time"
)

// Known is what a witness can report about its engine. The zero Known reports nothing. Every function except Ask
// answers at once from memory and may be called within a transaction.
type Known struct {
	// Ask identifies the container behind a request without a name. It may ask the engine, for a quarter of a
	// second at most. Call it before a transaction, with no lock held.
	Ask func(context.Context, Question) Hint

	// Wanted returns the addresses of a subnet that this host's containers request in their configuration (`--ip`),
	// running or not. Such an address goes to no other container. One exception: its last holder gets it again if
	// the requesting container never ran. The result is sorted by address without duplicates, and never modified
	// afterwards. If two containers want one address, the one that ran before counts.
	Wanted func(space string, cidr netip.Prefix) []Want

	// Container returns the id of the container with a name. It is empty if none is known; unless live is true, one
	// may exist all the same.
	Container func(name string) (id string, live bool)

	// Containers returns all containers whose id begins with these digits, including stopped ones.
	Containers func(id string) []Container

	// Replica returns, for a container that Compose made, the numbers of its service for which it may stand in.
	Replica func(name string) Replica

	// Endpoint reports whether a lease of this host, taken at that time, has an endpoint.
	Endpoint func(lease LeaseRef, since time.Time) Sighting

	// Returns reports whether the container of this name has ended since a lease of this host was taken for it, or is
	// the successor of the removed container that the lease names. Then no endpoint has the lease. It is false unless
	// the engine's word proves it.
	Returns func(space string, cidr netip.Prefix, l *Lease, name string) bool

	// Runs returns the containers that have an address of a subnet, as the engine last showed. Until the engine
	// answers for the first time, these are the containers that it showed to an earlier daemon.
	Runs func(space string, cidr netip.Prefix, addr netip.Addr) []Container

	// Left notes that the engine has released an address. It returns the other containers that still have it.
	Left func(space string, cidr netip.Prefix, addr netip.Addr) []Container

	// Unnetworked reports whether the engine has no Docker network that an attachment of this time to the subnet can
	// belong to.
	Unnetworked func(space string, cidr netip.Prefix, created time.Time) bool

	// FirstView waits until the engine was read after the daemon's start. All calls together wait less than a second,
	// because a starting engine requests addresses before it answers.
	FirstView func(context.Context)

	// Exists reports whether a container of this host, even a stopped one, has this short id or this RememberedName.
	Exists func(name, id string) bool

	// Publishes returns a container with published ports whose name satisfies is, and those ports. It returns
	// nothing if none is known to publish any.
	Publishes func(is func(name string) bool) (container string, ports []string)

	// NetworkDriver returns the driver of the Docker network on a subnet, such as bridge. It is empty if unknown.
	NetworkDriver func(space string, cidr netip.Prefix) string

	// DockerNetwork returns the engine's name of the Docker network on a subnet. It is empty if unknown, or if
	// several are on it.
	DockerNetwork func(space string, cidr netip.Prefix) string

	// Holder returns what is known of the container with a lease of this host, taken at that time under that name.
	Holder func(lease LeaseRef, name string, since time.Time) Holder

	// NameHolder returns the DNS name that an owner would have on a network, and the other owner that has the name.
	// Both are empty if nobody has it, or the owner already has a name. Berth's DNS server provides it.
	NameHolder func(space, network, owner string) (name, other string)

	// Watch returns a channel that receives after each change of what is known, until end is called. It has a
	// buffer of one.
	Watch func() (changed <-chan struct{}, end func())

	// Look asks the witness to look soon, and does not wait.
	Look func()
}

// Container is one of Docker's, with its current name.
type Container struct{ ID, Name string }

// Holder is what a witness knows of the container with a lease.
type Holder struct {
	Known      bool     // such a container exists
	Ended      bool     // it ended after the lease was taken, or two looks found no endpoint of it
	Unsure     bool     // it may have ended; a later look will show it
	PortsKnown bool     // Published is complete
	Published  []string // ports of the host that lead to it, such as 8080/tcp
}

// Want is an address that a container requests in its own configuration.
type Want struct {
	Address   netip.Addr
	Container string // its name
	New       bool   // it was created and never ran, so it never had the address
}

// shortContainer is the length of a short id, as Docker shows it.
const shortContainer = 12

// ShortContainer returns the short id of a container. Records use it because it stays the same when the name changes.
func ShortContainer(id string) string { return id[:min(len(id), shortContainer)] }

// ContainerOf returns the short id of the container that has a name now. It is empty if unknown.
func (k *Known) ContainerOf(name string) string {
	if name == "" || k.Container == nil {
		return ""
	}
	id, _ := k.Container(name)
	return ShortContainer(id)
}

// StillExists reports whether the last holder of an address still exists, by its name or its short id.
func (k *Known) StillExists(name, id string) bool {
	return (name != "" || id != "") && k.Exists != nil && k.Exists(RememberedName(name), id)
}

// All returns every container that may have sent the request.
func (l *Locked) All() []string { return slices.Concat(l.Silent, l.Elsewhere) }

// Question describes a request without a name.
type Question struct {
	Space   string       `json:"space"`
	CIDR    netip.Prefix `json:"cidr"`             // the subnet's
	Address netip.Addr   `json:"address,omitzero"` // the requested address; zero: any
	Held    bool         `json:"held,omitempty"`   // somebody has a lease of it
}

// Hint is a witness's answer to a Question. Unless it is Sure, it serves only to choose among free addresses.
type Hint struct {
	Name string // the container's name; empty: several are possible, or none is known
	Sure bool   // the engine's lock shows that this container asks
	// the witness is complete, because the engine answered or its events are followed: an unknown container does
	// not exist
	Live bool
	// the answer may be known in a moment: the engine's events are late, or show no container that could ask
	Soon bool

	// Others are the containers that start together with the requester, in the order in which they ended. It gets
	// one of their addresses if its own is not free, or if nobody knows which of them it is.
	Others []string

	// Home are the addresses to which the identified container is being put back, at most one per family.
	Home []netip.Addr

	// Boots means that the engine is starting, so the requester had an address before.
	Boots bool
}

// Locked is what an engine's locks show about a Question. The engine does not inspect a container while it starts, and
// a container requests its address while it starts.
type Locked struct {
	// the engine answered: a container that is not silent did not send the request
	Told   bool     `json:"told,omitempty"`
	Silent []string `json:"silent,omitempty"` // the possible requesters, by name, in the order in which they ended
	// Elsewhere lists containers without a known endpoint on this network. A running one may be connecting to it,
	// or ending.
	Elsewhere []string `json:"elsewhere,omitempty"`
	// the engine answers nobody, because it is still starting its containers
	Boots bool `json:"boots,omitempty"`
}

// GuessCounts counts, since the start, the guessed names and those that the engine then disproved.
type GuessCounts struct {
	Made  uint64 `json:"made"`
	Wrong uint64 `json:"wrong"`
}

// QuestionCounts counts, since the start, how many locked containers the engine reported for each question about a
// requester.
type QuestionCounts struct {
	One     uint64 `json:"one"`
	Several uint64 `json:"several"` // at least two
	None    uint64 `json:"none"`
	Late    uint64 `json:"late"`  // the engine did not answer in time
	Boots   uint64 `json:"boots"` // the engine was starting
}

// PutBackCounts counts, since the start, the containers that were put back to the addresses reserved for them.
type PutBackCounts struct {
	Done    uint64 `json:"done"`
	Refused uint64 `json:"refused"` // it was not possible
}

// Wants are the addresses that are kept because a container requests them (Known.Wanted), sorted by address.
type Wants []Want

// After returns the index of the first want that is not below addr, and whether that is addr itself.
func (w Wants) After(addr netip.Addr) (at int, there bool) {
	return slices.BinarySearchFunc(w, addr, func(one Want, addr netip.Addr) int { return one.Address.Compare(addr) })
}

// Has reports whether a container wants addr.
func (w Wants) Has(addr netip.Addr) bool {
	_, there := w.After(addr)
	return there
}

// And returns the wants with one more address, which is kept for a requester without a name. It does not change w.
func (w Wants) And(addr netip.Addr) Wants {
	at, there := w.After(addr)
	if there {
		return w
	}
	return slices.Insert(slices.Clone(w), at, Want{Address: addr})
}

// From reports whether the last holder with this name must not get an address, because a container wants it. It may be
// the holder's own wish. A container that never ran does not block the last holder: its start may have been refused
// because of that holder.
func (w Wants) From(name string, addr netip.Addr) bool {
	at, there := w.After(addr)
	return there && !w[at].New && RememberedName(w[at].Container) != RememberedName(name)
}

// ReturnsTo reports whether the engine's word proves that a lease of this host has no endpoint, and that the container
// of this name may have its address again.
func (k *Known) ReturnsTo(space string, cidr netip.Prefix, l *Lease, name string) bool {
	return k.Returns != nil && name != "" && k.Returns(space, cidr, l, name)
}

// RunsElsewhere returns a container other than the one of this name that has an address of a subnet. ok is false if
// there is none.
func (k *Known) RunsElsewhere(space string, cidr netip.Prefix, addr netip.Addr, name string) (c Container, ok bool) {
	if k.Runs == nil {
		return c, false
	}
	own := k.ContainerOf(name)
	for _, c = range k.Runs(space, cidr, addr) {
		if own == "" && RememberedName(c.Name) == RememberedName(name) || own != "" && ShortContainer(c.ID) == own {
			continue
		}
		return c, true
	}
	return Container{}, false
}

// The engine never repeats a request. A request with a MAC that already has a lease has two possible reasons. Another
// endpoint may have the same MAC: it must not get the address. Or the engine lost the address, and the endpoint starts
// again: it must get the address at once. So a lease is taken over only if it is in doubt whether an endpoint has it.

// Sight is a witness's answer to whether a lease has an endpoint.
type Sight uint8

// The answers of a witness.
const (
	NotSeen Sight = iota // nothing is known
	Seen                 // an endpoint has the address, or had it at least until the last look
	// two successive looks found no endpoint, and it had the time to appear
	Gone
	CutOff // the engine stopped before the endpoint was seen; its start may have failed
)

// Sighting is what a witness knows of the endpoint of a lease.
type Sighting struct {
	Sight
	Container string // the current name of the present or last holder; empty: unknown
	MAC       MAC    // of the endpoint; zero: unknown
}

// Sighting returns what the witness knows of the endpoint of a lease.
func (k *Known) Sighting(space string, l *Lease) Sighting {
	if k.Endpoint == nil || !l.Held() || l.Attachment == (ID{}) {
		return Sighting{}
	}
	return k.Endpoint(LeaseRef{Space: space, Address: l.Address, ID: l.ID}, l.Since)
}
