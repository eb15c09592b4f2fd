package dhcp

import (
	"bytes"
	"net"
	"net/netip"
	"slices"
	"testing"

	"golang.org/x/net/bpf"
)

var hostMAC = net.HardwareAddr{2, 0, 0, 0, 0, 1}

// TestFrame4: the bytes of a DHCP message that is sent.
func TestFrame4(t *testing.T) {
	want := "\xff\xff\xff\xff\xff\xff\x02\x00\x00\x00\x00\x01\x08\x00" + // broadcast, from the parent's MAC
		"\x45\x00\x00\x1f\x00\x00\x00\x00\x40\x11\x7a\xcf\x00\x00\x00\x00\xff\xff\xff\xff" + // from 0.0.0.0
		"\x00\x44\x00\x43\x00\x0b\x3a\xef" + "abc"
	if got := frame4(hostMAC, []byte("abc")); string(got) != want {
		t.Errorf("got  %x\nwant %x", got, want)
	}
}

// TestFrame6: the same for DHCPv6.
func TestFrame6(t *testing.T) {
	want := "\x33\x33\x00\x01\x00\x02\x02\x00\x00\x00\x00\x01\x86\xdd" +
		"\x60\x00\x00\x00\x00\x0b\x11\x40\xfe\x80\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01" +
		"\xff\x02\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x02" +
		"\x02\x22\x02\x23\x00\x0b\x39\xa9" + "abc"
	if got := frame6(hostMAC, netip.MustParseAddr("fe80::1"), []byte("abc")); string(got) != want {
		t.Errorf("got  %x\nwant %x", got, want)
	}
}

// answer4 returns a frame from a server to clients with a message.
func answer4(message []byte) []byte {
	b := frame4(hostMAC, message)
	b[35], b[37] = server4, client4 // the UDP checksum is not checked
	return b
}

func answer6(message []byte) []byte {
	b := frame6(hostMAC, netip.MustParseAddr("fe80::1"), message)
	copy(b[54:], []byte{2, 0x23, 2, 0x22})
	return b
}

// offer4 returns the beginning of an offer, long enough to count as one.
func offer4() []byte {
	message := make([]byte, 300)
	copy(message, []byte{bootReply, 1, 6, 0, 0xde, 0xad, 0xbe, 0xef})
	return message
}

var reply6 = []byte{reply, 0xad, 0xbe, 0xef, 0, 1}

// broken4 returns broken frames, by what is wrong with them.
func broken4() map[string][]byte {
	good := answer4(offer4())
	edit := func(at int, value byte) []byte {
		b := bytes.Clone(good)
		b[at] = value
		if at != 24 && at < 34 && at >= 14 { // correct the header's checksum
			b[24], b[25] = 0, 0
			c := fold(sum(b[14:34]))
			b[24], b[25] = byte(c>>8), byte(c)
		}
		return b
	}
	return map[string][]byte{
		"nothing":              nil,
		"an Ethernet header":   good[:14],
		"cut off":              good[:200],
		"of another protocol":  edit(23, 6),
		"another port":         edit(37, 67),
		"a fragment":           edit(20, 0x20),
		"the rest of one":      edit(21, 1),
		"a damaged header":     edit(24, good[24]+1),
		"a long header":        edit(14, 0x4f),
		"a short header":       edit(14, 0x41),
		"another version":      edit(14, 0x65),
		"longer than it came":  edit(16, 9),
		"shorter than a head":  edit(17, 3),
		"a datagram too long":  edit(38, 9),
		"a datagram too short": edit(39, 3)[:60],
		"no IPv4":              edit(13, 6),
	}
}

func TestReadFrame4(t *testing.T) {
	padded := append(answer4(offer4()), 0, 0, 0, 0)
	d, id, ok := readFrame4(padded)
	if !ok || id != 0xdeadbeef || !bytes.Equal(d.payload, offer4()) || d.from != netip.IPv4Unspecified() {
		t.Errorf("read %x of %s (%v)", id, d.from, ok)
	}
	for name, frame := range broken4() {
		if _, _, ok := readFrame4(frame); ok && name != "a datagram too short" {
			t.Errorf("%s is read", name)
		}
	}
}

func TestReadFrame6(t *testing.T) {
	good := answer6(reply6)
	d, id, ok := readFrame6(append(slices.Clone(good), 0, 0))
	if !ok || id != 0xadbeef || !bytes.Equal(d.payload, reply6) || d.from != netip.MustParseAddr("fe80::1") {
		t.Errorf("read %x of %s (%v)", id, d.from, ok)
	}
	for n := range good {
		if _, _, ok := readFrame6(good[:n]); ok {
			t.Errorf("the first %d bytes are read", n)
		}
	}
}

// TestFilters: the kernel passes on what a server says to clients, and no other LAN traffic.
func TestFilters(t *testing.T) {
	four, six := machine(t, filter4()), machine(t, filter6())
	for name, vm := range map[string]*bpf.VM{"of DHCP": four, "of DHCPv6": six} {
		for what, frame := range map[string][]byte{
			"DHCP": answer4(offer4()), "DHCPv6": answer6(reply6), "a DISCOVER": frame4(hostMAC, offer4()),
			"a SOLICIT": frame6(hostMAC, netip.MustParseAddr("fe80::1"), reply6), "nothing": make([]byte, 64),
			"ARP":      append(append(bytes.Clone(broadcast), hostMAC...), make([]byte, 50)...),
			"a client": answer4(append([]byte{1}, offer4()[1:]...)), "a relay": answer6([]byte{13, 0, 0, 0}),
			"a fragment": broken4()["a fragment"], "the rest of one": broken4()["the rest of one"],
			"TCP": broken4()["of another protocol"], "another port": broken4()["another port"],
		} {
			n, err := vm.Run(frame)
			if err != nil {
				t.Fatal(err)
			}
			if want := what == "DHCP" && vm == four || what == "DHCPv6" && vm == six; (n > 0) != want {
				t.Errorf("the filter %s: %s passes: %t", name, what, n > 0)
			}
		}
	}
	if n, err := six.Run(answer6([]byte{advertise, 0, 0, 0})); err != nil || n == 0 {
		t.Errorf("an ADVERTISE does not pass (%v)", err)
	}
}

// machine returns a virtual machine with the program that the kernel gets.
func machine(t *testing.T, raw []bpf.RawInstruction) *bpf.VM {
	t.Helper()
	program, all := bpf.Disassemble(raw)
	if !all {
		t.Fatal("there are instructions that are none")
	}
	vm, err := bpf.NewVM(program)
	if err != nil {
		t.Fatal(err)
	}
	return vm
}
