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
)

var kindNames = [...]string{Automatic: "automatic", Static: "static", Gateway: "gateway", Auxiliary: "auxiliary"}

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

// Lease is an address in somebody's hands or, once Released is set, the memory of whose it was. There is one
// record per address, so that no address can have two holders (GA-22).
type Lease struct {
	ID         uint64     // of the event that made it; unique in a store, increasing
	Address    netip.Addr // kept in the record's key
	Kind       Kind
	Attachment ID     // through which it was taken; zero: it belongs to the subnet (its gateway)
	MAC        MAC    // zero: none was sent
	Name       string // the endpoint's name, from engines that send it
	Host       string
	Since      time.Time // of the event that made it, and so unique in a store, like Released
	Released   time.Time // of the event that ended it; zero while it is held
	Until      time.Time // end of the quarantine after the release; zero: none
}

// Held tells whether somebody has the address now.
func (l *Lease) Held() bool { return l != nil && l.Released.IsZero() }

// lastUsed orders leases and memories by when they were last in somebody's hands.
func (l *Lease) lastUsed() time.Time {
	if l.Held() {
		return l.Since
	}
	return l.Released
}

// Holder names who has the address, or had it, for an error: the endpoint, else the MAC, else the attachment.
func (l *Lease) Holder() string {
	switch {
	case l.Kind == Gateway && l.Attachment == (ID{}):
		return "the gateway of its subnet"
	case l.Kind == Gateway:
		return fmt.Sprintf("the gateway of pool %s on host %s", l.Attachment.Short(), l.Host)
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

const leaseVersion = 1

// encodeLease appends l without its address. Leases are written once per allocation, hence a compact form of their own
// instead of JSON: about 60 bytes.
func encodeLease(b []byte, l *Lease) []byte {
	b = append(b, leaseVersion, byte(l.Kind))
	b = binary.AppendUvarint(b, l.ID)
	b = append(b, l.Attachment[:]...)
	b = append(b, l.MAC[:]...)
	b = appendString(b, l.Name)
	b = appendString(b, l.Host)
	b = appendTime(b, l.Since)
	b = appendTime(b, l.Released)
	return appendTime(b, l.Until)
}

// decodeLease reads what encodeLease wrote for addr.
func decodeLease(addr netip.Addr, b []byte) (*Lease, error) {
	d := decoder{b: b}
	if v := d.byte(); v != leaseVersion {
		return nil, fmt.Errorf("%w: the lease of %s has version %d, this Berth reads %d", ErrDamaged, addr, v, leaseVersion)
	}
	l := &Lease{Address: addr, Kind: Kind(d.byte()), ID: d.uvarint()}
	d.copy(l.Attachment[:])
	d.copy(l.MAC[:])
	l.Name, l.Host = d.string(), d.string()
	l.Since, l.Released, l.Until = d.time(), d.time(), d.time()
	if d.failed || len(d.b) != 0 {
		return nil, fmt.Errorf("%w: the lease of %s does not decode", ErrDamaged, addr)
	}
	return l, nil
}
