package arp_test

import (
	"net"
	"net/netip"
	"testing"

	"berth/internal/arp"
)

var (
	ours   = net.HardwareAddr{2, 0, 0, 0, 0, 1}
	theirs = net.HardwareAddr{2, 0, 0, 0, 0, 2}
	addr   = netip.MustParseAddr("192.0.2.1")
)

// TestFrames: the frames are right, byte by byte: the probe is the one of RFC 5227.
func TestFrames(t *testing.T) {
	const kind = "\x08\x06\x00\x01\x08\x00\x06\x04" // ARP, for Ethernet and IPv4
	for _, tt := range []struct {
		name string
		got  []byte
		want string
	}{
		{"an announcement as a reply", arp.Announcement(arp.Reply, ours, addr),
			"\xff\xff\xff\xff\xff\xff\x02\x00\x00\x00\x00\x01" + kind + "\x00\x02" +
				"\x02\x00\x00\x00\x00\x01\xc0\x00\x02\x01" + "\xff\xff\xff\xff\xff\xff\xc0\x00\x02\x01"},
		{"an announcement as a request", arp.Announcement(arp.Request, ours, addr),
			"\xff\xff\xff\xff\xff\xff\x02\x00\x00\x00\x00\x01" + kind + "\x00\x01" +
				"\x02\x00\x00\x00\x00\x01\xc0\x00\x02\x01" + "\xff\xff\xff\xff\xff\xff\xc0\x00\x02\x01"},
		{"a probe for all", arp.Probe(arp.Broadcast, ours, addr),
			"\xff\xff\xff\xff\xff\xff\x02\x00\x00\x00\x00\x01" + kind + "\x00\x01" +
				"\x02\x00\x00\x00\x00\x01\x00\x00\x00\x00" + "\x00\x00\x00\x00\x00\x00\xc0\x00\x02\x01"},
		{"a probe for one", arp.Probe(theirs, ours, addr),
			"\x02\x00\x00\x00\x00\x02\x02\x00\x00\x00\x00\x01" + kind + "\x00\x01" +
				"\x02\x00\x00\x00\x00\x01\x00\x00\x00\x00" + "\x00\x00\x00\x00\x00\x00\xc0\x00\x02\x01"},
	} {
		if string(tt.got) != tt.want {
			t.Errorf("%s:\ngot  %x\nwant %x", tt.name, tt.got, tt.want)
		}
	}
}

// TestSender: Sender reads what Announcement wrote.
func TestSender(t *testing.T) {
	from, said, ok := arp.Sender(arp.Announcement(arp.Request, ours, addr))
	if !ok || from.String() != ours.String() || said != addr {
		t.Errorf("read as %s at %s (%v)", said, from, ok)
	}
}

// FuzzSender: any frame from the network is read or refused.
func FuzzSender(f *testing.F) {
	f.Add(arp.Announcement(arp.Request, ours, addr))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, frame []byte) {
		mac, a, ok := arp.Sender(frame)
		if ok && (len(mac) != 6 || !a.Is4()) {
			t.Errorf("read as %s at %s", a, mac)
		}
	})
}
