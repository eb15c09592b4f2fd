package ipam

import (
	"encoding/binary"
	"net/netip"
	"time"
)

// appendString appends the length of a text and then the text.
func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// appendTime stores microseconds. The zero time takes one byte.
func appendTime(b []byte, t time.Time) []byte {
	if t.IsZero() {
		return binary.AppendUvarint(b, 0)
	}
	return binary.AppendUvarint(b, uint64(max(t.UnixMicro(), 1)))
}

// decoder reads compact records. The first field that does not fit sets Failed; all later fields are then zero.
type decoder struct {
	B      []byte
	Failed bool
}

func (d *decoder) take(n int) []byte {
	if d.Failed || n < 0 || n > len(d.B) {
		d.Failed = true
		return nil
	}
	part := d.B[:n]
	d.B = d.B[n:]
	return part
}

// Byte reads one byte.
func (d *decoder) Byte() byte {
	if part := d.take(1); part != nil {
		return part[0]
	}
	return 0
}

func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.B)
	if n <= 0 {
		d.Failed = true
		return 0
	}
	d.take(n)
	return v
}

// Copy reads len(dst) bytes into dst.
func (d *decoder) Copy(dst []byte) { copy(dst, d.take(len(dst))) }

// String reads a text.
func (d *decoder) String() string {
	n := d.uvarint()
	if n > uint64(len(d.B)) {
		d.Failed = true
		return ""
	}
	return string(d.take(int(n)))
}

// skip passes over a text without allocating it.
func (d *decoder) skip() { d.take(int(min(d.uvarint(), uint64(len(d.B))+1))) }

// time reads a time stored in microseconds. It returns the zero time if none was stored.
func (d *decoder) time() time.Time {
	us := d.uvarint()
	if us == 0 || us > 1<<62 {
		return time.Time{}
	}
	return time.UnixMicro(int64(us)).UTC()
}

// AppendAddr writes the 4 or 16 bytes of an address, and nothing for the zero Addr.
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

// appendSized writes the length of an address in bytes, then the address.
func appendSized(b []byte, a netip.Addr) []byte {
	return AppendAddr(append(b, byte(a.BitLen()/8)), a)
}

// appendPrefix writes the sized address, then the prefix length.
func appendPrefix(b []byte, p netip.Prefix) []byte {
	return append(appendSized(b, p.Addr()), byte(max(p.Bits(), 0)))
}

// Addr reads a sized address. It returns the zero Addr if the length is 0.
func (d *decoder) Addr() netip.Addr {
	n := d.Byte()
	if n == 0 {
		return netip.Addr{}
	}
	a, ok := netip.AddrFromSlice(d.take(int(n)))
	d.Failed = d.Failed || !ok
	return a
}

func (d *decoder) prefix() netip.Prefix {
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
