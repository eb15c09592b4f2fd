package probe

import (
	"net"
	"net/netip"
	"testing"
)

// TestFrame: the question is what RFC 5227 has it to be, byte by byte.
func TestFrame(t *testing.T) {
	mac := net.HardwareAddr{2, 0, 0, 0, 0, 1}
	want := "\xff\xff\xff\xff\xff\xff\x02\x00\x00\x00\x00\x01\x08\x06" + // to everybody, of us, ARP
		"\x00\x01\x08\x00\x06\x04\x00\x01" + // Ethernet and IPv4, a request
		"\x02\x00\x00\x00\x00\x01\x00\x00\x00\x00" + // of nobody's address
		"\x00\x00\x00\x00\x00\x00\xc0\x00\x02\x01"
	if got := string(probeFrame(mac, netip.MustParseAddr("192.0.2.1"))); got != want {
		t.Errorf("got  %x\nwant %x", got, want)
	}
}
