package ipam

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net"
)

// ID identifies a network, a subnet or an attachment permanently. It has 128 bits, written as a UUID (RFC 9562):
// version 4 from NewID, version 8 from WorkedOut. The zero ID identifies nothing.
type ID [16]byte

// NewID returns a random ID.
func NewID() ID {
	var id ID
	rand.Read(id[:]) // never fails (crypto/rand)
	id[6] = id[6]&0x0f | 0x40
	id[8] = id[8]&0x3f | 0x80
	return id
}

// WorkedOut derives an ID from a digest: a UUID of version 8 (RFC 9562).
func WorkedOut(sum [32]byte) ID {
	id := ID(sum[:16])
	id[6] = id[6]&0x0f | 0x80
	id[8] = id[8]&0x3f | 0x80
	return id
}

// ParseID reads what String wrote. Its errors wrap ErrInvalid.
func ParseID(s string) (ID, error) {
	var id ID
	if len(s) != 36 || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return ID{}, fmt.Errorf("%w: %q is not an id (8-4-4-4-12 hexadecimal digits)", ErrInvalid, s)
	}
	digits := s[:8] + s[9:13] + s[14:18] + s[19:23] + s[24:]
	if _, err := hex.Decode(id[:], []byte(digits)); err != nil {
		return ID{}, fmt.Errorf("%w: %q is not an id (8-4-4-4-12 hexadecimal digits)", ErrInvalid, s)
	}
	return id, nil
}

func (id ID) String() string {
	var b [36]byte
	hex.Encode(b[:8], id[:4])
	hex.Encode(b[9:13], id[4:6])
	hex.Encode(b[14:18], id[6:8])
	hex.Encode(b[19:23], id[8:10])
	hex.Encode(b[24:], id[10:])
	b[8], b[13], b[18], b[23] = '-', '-', '-', '-'
	return string(b[:])
}

// Short returns the first eight digits, as `docker` shortens its own ids.
func (id ID) Short() string { return hex.EncodeToString(id[:4]) }

// MarshalText writes an ID as String does. The zero ID becomes the empty string.
func (id ID) MarshalText() ([]byte, error) {
	if id == (ID{}) {
		return nil, nil
	}
	return []byte(id.String()), nil
}

// UnmarshalText reads what MarshalText wrote.
func (id *ID) UnmarshalText(b []byte) (err error) {
	*id = ID{}
	if len(b) > 0 {
		*id, err = ParseID(string(b))
	}
	return err
}

// MAC is an Ethernet hardware address. The zero MAC means none.
type MAC [6]byte

// ParseMAC accepts the notations of net.ParseMAC, but only 48 bits, because Docker has no others. Its errors wrap
// ErrInvalid.
func ParseMAC(s string) (MAC, error) {
	hw, err := net.ParseMAC(s)
	if err != nil || len(hw) != len(MAC{}) {
		return MAC{}, fmt.Errorf("%w: %q is not a MAC address such as 02:42:0a:00:00:02", ErrInvalid, s)
	}
	return MAC(hw), nil
}

func (m MAC) String() string {
	if m == (MAC{}) {
		return ""
	}
	return net.HardwareAddr(m[:]).String()
}

// MarshalText writes a MAC as String does.
func (m MAC) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText reads what MarshalText wrote.
func (m *MAC) UnmarshalText(b []byte) (err error) {
	*m = MAC{}
	if len(b) > 0 {
		*m, err = ParseMAC(string(b))
	}
	return err
}
