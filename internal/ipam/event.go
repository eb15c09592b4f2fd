package ipam

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/netip"
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
	SpaceMoved       // to this store, or from it; Name is the space's
	HeadroomClaimed  // a lease begins, of nobody yet: LeaseTaken follows when it is used
	HeadroomReleased // it ends, and nobody had it
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
	HostJoined: "host.join", HostDrained: "host.drain", HostLeft: "host.leave", HostGone: "host.remove", HostAdmitted: "host.admit",
	HeadroomClaimed: "headroom.claim", HeadroomReleased: "headroom.release",
	SpaceMoved: "space.move",
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

	// What a change of the plan changed, as JSON: the fields that differ, or the whole of what was made or removed.
	Network string          `json:"network,omitempty"` // its name
	Before  json.RawMessage `json:"before,omitempty"`
	After   json.RawMessage `json:"after,omitempty"`
}

// eventTime is when the event of an id was written.
func eventTime(id uint64) time.Time { return time.UnixMicro(int64(id)).UTC() }

// The versions of an event's record: the second one has what a change of the plan changed behind what the first one has.
const (
	eventVersion     = 1
	eventVersionPlan = 2
)

// encodeEvent appends e without its id, which is the key and holds the time.
func encodeEvent(b []byte, e *Event) []byte {
	version := byte(eventVersion)
	if e.Network != "" || e.Before != nil || e.After != nil {
		version = eventVersionPlan
	}
	b = append(b, version, byte(e.Verb))
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
	if version == eventVersion {
		return b
	}
	b = appendString(b, e.Network)
	b = appendString(b, string(e.Before))
	return appendString(b, string(e.After))
}

// decodeEvent reads what encodeEvent wrote under id.
func decodeEvent(id uint64, b []byte) (*Event, error) {
	d := decoder{b: b}
	version := d.byte()
	if version < eventVersion || version > eventVersionPlan {
		return nil, fmt.Errorf("%w: event %d has version %d, this Berth reads up to %d", ErrDamaged, id, version, eventVersionPlan)
	}
	e := &Event{ID: id, Time: eventTime(id), Verb: Verb(d.byte()), Actor: d.string(), Space: d.string()}
	e.Subnet, e.Address = d.prefix(), d.addr()
	e.Lease = d.uvarint()
	d.copy(e.Attachment[:])
	d.copy(e.MAC[:])
	e.Name, e.Host, e.Detail = d.string(), d.string(), d.string()
	if version == eventVersionPlan {
		e.Network, e.Before, e.After = d.string(), d.json(), d.json()
	}
	if d.failed || len(d.b) != 0 {
		return nil, fmt.Errorf("%w: event %d does not decode", ErrDamaged, id)
	}
	return e, nil
}

// json reads a document, nil where it is empty. One that is no JSON is damage: it could not be shown.
func (d *decoder) json() json.RawMessage {
	text := d.string()
	if text == "" {
		return nil
	}
	d.failed = d.failed || !json.Valid([]byte(text))
	return json.RawMessage(text)
}

type actorKey struct{}

// WithActor names in ctx who asks, for the events of the request.
func WithActor(ctx context.Context, actor string) context.Context {
	return context.WithValue(ctx, actorKey{}, actor)
}

func actorOf(ctx context.Context) string {
	actor, _ := ctx.Value(actorKey{}).(string)
	return actor
}
