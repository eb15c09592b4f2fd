package ipam

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"time"
)

// Kind says how an address was taken.
type Kind uint8

// The kinds of lease. Their numbers are stored.
const (
	Automatic Kind = iota + 1 // Berth chose it
	Static                    // asked for by address
	Gateway                   // a subnet's gateway, or one that an attachment has for itself
	Auxiliary                 // kept for the network by `--aux-address`: static, with nobody's MAC
	External                  // taken by a person for what is no container; Name is its owner
	// claimed for a host of a cluster, which gives it to a container while the shared store is out of reach
	Headroom
)

var kindNames = [...]string{Automatic: "automatic", Static: "static", Gateway: "gateway", Auxiliary: "auxiliary",
	External: "external", Headroom: "headroom"}

// Kinds are the names of all kinds.
func Kinds() []string { return kindNames[1:] }

func (k Kind) String() string {
	if int(k) < len(kindNames) && kindNames[k] != "" {
		return kindNames[k]
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// MarshalText makes a Kind its name in JSON.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText reads what MarshalText wrote.
func (k *Kind) UnmarshalText(b []byte) error {
	for i, name := range kindNames {
		if name != "" && name == string(b) {
			*k = Kind(i)
			return nil
		}
	}
	return fmt.Errorf("%w: no kind of lease is called %q", ErrInvalid, b)
}

// Lease is the record of an address: in somebody's hands or, once Released is set, the memory of whose it was, or, with
// the zero Kind, reserved and nothing else. There is one record per address, so that no address can have two holders
// (GA-22).
type Lease struct {
	ID              uint64     // of the event that made it; unique in a store, increasing
	Address         netip.Addr // kept in the record's key
	Kind            Kind
	Attachment      ID     // through which it was taken; zero: it belongs to the subnet (its gateway)
	MAC             MAC    // zero: none was sent
	Name            string // the endpoint's name, from engines that send it, else from the witness
	Container       string // its short id (ShortContainer); empty: no witness knew it
	Guessed         bool   // the name is a guess, which the engine has not shown to be right yet
	Host            string
	Since           time.Time // of the event that made it
	Released        time.Time // of the id of the event that ended it, so that memories have an order; zero while it is held
	QuarantineUntil time.Time // end of the quarantine after the release; zero: none

	Ahead time.Duration // how far Released is ahead of what the clock said then (Left)

	DHCP *DHCPLease // that a LAN's server gave of it (LN-15); nil: no server did

	Slot        Slot         // of an External one
	Note        string       // of an External one: what it is for, in a person's words
	Reservation *Reservation // whose the address is, in use or not; nil: nobody's
}

// Slot is a place at an owner's interface (GA-24): the number of the interface, and of the address there.
type Slot struct{ Interface, Number uint8 }

func (s Slot) String() string { return fmt.Sprintf("%d:ip%d", s.Interface, s.Number) }

// Held tells whether somebody has the address now.
func (l *Lease) Held() bool { return l != nil && l.Kind != 0 && l.Released.IsZero() }

// Remembered tells whether nobody has the address, and somebody had it.
func (l *Lease) Remembered() bool { return l != nil && l.Kind != 0 && !l.Released.IsZero() }

// Quarantined tells whether an address of which a quarantine ends at a time is kept for its last holder now.
func Quarantined(until, now time.Time) bool { return until.After(now) }

// Left is when the address was given back; zero while it is held.
func (l *Lease) Left() time.Time {
	if l.Released.IsZero() {
		return l.Released
	}
	return l.Released.Add(-l.Ahead)
}

// Reserved is the reservation of the address, nil where there is none.
func (l *Lease) Reserved() *Reservation {
	if l == nil {
		return nil
	}
	return l.Reservation
}

// Idle tells whether the address is reserved and nobody has it.
func (l *Lease) Idle() bool { return l.Reserved() != nil && !l.Held() }

// Unheld is what is left of a record when nobody has the address any more, and no memory of it is kept.
func (l *Lease) Unheld() *Lease {
	if l.Reserved() == nil {
		return nil
	}
	return &Lease{Address: l.Address, Reservation: l.Reservation, DHCP: l.DHCP}
}

// WithReservation is the record of the same address with another reservation, nil where nothing is left to be said of
// it. What is reserved has no memory of others.
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

// LastUsed orders leases and memories by when they were last in somebody's hands: by their events' ids, which stay in
// order when the clock is set back. What a host gave of its headroom has the id of an older event.
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

// Holder names who has the address, or had it, for an error: the endpoint, else the MAC, else the attachment.
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

// leaseVersion leads the record of a lease. A record of another one is refused instead of misread.
const leaseVersion = 1

// guessedFlag marks a lease whose name is a guess, notedLeaseFlag one with a note, dhcpLeaseFlag one of a DHCP server,
// containerFlag one whose container is known, aheadFlag one that was released while ids were ahead of the clock.
const (
	guessedFlag = 1 << iota
	notedLeaseFlag
	dhcpLeaseFlag
	containerFlag
	aheadFlag
)

// EncodeLease appends l without its address. Leases are written once per allocation, hence a compact form of their own
// instead of JSON: about 80 bytes.
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

// DecodeLease reads what EncodeLease wrote for addr.
func DecodeLease(addr netip.Addr, b []byte) (*Lease, error) {
	d := Decoder{B: b}
	if version := d.Byte(); version != leaseVersion {
		return nil, fmt.Errorf("%w: the lease of %s has version %d, this Berth reads %d", ErrDamaged, addr, version,
			leaseVersion)
	}
	flags := d.Byte()
	l := &Lease{Address: addr, Kind: Kind(d.Byte()), ID: d.uvarint(), Guessed: flags&guessedFlag != 0}
	d.Copy(l.Attachment[:])
	d.Copy(l.MAC[:])
	l.Name, l.Host = d.String(), d.String()
	l.Since, l.Released, l.QuarantineUntil = d.Time(), d.Time(), d.Time()
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
		return nil, fmt.Errorf("%w: the lease of %s does not decode", ErrDamaged, addr)
	}
	return l, nil
}

func (d *Decoder) slot() Slot { return Slot{d.Byte(), d.Byte()} }

// LeaseRef names one lease or memory of an address, and no later one.
type LeaseRef struct {
	Space   string     `json:"space"`
	Address netip.Addr `json:"address"`
	ID      uint64     `json:"id"`
}

// LeaseName is what a witness has learnt of a lease.
type LeaseName struct {
	LeaseRef
	Name      string // the endpoint's
	Container string // the short id of whose it is; empty: not known
}

// AttachmentInfo is a Docker network's hold on a subnet as the witness sees it.
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
	Live    int         `json:"live"`             // leases held through it, headroom not counted
	Gateway netip.Addr  `json:"gateway,omitzero"` // the subnet's
}
