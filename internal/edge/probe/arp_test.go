package probe

import (
	"net"
	"net/netip"
	"testing"
)

// TestFrame: the probe is, byte by byte, the one of RFC 5227.
func TestFrame(t *testing.T) {
	mac := net.HardwareAddr{2, 0, 0, 0, 0, 1}
	want := "\xff\xff\xff\xff\xff\xff\x02\x00\x00\x00\x00\x01\x08\x06" + // to all, from us, ARP
		"\x00\x01\x08\x00\x06\x04\x00\x01" + // Ethernet and IPv4, a request
		"\x02\x00\x00\x00\x00\x01\x00\x00\x00\x00" + // our MAC, no address
		"\x00\x00\x00\x00\x00\x00\xc0\x00\x02\x01"
	if got := string(probeFrame(mac, netip.MustParseAddr("192.0.2.1"))); got != want {
		t.Errorf("got  %x\nwant %x", got, want)
	}
}
