package ipam

import (
	"encoding/binary"
	"net/netip"
	"time"
)

// appendString appends a text behind its length.
func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// appendTime keeps microseconds; the zero time is one byte.
func appendTime(b []byte, t time.Time) []byte {
	if t.IsZero() {
		return binary.AppendUvarint(b, 0)
	}
	return binary.AppendUvarint(b, uint64(max(t.UnixMicro(), 1)))
}

// Decoder reads the compact records. The first field that does not fit sets failed, and all further ones are zero.
type Decoder struct {
	B      []byte
	Failed bool
}

func (d *Decoder) take(n int) []byte {
	if d.Failed || n < 0 || n > len(d.B) {
		d.Failed = true
		return nil
	}
	part := d.B[:n]
	d.B = d.B[n:]
	return part
}

// Byte reads one byte.
func (d *Decoder) Byte() byte {
	if part := d.take(1); part != nil {
		return part[0]
	}
	return 0
}

func (d *Decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.B)
	if n <= 0 {
		d.Failed = true
		return 0
	}
	d.take(n)
	return v
}

// Copy reads as many bytes as dst is long.
func (d *Decoder) Copy(dst []byte) { copy(dst, d.take(len(dst))) }

// String reads a text.
func (d *Decoder) String() string {
	n := d.uvarint()
	if n > uint64(len(d.B)) {
		d.Failed = true
		return ""
	}
	return string(d.take(int(n)))
}

// skip passes over a text.
func (d *Decoder) skip() { d.take(int(min(d.uvarint(), uint64(len(d.B))+1))) }

// Time reads a time, in microseconds; the zero time for none.
func (d *Decoder) Time() time.Time {
	us := d.uvarint()
	if us == 0 || us > 1<<62 {
		return time.Time{}
	}
	return time.UnixMicro(int64(us)).UTC()
}

// AppendAddr writes the 4 or 16 bytes of an address, none for the zero Addr.
func AppendAddr(b []byte, a netip.Addr) []byte {
	if a.Is4() {
		raw := a.As4()
		return append(b, raw[:]...)
	}
	if a.Is6() {
		raw := a.As16()
		return append(b, raw[:]...)
	}
	return b
}

// appendSized writes the number of an address's bytes before them.
func appendSized(b []byte, a netip.Addr) []byte {
	return AppendAddr(append(b, byte(a.BitLen()/8)), a)
}

// appendPrefix writes the address and the length of the prefix.
func appendPrefix(b []byte, p netip.Prefix) []byte {
	return append(appendSized(b, p.Addr()), byte(max(p.Bits(), 0)))
}

// Addr reads an address; the zero one for none.
func (d *Decoder) Addr() netip.Addr {
	n := d.Byte()
	if n == 0 {
		return netip.Addr{}
	}
	a, ok := netip.AddrFromSlice(d.take(int(n)))
	d.Failed = d.Failed || !ok
	return a
}

func (d *Decoder) prefix() netip.Prefix {
	a := d.Addr()
	p := netip.PrefixFrom(a, int(d.Byte()))
	if a.IsValid() && !p.IsValid() {
		d.Failed = true
	}
	if !a.IsValid() {
		return netip.Prefix{}
	}
	return p
}
