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

// Verb says what happened.
type Verb uint8

// The verbs of events. Their numbers are stored.
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
	LeaseMoved // by a replay in the global space, to another attachment
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
	TokenCreated // by the admin API, which keeps them beside the store
	TokenRemoved
	ImportBegun
	ImportEnded // finished or taken back
	LeaseNamed  // a witness learnt whose it is; Name says it
	ReservationModified
	HostJoined // a shared store's; Name is the host's in all of these
	HostDrained
	HostLeft // it was asked to, and has not gone yet
	HostGone
	HostAdmitted
	SpaceMoved         // to this store, or from it; Name is the space's
	HeadroomClaimed    // a lease begins, of nobody yet: LeaseTaken follows when it is used
	HeadroomReleased   // it ends, and nobody had it
	GuessedWrong       // the engine shows another container than was guessed; Name is the right one
	ForeignHolderTold  // a container runs with what is reserved for another
	OwnerElsewhereTold // an owner runs with another address than what is reserved for it
	StoodIn            // a container stands in for one that was destroyed; Name is its own
	StandInEnded
	LeaseNoted // an address that a person has taken has another note
	AccountCreated
	AccountRemoved
	ElasticRangeAdded
	ElasticRangeRemoved
	ElasticTaken // an account has the address from now on
	ElasticAssociated
	ElasticDisassociated
	ElasticReleased
	ElasticApplied   // an edge has mapped the address, or says why it cannot
	ElasticWithdrawn // an edge maps it no more
	DeployBegun      // a project is locked; Name is the project's in both
	DeployEnded
	VolumeOrphaned   // no service uses the volume any more; Name is its own, Detail the project
	OrphanEnded      // it is gone, or in use again
	ElasticMoved     // what there is of elastic addresses was copied to this store, or from it
	LeaseLost        // a DHCP server took it back, or its time was over
	LeaseConflict    // a DHCP server gave it to two
	LeaseUnconfirmed // it was given again while its DHCP server did not answer
	LeaseConfirmed   // the DHCP server says again that it is so
	AnswerFound      // somebody on the LAN has an address that nobody has by the records: it is excluded; MAC is his
	LeasePutBack     // a container was put back to its own address
	BridgeFound      // a Docker network of the driver bridge lies on a LAN of its host; Name is Berth's network
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

// MarshalText makes a Verb its name in JSON.
func (v Verb) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// UnmarshalText reads what MarshalText wrote.
func (v *Verb) UnmarshalText(b []byte) error {
	for i, name := range verbNames {
		if name != "" && name == string(b) {
			*v = Verb(i)
			return nil
		}
	}
	return fmt.Errorf("%w: no event is called %q", ErrInvalid, b)
}

// Verbs lists the names of all verbs, in order.
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

// VerbsLike are the verbs of a pattern: that of the name, such as lease.take, or all of a noun, as in lease or lease.*;
// none where nothing is called so.
func VerbsLike(pattern string) (all []Verb) {
	noun := strings.TrimSuffix(pattern, ".*")
	for v, name := range verbNames {
		if name != "" && (name == pattern || strings.HasPrefix(name, noun+".")) {
			all = append(all, Verb(v))
		}
	}
	return all
}

// Event is one entry of the audit trail: who took or gave what, when. It is written in the transaction of the change
// itself, so there is no change without its event.
type Event struct {
	ID         uint64       `json:"id"` // microseconds since 1970, made strictly increasing
	Time       time.Time    `json:"time"`
	Verb       Verb         `json:"verb"`
	Actor      string       `json:"actor,omitempty"` // "engine" for calls of the Docker Engine
	Space      string       `json:"space,omitempty"`
	Subnet     netip.Prefix `json:"subnet,omitzero"`
	Address    netip.Addr   `json:"address,omitzero"`
	Lease      uint64       `json:"lease,omitempty"` // id of the lease that the event made or ended
	Attachment ID           `json:"pool,omitzero"`
	MAC        MAC          `json:"mac,omitzero"`
	Name       string       `json:"name,omitempty"`
	Host       string       `json:"host,omitempty"`
	Detail     string       `json:"detail,omitempty"`

	// The network that the address or the subnet is of, or whose plan was changed.
	Network   string `json:"network,omitempty"` // its name
	NetworkID ID     `json:"network_id,omitzero"`

	// What a change of the plan changed, as JSON: the fields that differ, or the whole of what was made or removed.
	Before json.RawMessage `json:"before,omitempty"`
	After  json.RawMessage `json:"after,omitempty"`
}

// EventTime is when the event of an id was written, unless ids were ahead of the clock then.
func EventTime(id uint64) time.Time { return time.UnixMicro(int64(id)).UTC() }

// aheadOf is how many microseconds the id of an event is ahead of its time.
func (e *Event) aheadOf() uint64 {
	if at := uint64(max(e.Time.UnixMicro(), 0)); !e.Time.IsZero() && at < e.ID {
		return e.ID - at
	}
	return 0
}

// eventVersion leads the record of one event, aheadVersion that of one whose id is ahead of its time (throwAwayVersion:
// of several). A record of another version is refused instead of misread.
const (
	eventVersion = 1
	aheadVersion = 3
)

// EncodeEvent appends e without its id, which is the key and holds the time: that is written where it is another one.
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

// DecodeEvent reads what EncodeEvent wrote under id.
func DecodeEvent(id uint64, b []byte) (*Event, error) {
	d := Decoder{B: b}
	ahead, ok := d.ahead()
	if !ok {
		return nil, fmt.Errorf("%w: event %d has the version %x, this Berth reads %x and %x", ErrDamaged, id,
			b[:min(len(b), 1)], eventVersion, aheadVersion)
	}
	d.Failed = d.Failed || ahead > id
	e := &Event{ID: id, Time: EventTime(id - ahead), Verb: Verb(d.Byte()), Actor: d.String(), Space: d.String()}
	e.Subnet, e.Address = d.prefix(), d.Addr()
	e.Lease = d.uvarint()
	d.Copy(e.Attachment[:])
	d.Copy(e.MAC[:])
	e.Name, e.Host, e.Detail = d.String(), d.String(), d.String()
	e.Network, e.Before, e.After = d.String(), d.json(), d.json()
	if len(d.B) > 0 { // events of before have none
		d.Copy(e.NetworkID[:])
		d.Failed = d.Failed || e.NetworkID == (ID{})
	}
	if d.Failed || len(d.B) != 0 {
		return nil, fmt.Errorf("%w: event %d does not decode", ErrDamaged, id)
	}
	return e, nil
}

// ahead reads how many microseconds the id of the event that follows is ahead of its time; false where no event does.
func (d *Decoder) ahead() (us uint64, ok bool) {
	switch d.Byte() {
	case eventVersion:
		return 0, true
	case aheadVersion:
		us = d.uvarint()
		return us, us > 0
	}
	return 0, false
}

// EventsAhead is how many microseconds the ids of the events of a record are ahead of their times; 0 also where that
// cannot be read.
func EventsAhead(b []byte) uint64 {
	d := Decoder{B: b}
	if _, same, _, ok := cutThrowAway(b); ok {
		d.B = same
		d.skip()
		d.skip()
	}
	us, _ := d.ahead()
	return us
}

// EventAddress reads the address of an event out of its record, and nothing else of it; false where that cannot be read
// so, which DecodeEvent says why.
func EventAddress(b []byte) (addr netip.Addr, ok bool) {
	d := Decoder{B: b}
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

// json reads a document, nil where it is empty. One that is no JSON is damage: it could not be shown.
func (d *Decoder) json() json.RawMessage {
	text := d.String()
	if text == "" {
		return nil
	}
	d.Failed = d.Failed || !json.Valid([]byte(text))
	return json.RawMessage(text)
}

type actorKey struct{}

// WithActor names in ctx who asks, for the events of the request.
func WithActor(ctx context.Context, actor string) context.Context {
	return context.WithValue(ctx, actorKey{}, actor)
}

// ActorOf is who asks, as WithActor has named it; empty where nobody has.
func ActorOf(ctx context.Context) string {
	actor, _ := ctx.Value(actorKey{}).(string)
	return actor
}

type accountKey struct{}

// WithAccount bounds a request to what is an account's, for one who may see and touch that alone (CS-14). The empty
// account bounds nothing.
func WithAccount(ctx context.Context, account string) context.Context {
	return context.WithValue(ctx, accountKey{}, account)
}

// AccountOf is the account to which WithAccount has bounded a request; empty where nobody has.
func AccountOf(ctx context.Context) string {
	account, _ := ctx.Value(accountKey{}).(string)
	return account
}

// Retention bounds the audit trail. Zero fields take the defaults: 90 days, a million events, 64 MiB.
type Retention struct {
	Age   time.Duration
	Count int
	Bytes int64 // that they take in the store
}

// DefaultEventBytes is how many bytes of events are kept.
const DefaultEventBytes = 64 << 20

// WithDefaults fills what is zero.
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
