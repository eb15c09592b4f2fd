package announce

import (
	"net"
	"net/netip"
	"testing"
)

// TestFrame: an announcement has the right bytes, and ARPSender reads its contents.
func TestFrame(t *testing.T) {
	mac, a := net.HardwareAddr{2, 0, 0, 0, 0, 1}, netip.MustParseAddr("192.0.2.1")
	want := "\xff\xff\xff\xff\xff\xff\x02\x00\x00\x00\x00\x01\x08\x06" + // to all, from us, ARP
		"\x00\x01\x08\x00\x06\x04\x00\x02" + // Ethernet and IPv4, a reply
		"\x02\x00\x00\x00\x00\x01\xc0\x00\x02\x01" + // we have it
		"\xff\xff\xff\xff\xff\xff\xc0\x00\x02\x01"
	if got := string(arpFrame(arpReply, mac, a)); got != want {
		t.Errorf("got  %x\nwant %x", got, want)
	}
	from, said, ok := ARPSender(arpFrame(arpRequest, mac, a))
	if !ok || from.String() != mac.String() || said != a {
		t.Errorf("read as %s at %s (%v)", said, from, ok)
	}
}

// FuzzSender: any frame from the network is read or refused.
func FuzzSender(f *testing.F) {
	f.Add(arpFrame(arpRequest, net.HardwareAddr{2, 0, 0, 0, 0, 1}, netip.MustParseAddr("192.0.2.1")))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, frame []byte) {
		mac, a, ok := ARPSender(frame)
		if ok && (len(mac) != 6 || !a.Is4()) {
			t.Errorf("read as %s at %s", a, mac)
		}
	})
}
