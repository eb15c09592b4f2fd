package ipam

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"time"
)

// Kind is how an address was taken.
type Kind uint8

// The kinds of lease. Their numbers are stored.
const (
	Automatic Kind = iota + 1 // Berth chose it
	Static                    // asked for by address
	Gateway                   // a subnet's gateway, or one that belongs to an attachment
	Auxiliary                 // kept for the network by `--aux-address`: static, without a MAC
	External                  // taken by a person for a non-container; Name is its owner
	// claimed for a host of a cluster, to be given while the shared store is unreachable
	Headroom
)

var kindNames = [...]string{Automatic: "automatic", Static: "static", Gateway: "gateway", Auxiliary: "auxiliary",
	External: "external", Headroom: "headroom"}

// Kinds returns the names of all kinds.
func Kinds() []string { return kindNames[1:] }

func (k Kind) String() string {
	if int(k) < len(kindNames) && kindNames[k] != "" {
		return kindNames[k]
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// MarshalText returns the name of the kind.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText reads what MarshalText wrote.
func (k *Kind) UnmarshalText(b []byte) error {
	for i, name := range kindNames {
		if name != "" && name == string(b) {
			*k = Kind(i)
			return nil
		}
	}
	return fmt.Errorf("%w: %q is not a kind of lease", ErrInvalid, b)
}

// Lease is the record of an address. Somebody holds the address, or Released is set and the record remembers the last
// holder. With the zero Kind, the address is only reserved. There is one record per address, so no address can have two
// holders.
type Lease struct {
	ID              uint64     // the event that made it; unique in a store, increasing
	Address         netip.Addr // stored in the record's key
	Kind            Kind
	Attachment      ID     // the attachment that took it; zero: it belongs to the subnet (its gateway)
	MAC             MAC    // zero: none was sent
	Name            string // the endpoint's name, from the engine if it sends it, otherwise from the witness
	Container       string // short id (ShortContainer); empty: no witness knew it
	Guessed         bool   // the name is a guess that the engine has not confirmed yet
	Host            string
	Since           time.Time // the time of the event that made it
	Released        time.Time // from the id of the event that ended it, so that memories have an order; zero while held
	QuarantineUntil time.Time // the end of the quarantine after the release; zero: none

	Ahead time.Duration // how far Released was ahead of the clock (Left)

	DHCP *DHCPLease // from the LAN's DHCP server; nil: not from DHCP

	Slot        Slot         // External only
	Note        string       // External only: its purpose, in a person's words
	Reservation *Reservation // the reservation of the address, held or not; nil: none
}

// Slot is a place at an owner's interface: the interface's number, and the address's number there.
type Slot struct{ Interface, Number uint8 }

func (s Slot) String() string { return fmt.Sprintf("%d:ip%d", s.Interface, s.Number) }

// Held reports whether somebody has the address now.
func (l *Lease) Held() bool { return l != nil && l.Kind != 0 && l.Released.IsZero() }

// Remembered reports whether the address is free and the record names its last holder.
func (l *Lease) Remembered() bool { return l != nil && l.Kind != 0 && !l.Released.IsZero() }

// Claim returns who has a claim to the address of the record. It is the zero Claim for nil. A reserved address that is
// not held has no quarantine.
func (l *Lease) Claim() Claim {
	switch {
	case l.Held():
		return Claim{Held: true}
	case l.Idle():
		return Claim{Reserved: true, ReservedUntil: l.Reservation.Until}
	case l.Remembered():
		return Claim{Quarantine: l.QuarantineUntil}
	}
	return Claim{}
}

// Quarantined reports whether a quarantine that ends at until still keeps the address for its last holder.
func Quarantined(until, now time.Time) bool { return until.After(now) }

// Left returns when the address was released. It is zero while held.
func (l *Lease) Left() time.Time {
	if l.Released.IsZero() {
		return l.Released
	}
	return l.Released.Add(-l.Ahead)
}

// Reserved returns the reservation of the address, nil for none.
func (l *Lease) Reserved() *Reservation {
	if l == nil {
		return nil
	}
	return l.Reservation
}

// Idle reports whether the address is reserved and not held.
func (l *Lease) Idle() bool { return l.Reserved() != nil && !l.Held() }

// Unheld returns the record without its holder and without a memory. It is nil if nothing is left.
func (l *Lease) Unheld() *Lease {
	if l.Reserved() == nil {
		return nil
	}
	return &Lease{Address: l.Address, Reservation: l.Reservation, DHCP: l.DHCP}
}

// WithReservation returns the record of addr with another reservation, nil if nothing is left. A reserved address that
// is not held keeps no memory of its last holder.
func (l *Lease) WithReservation(addr netip.Addr, r *Reservation) *Lease {
	if l.Held() {
		after := *l
		after.Reservation = r
		return &after
	}
	if r == nil {
		return nil
	}
	after := &Lease{Address: addr, Reservation: r}
	if l.Idle() {
		after.DHCP = l.DHCP
	}
	return after
}

// LastUsed returns when the address was last held, to order leases and memories. It uses event ids, which stay in order
// when the clock is set back. A lease from headroom has the id of an older event, so Since counts if it is later.
func (l *Lease) LastUsed() time.Time {
	made := EventTime(l.ID)
	switch {
	case !l.Held():
		return l.Released
	case made.After(l.Since):
		return made
	}
	return l.Since
}

// Holder names the present or last holder for an error: the endpoint, otherwise the MAC, otherwise the attachment.
func (l *Lease) Holder() string {
	switch {
	case l.Kind == Gateway && l.Attachment == (ID{}):
		return "the gateway of its subnet"
	case l.Kind == Gateway:
		return fmt.Sprintf("the gateway of pool %s on host %s", l.Attachment.Short(), l.Host)
	case l.Kind == Headroom:
		return "the headroom of host " + l.Host
	case l.Kind == External:
		return fmt.Sprintf("%s (%s, by berth address take)", l.Name, l.Slot)
	case l.Name != "" && l.MAC != (MAC{}):
		return fmt.Sprintf("%s (MAC %s) on host %s", l.Name, l.MAC, l.Host)
	case l.Name != "":
		return fmt.Sprintf("%s on host %s", l.Name, l.Host)
	case l.MAC != (MAC{}):
		return fmt.Sprintf("the endpoint with MAC %s on host %s", l.MAC, l.Host)
	default:
		article := "a"
		if l.Kind == Automatic || l.Kind == Auxiliary {
			article = "an"
		}
		return fmt.Sprintf("%s %s address of pool %s on host %s", article, l.Kind, l.Attachment.Short(), l.Host)
	}
}

// Event returns an event of the lease, which is of a subnet.
func (l *Lease) Event(verb Verb, sub *Subnet, detail string) *Event {
	return &Event{Verb: verb, Space: sub.Space, Subnet: sub.CIDR, Address: l.Address, Lease: l.ID,
		Attachment: l.Attachment, MAC: l.MAC, Name: l.Name, Detail: detail}
}

// leaseVersion is the first byte of a lease's record. Other versions are refused, so that they are not misread.
const leaseVersion = 1

// The flags of a lease's record: the name is a guess; it has a note; it has a DHCP lease; its container is known; it
// was released while ids were ahead of the clock.
const (
	guessedFlag = 1 << iota
	notedLeaseFlag
	dhcpLeaseFlag
	containerFlag
	aheadFlag
)

// EncodeLease appends l without its address. It has a compact form of about 80 bytes, because every allocation writes
// one.
func EncodeLease(b []byte, l *Lease) []byte {
	flags := byte(0)
	if l.Guessed {
		flags = guessedFlag
	}
	if l.Note != "" {
		flags |= notedLeaseFlag
	}
	if l.DHCP != nil {
		flags |= dhcpLeaseFlag
	}
	if l.Container != "" {
		flags |= containerFlag
	}
	if l.Ahead > 0 {
		flags |= aheadFlag
	}
	b = append(b, leaseVersion, flags, byte(l.Kind))
	b = binary.AppendUvarint(b, l.ID)
	b = append(b, l.Attachment[:]...)
	b = append(b, l.MAC[:]...)
	b = appendString(b, l.Name)
	b = appendString(b, l.Host)
	b = appendTime(b, l.Since)
	b = appendTime(b, l.Released)
	b = appendTime(b, l.QuarantineUntil)
	if l.Ahead > 0 {
		b = binary.AppendUvarint(b, uint64(l.Ahead/time.Microsecond))
	}
	b = append(b, l.Slot.Interface, l.Slot.Number)
	if l.Note != "" {
		b = appendString(b, l.Note)
	}
	if l.Container != "" {
		b = appendString(b, l.Container)
	}
	if l.DHCP != nil {
		b = l.DHCP.append(b)
	}
	return l.Reservation.append(b)
}

// DecodeLease reads what EncodeLease wrote for addr. Its errors wrap ErrDamaged.
func DecodeLease(addr netip.Addr, b []byte) (*Lease, error) {
	d := decoder{B: b}
	if version := d.Byte(); version != leaseVersion {
		return nil, fmt.Errorf("%w: the lease of %s has version %d, but this Berth reads version %d", ErrDamaged, addr,
			version, leaseVersion)
	}
	flags := d.Byte()
	l := &Lease{Address: addr, Kind: Kind(d.Byte()), ID: d.uvarint(), Guessed: flags&guessedFlag != 0}
	d.Copy(l.Attachment[:])
	d.Copy(l.MAC[:])
	l.Name, l.Host = d.String(), d.String()
	l.Since, l.Released, l.QuarantineUntil = d.time(), d.time(), d.time()
	if flags&aheadFlag != 0 {
		l.Ahead = time.Duration(d.uvarint()) * time.Microsecond
	}
	l.Slot = d.slot()
	if flags&notedLeaseFlag != 0 {
		l.Note = d.String()
	}
	if flags&containerFlag != 0 {
		l.Container = d.String()
	}
	if flags&dhcpLeaseFlag != 0 {
		l.DHCP = d.dhcpLease()
	}
	l.Reservation = d.reservation()
	if d.Failed || len(d.B) != 0 || flags > guessedFlag|notedLeaseFlag|dhcpLeaseFlag|containerFlag|aheadFlag {
		return nil, fmt.Errorf("%w: the lease of %s cannot be decoded", ErrDamaged, addr)
	}
	return l, nil
}

func (d *decoder) slot() Slot { return Slot{d.Byte(), d.Byte()} }

// LeaseRef identifies one lease or memory of an address, and no later one.
type LeaseRef struct {
	Space   string     `json:"space"`
	Address netip.Addr `json:"address"`
	ID      uint64     `json:"id"`
}

// Ref returns the reference itself, also where it is embedded.
func (r LeaseRef) Ref() LeaseRef { return r }

// LeaseName is what a witness has learnt about a lease.
type LeaseName struct {
	LeaseRef
	Name      string // the endpoint's
	Container string // the container's short id; empty: unknown
}

// AttachmentInfo is a Docker network's hold on a subnet, as shown to the witness.
type AttachmentInfo struct {
	ID      ID           `json:"id"`
	Space   string       `json:"space"`
	CIDR    netip.Prefix `json:"cidr"`
	Network string       `json:"network"` // its name
	Planned bool         `json:"planned"`
	Host    string       `json:"host"`
	Swarm   bool         `json:"swarm"`
	Chosen  bool         `json:"chosen,omitempty"` // Docker named no subnet
	Range   Range        `json:"range,omitzero"`
	Named   string       `json:"named,omitempty"`
	// the host's routes that overlapped the subnet when the attachment was made
	Beneath []HostRoute `json:"beneath,omitempty"`
	Created time.Time   `json:"created"`
	Live    int         `json:"live"`             // leases held through it, without headroom
	Gateway netip.Addr  `json:"gateway,omitzero"` // the subnet's
}
