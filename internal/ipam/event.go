package ipam

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// Verb is what happened in an event.
type Verb uint8

// The verbs. Their numbers are stored.
const (
	LeaseTaken Verb = iota + 1
	LeaseReleased
	PoolAttached
	PoolReleased
	SubnetCreated
	SubnetRemoved
	SpaceCreated
	GatewaySet
	PolicyChanged
	LeaseMoved // to another attachment, by a replay in the global space
	NetworkCreated
	NetworkModified
	NetworkRemoved
	SubnetModified
	PoolAdded
	PoolModified
	PoolRemoved
	ExclusionAdded
	ExclusionRemoved
	ReservationAdded
	ReservationRemoved
	TokenCreated // by the admin API, which keeps tokens outside the store
	TokenRemoved
	ImportBegun
	ImportEnded // finished or rolled back
	LeaseNamed  // a witness learnt the endpoint; Name is its name
	ReservationModified
	HostJoined // of a shared store; Name is the host in all host verbs
	HostDrained
	HostLeft // it was asked to leave and has not left yet
	HostGone
	HostAdmitted
	SpaceMoved         // to this store or from it; Name is the space
	HeadroomClaimed    // a host claims the address for nobody yet; LeaseTaken follows at its use
	HeadroomReleased   // the claim ends without use
	GuessedWrong       // the engine shows another container than the guess; Name is the right one
	ForeignHolderTold  // a container runs with an address that is reserved for another
	OwnerElsewhereTold // an owner runs with another address than the reserved one
	StoodIn            // a container stands in for a destroyed one; Name is its own
	StandInEnded
	LeaseNoted // the note of an external address changed
	AccountCreated
	AccountRemoved
	ElasticRangeAdded
	ElasticRangeRemoved
	ElasticTaken // an account gets the address
	ElasticAssociated
	ElasticDisassociated
	ElasticReleased
	ElasticApplied   // an edge has mapped the address, or reports why it cannot
	ElasticWithdrawn // an edge no longer maps the address
	DeployBegun      // a project is locked; Name is the project in both deploy verbs
	DeployEnded
	VolumeOrphaned   // no service uses the volume any more; Name is the volume, Detail the project
	OrphanEnded      // the volume is gone, or in use again
	ElasticMoved     // the elastic records were copied to this store, or from it
	LeaseLost        // a DHCP server took the lease back, or it expired
	LeaseConflict    // a DHCP server gave the address to two clients
	LeaseUnconfirmed // the lease was used again while its DHCP server did not answer
	LeaseConfirmed   // the DHCP server confirmed the lease again
	AnswerFound      // a LAN host answered for an address without a record, so it is excluded; MAC is that host's
	LeasePutBack     // a container was moved back to its own address
	BridgeFound      // a Docker network of the driver bridge overlaps a LAN of its host; Name is Berth's network
)

var verbNames = [...]string{
	LeaseTaken: "lease.take", LeaseReleased: "lease.release", LeaseMoved: "lease.move",
	PoolAttached: "pool.attach", PoolReleased: "pool.release",
	SubnetCreated: "subnet.create", SubnetRemoved: "subnet.remove", SpaceCreated: "space.create",
	GatewaySet: "subnet.gateway", PolicyChanged: "network.policy",
	NetworkCreated: "network.create", NetworkModified: "network.modify", NetworkRemoved: "network.remove",
	SubnetModified: "subnet.modify",
	PoolAdded:      "pool.add", PoolModified: "pool.modify", PoolRemoved: "pool.remove",
	ExclusionAdded: "exclusion.add", ExclusionRemoved: "exclusion.remove",
	ReservationAdded: "reservation.add", ReservationRemoved: "reservation.remove",
	TokenCreated: "token.create", TokenRemoved: "token.remove",
	ImportBegun: "import.begin", ImportEnded: "import.end",
	LeaseNamed: "lease.name", ReservationModified: "reservation.modify",
	HostJoined: "host.join", HostDrained: "host.drain", HostLeft: "host.leave", HostGone: "host.remove",
	HostAdmitted:    "host.admit",
	HeadroomClaimed: "headroom.claim", HeadroomReleased: "headroom.release",
	SpaceMoved: "space.move", GuessedWrong: "lease.guessed_wrong", ForeignHolderTold: "lease.foreign_holder",
	LeasePutBack:       "lease.put_back",
	OwnerElsewhereTold: "lease.owner_elsewhere", StoodIn: "reservation.stand_in",
	StandInEnded: "reservation.stand_in_end", LeaseNoted: "lease.note",
	AccountCreated: "account.create", AccountRemoved: "account.remove",
	ElasticRangeAdded: "elastic.range.add", ElasticRangeRemoved: "elastic.range.remove",
	ElasticTaken: "elastic.allocate", ElasticAssociated: "elastic.associate",
	ElasticDisassociated: "elastic.disassociate", ElasticReleased: "elastic.release",
	ElasticApplied: "elastic.applied", ElasticWithdrawn: "elastic.withdrawn",
	DeployBegun: "deploy.begin", DeployEnded: "deploy.end",
	VolumeOrphaned: "volume.orphan", OrphanEnded: "volume.orphan_end",
	ElasticMoved: "elastic.move",
	LeaseLost:    "lease.lost", LeaseConflict: "lease.conflict", LeaseUnconfirmed: "lease.unconfirmed",
	LeaseConfirmed: "lease.confirmed",
	AnswerFound:    "exclusion.answered", BridgeFound: "subnet.bridge_on_lan",
}

func (v Verb) String() string {
	if int(v) < len(verbNames) && verbNames[v] != "" {
		return verbNames[v]
	}
	return fmt.Sprintf("verb %d", uint8(v))
}

// MarshalText returns the name of the verb.
func (v Verb) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// UnmarshalText reads what MarshalText wrote. Its error wraps ErrInvalid.
func (v *Verb) UnmarshalText(b []byte) error {
	for i, name := range verbNames {
		if name != "" && name == string(b) {
			*v = Verb(i)
			return nil
		}
	}
	return fmt.Errorf("%w: %q is not an event", ErrInvalid, b)
}

// Verbs returns the names of all verbs, sorted.
func Verbs() []string {
	var all []string
	for _, name := range verbNames {
		if name != "" {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return all
}

// VerbsLike returns the verbs that match a pattern: one name, such as lease.take, or all of a noun, as in lease or
// lease.*. It returns none if nothing matches.
func VerbsLike(pattern string) (all []Verb) {
	noun := strings.TrimSuffix(pattern, ".*")
	for v, name := range verbNames {
		if name != "" && (name == pattern || strings.HasPrefix(name, noun+".")) {
			all = append(all, Verb(v))
		}
	}
	return all
}

// Event is one entry of the audit trail. The transaction of a change also writes its event, so there is no change
// without one.
type Event struct {
	ID         uint64       `json:"id"` // microseconds since 1970, made strictly increasing
	Time       time.Time    `json:"time"`
	Verb       Verb         `json:"verb"`
	Actor      string       `json:"actor,omitempty"` // "engine" for calls of the Docker Engine
	Space      string       `json:"space,omitempty"`
	Subnet     netip.Prefix `json:"subnet,omitzero"`
	Address    netip.Addr   `json:"address,omitzero"`
	Lease      uint64       `json:"lease,omitempty"` // the lease that the event made or ended
	Attachment ID           `json:"pool,omitzero"`
	MAC        MAC          `json:"mac,omitzero"`
	Name       string       `json:"name,omitempty"`
	Host       string       `json:"host,omitempty"`
	Detail     string       `json:"detail,omitempty"`

	// The network of the address or subnet, or the network whose plan changed.
	Network   string `json:"network,omitempty"` // its name
	NetworkID ID     `json:"network_id,omitzero"`

	// The change of the plan as JSON: the fields that differ, or all of what was made or removed.
	Before json.RawMessage `json:"before,omitempty"`
	After  json.RawMessage `json:"after,omitempty"`
}

// EventTime returns the time in an event's id. It is the time of writing unless ids were ahead of the clock then.
func EventTime(id uint64) time.Time { return time.UnixMicro(int64(id)).UTC() }

// aheadOf returns by how many microseconds the id of an event is ahead of its time.
func (e *Event) aheadOf() uint64 {
	if at := uint64(max(e.Time.UnixMicro(), 0)); !e.Time.IsZero() && at < e.ID {
		return e.ID - at
	}
	return 0
}

// The first byte of an event's record. aheadVersion marks an event whose id is ahead of its time, and throwAwayVersion
// several events. Other versions are refused, so that they are not misread.
const (
	eventVersion = 1
	aheadVersion = 3
)

// EncodeEvent appends e without its id, which is the record's key. The time follows from the id, so only a difference
// between them is stored.
func EncodeEvent(b []byte, e *Event) []byte {
	if ahead := e.aheadOf(); ahead > 0 {
		b = binary.AppendUvarint(append(b, aheadVersion), ahead)
	} else {
		b = append(b, eventVersion)
	}
	b = append(b, byte(e.Verb))
	b = appendString(b, e.Actor)
	b = appendString(b, e.Space)
	b = appendPrefix(b, e.Subnet)
	b = appendSized(b, e.Address)
	b = binary.AppendUvarint(b, e.Lease)
	b = append(b, e.Attachment[:]...)
	b = append(b, e.MAC[:]...)
	b = appendString(b, e.Name)
	b = appendString(b, e.Host)
	b = appendString(b, e.Detail)
	b = appendString(b, e.Network)
	b = appendString(b, string(e.Before))
	b = appendString(b, string(e.After))
	if e.NetworkID == (ID{}) {
		return b
	}
	return append(b, e.NetworkID[:]...)
}

// DecodeEvent reads what EncodeEvent wrote under id. Its errors wrap ErrDamaged.
func DecodeEvent(id uint64, b []byte) (*Event, error) {
	d := decoder{B: b}
	ahead, ok := d.ahead()
	if !ok {
		return nil, fmt.Errorf("%w: event %d has the version %x, but this Berth reads the versions %x and %x",
			ErrDamaged, id, b[:min(len(b), 1)], eventVersion, aheadVersion)
	}
	d.Failed = d.Failed || ahead > id
	e := &Event{ID: id, Time: EventTime(id - ahead), Verb: Verb(d.Byte()), Actor: d.String(), Space: d.String()}
	e.Subnet, e.Address = d.prefix(), d.Addr()
	e.Lease = d.uvarint()
	d.Copy(e.Attachment[:])
	d.Copy(e.MAC[:])
	e.Name, e.Host, e.Detail = d.String(), d.String(), d.String()
	e.Network, e.Before, e.After = d.String(), d.json(), d.json()
	if len(d.B) > 0 { // older events have none
		d.Copy(e.NetworkID[:])
		d.Failed = d.Failed || e.NetworkID == (ID{})
	}
	if d.Failed || len(d.B) != 0 {
		return nil, fmt.Errorf("%w: event %d cannot be decoded", ErrDamaged, id)
	}
	return e, nil
}

// ahead reads by how many microseconds the following event's id is ahead of its time. It returns false if no event
// follows.
func (d *decoder) ahead() (us uint64, ok bool) {
	switch d.Byte() {
	case eventVersion:
		return 0, true
	case aheadVersion:
		us = d.uvarint()
		return us, us > 0
	}
	return 0, false
}

// EventsAhead returns by how many microseconds the ids in a record of events are ahead of their times. It also returns
// 0 if the record cannot be read.
func EventsAhead(b []byte) uint64 {
	d := decoder{B: b}
	if _, same, _, ok := cutThrowAway(b); ok {
		d.B = same
		d.skip()
		d.skip()
	}
	us, _ := d.ahead()
	return us
}

// EventAddress reads only the address from the record of an event. It returns false if that fails; DecodeEvent then
// reports why.
func EventAddress(b []byte) (addr netip.Addr, ok bool) {
	d := decoder{B: b}
	if _, ok = d.ahead(); !ok {
		return addr, false
	}
	d.Byte()      // the verb
	for range 2 { // actor and space
		d.skip()
	}
	d.prefix()
	addr = d.Addr()
	return addr, !d.Failed
}

// json reads a JSON document, and returns nil for an empty one. Invalid JSON counts as damage because it could not be
// shown.
func (d *decoder) json() json.RawMessage {
	text := d.String()
	if text == "" {
		return nil
	}
	d.Failed = d.Failed || !json.Valid([]byte(text))
	return json.RawMessage(text)
}

type actorKey struct{}

// WithActor stores in ctx the requester's name, for the events of the request.
func WithActor(ctx context.Context, actor string) context.Context {
	return context.WithValue(ctx, actorKey{}, actor)
}

// ActorOf returns the requester's name from WithActor, or the empty string.
func ActorOf(ctx context.Context) string {
	actor, _ := ctx.Value(actorKey{}).(string)
	return actor
}

type accountKey struct{}

// WithAccount limits a request to what one account may see and change. The empty account sets no limit.
func WithAccount(ctx context.Context, account string) context.Context {
	return context.WithValue(ctx, accountKey{}, account)
}

// AccountOf returns the account to which WithAccount limited a request, or the empty string.
func AccountOf(ctx context.Context) string {
	account, _ := ctx.Value(accountKey{}).(string)
	return account
}

// Retention limits the audit trail. Zero fields take the defaults: 90 days, a million events, 64 MiB.
type Retention struct {
	Age   time.Duration
	Count int
	Bytes int64 // their size in the store
}

// DefaultEventBytes is how many bytes of events are kept.
const DefaultEventBytes = 64 << 20

// WithDefaults returns r with its zero fields set to the defaults.
func (r Retention) WithDefaults() Retention {
	if r.Age == 0 {
		r.Age = 90 * 24 * time.Hour
	}
	if r.Count == 0 {
		r.Count = 1_000_000
	}
	if r.Bytes == 0 {
		r.Bytes = DefaultEventBytes
	}
	return r
}
