package ipam

import (
	"encoding/binary"
	"net/netip"
	"time"
)

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

// decoder reads the compact records. The first field that does not fit sets failed, and all further ones are zero.
type decoder struct {
	b      []byte
	failed bool
}

func (d *decoder) take(n int) []byte {
	if d.failed || n < 0 || n > len(d.b) {
		d.failed = true
		return nil
	}
	part := d.b[:n]
	d.b = d.b[n:]
	return part
}

func (d *decoder) byte() byte {
	if part := d.take(1); part != nil {
		return part[0]
	}
	return 0
}

func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.failed = true
		return 0
	}
	d.take(n)
	return v
}

func (d *decoder) copy(dst []byte) { copy(dst, d.take(len(dst))) }

func (d *decoder) string() string {
	n := d.uvarint()
	if n > uint64(len(d.b)) {
		d.failed = true
		return ""
	}
	return string(d.take(int(n)))
}

func (d *decoder) time() time.Time {
	us := d.uvarint()
	if us == 0 || us > 1<<62 {
		return time.Time{}
	}
	return time.UnixMicro(int64(us)).UTC()
}

// appendAddr writes the 4 or 16 bytes of an address, none for the zero Addr.
func appendAddr(b []byte, a netip.Addr) []byte {
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
	return appendAddr(append(b, byte(a.BitLen()/8)), a)
}

// appendPrefix writes the address and the length of the prefix.
func appendPrefix(b []byte, p netip.Prefix) []byte {
	return append(appendSized(b, p.Addr()), byte(max(p.Bits(), 0)))
}

func (d *decoder) addr() netip.Addr {
	n := d.byte()
	if n == 0 {
		return netip.Addr{}
	}
	a, ok := netip.AddrFromSlice(d.take(int(n)))
	d.failed = d.failed || !ok
	return a
}

func (d *decoder) prefix() netip.Prefix {
	a := d.addr()
	p := netip.PrefixFrom(a, int(d.byte()))
	if a.IsValid() && !p.IsValid() {
		d.failed = true
	}
	if !a.IsValid() {
		return netip.Prefix{}
	}
	return p
}
