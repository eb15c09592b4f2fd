package dhcp

import (
	"encoding/hex"
	"net"
	"net/netip"
	"testing"
	"time"

	"berth/internal/ipam"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/dhcpv6"
	"github.com/insomniacslk/dhcp/iana"
)

var (
	web     = ipam.LANClient{ID: "berth:shop/web/1", Hostname: "shop-web-1", MAC: ipam.MAC{2, 0x42, 0, 0, 0, 7}}
	unnamed = ipam.LANClient{MAC: web.MAC}
)

func asked4(c ipam.LANClient) *ask4 {
	return &ask4{LANAsk: ipam.LANAsk{Client: c, Parent: "eth0"}, exchange: &exchange{id: 0xdeadbeef, begun: time.Now()}}
}

func asked6(c ipam.LANClient) *ask6 {
	return &ask6{LANAsk: ipam.LANAsk{Client: c, Parent: "eth0", IPv6: true},
		exchange: &exchange{id: 0xadbeef, begun: time.Now()}}
}

// TestMessage4: what a server sees of a client.
func TestMessage4(t *testing.T) {
	m, err := dhcpv4.FromBytes(asked4(web).wanting(dhcpv4.MessageTypeDiscover).ToBytes())
	if err != nil {
		t.Fatal(err)
	}
	if !m.IsBroadcast() || m.ClientHWAddr.String() != web.MAC.String() || m.HostName() != web.Hostname ||
		m.TransactionID != (dhcpv4.TransactionID{0xde, 0xad, 0xbe, 0xef}) ||
		string(m.Options.Get(dhcpv4.OptionClientIdentifier)) != "\x00berth:shop/web/1" {
		t.Errorf("it says %s", m.Summary())
	}
	m = asked4(unnamed).wanting(dhcpv4.MessageTypeDiscover)
	if m.Options.Has(dhcpv4.OptionClientIdentifier) || m.Options.Has(dhcpv4.OptionHostName) {
		t.Errorf("one who is known by his MAC says %s", m.Summary())
	}
}

// TestDUID: the DUID of a client never changes, since servers keep leases by it.
func TestDUID(t *testing.T) {
	for _, c := range []struct {
		client ipam.LANClient
		want   string
	}{
		{web, "000410a00aa1647183d7ba1e817f1e74d0e1"},
		{unnamed, "00030001024200000007"},
	} {
		if got := hex.EncodeToString(duid(&c.client).ToBytes()); got != c.want {
			t.Errorf("of %+v it is %s, and not %s", c.client, got, c.want)
		}
	}
}

// TestRead4: which server messages count, and what of them.
func TestRead4(t *testing.T) {
	good := func(edit ...dhcpv4.Modifier) []byte {
		m, err := dhcpv4.New(append([]dhcpv4.Modifier{dhcpv4.WithMessageType(dhcpv4.MessageTypeAck),
			dhcpv4.WithYourIP(net.IP{192, 0, 2, 7}), dhcpv4.WithLeaseTime(100),
			dhcpv4.WithOption(dhcpv4.OptServerIdentifier(net.IP{192, 0, 2, 1})),
			dhcpv4.WithHwAddr(web.MAC[:])}, edit...)...)
		if err != nil {
			t.Fatal(err)
		}
		m.OpCode = dhcpv4.OpcodeBootReply
		for _, e := range edit {
			e(m)
		}
		return m.ToBytes()
	}
	generic := func(code uint8, value ...byte) dhcpv4.Modifier {
		return dhcpv4.WithGeneric(dhcpv4.GenericOptionCode(code), value)
	}
	lease := ipam.LANLease{Address: netip.MustParseAddr("192.0.2.7"), Server: netip.MustParseAddr("192.0.2.1"),
		Lasts: ipam.Duration(100 * time.Second), T1: ipam.Duration(50 * time.Second),
		T2: ipam.Duration(87500 * time.Millisecond)}
	told := func(edit func(*ipam.LANLease)) *ipam.LANLease {
		l := lease
		edit(&l)
		return &l
	}
	for _, c := range []struct {
		name  string
		bytes []byte
		want  *ipam.LANLease // nil: it does not count
	}{
		{"one that says little", good(), &lease},
		{"one that says all", good(generic(1, 255, 255, 255, 0), generic(3, 192, 0, 2, 3, 192, 0, 2, 4),
			generic(58, 0, 0, 0, 10), generic(59, 0, 0, 0, 20)), told(func(l *ipam.LANLease) {
			l.Subnet, l.Gateway = netip.MustParsePrefix("192.0.2.0/24"), netip.MustParseAddr("192.0.2.3")
			l.T1, l.T2 = ipam.Duration(10*time.Second), ipam.Duration(20*time.Second)
		})},
		{"a mask with gaps", good(generic(1, 255, 0, 255, 0)), &lease},
		{"a mask of nothing", good(generic(1, 0, 0, 0, 0)), &lease},
		{"half a mask", good(generic(1, 255, 255)), &lease},
		{"half a router", good(generic(3, 192)), &lease},
		{"times in no order", good(generic(58, 0, 0, 0, 99), generic(59, 0, 0, 0, 80)),
			told(func(l *ipam.LANLease) { l.T2 = ipam.Duration(80 * time.Second) })},
		{"times behind the end", good(generic(58, 1, 0, 0, 0), generic(59, 1, 0, 0, 0)), &lease},
		{"for ever", good(dhcpv4.WithLeaseTime(1<<32 - 1)), told(func(l *ipam.LANLease) {
			ever := time.Duration(1<<32-1) * time.Second
			l.Lasts, l.T1, l.T2 = ipam.Duration(ever), ipam.Duration(ever/2), ipam.Duration(ever/8*7)
		})},
		{"no address", good(dhcpv4.WithYourIP(net.IP{0, 0, 0, 0})), nil},
		{"everybody's address", good(dhcpv4.WithYourIP(net.IP{255, 255, 255, 255})), nil},
		{"a group's address", good(dhcpv4.WithYourIP(net.IP{224, 0, 0, 1})), nil},
		{"no time", good(dhcpv4.WithLeaseTime(0)), nil},
		{"half a time", good(generic(51, 1)), nil},
		{"no server", good(dhcpv4.WithoutOption(dhcpv4.OptionServerIdentifier)), nil},
		{"another client's", good(dhcpv4.WithHwAddr(net.HardwareAddr{2, 0x42, 0, 0, 0, 8})), nil},
		{"a longer MAC", good(dhcpv4.WithHwAddr(append(web.MAC[:], 0))), nil},
		{"a client's own", good(func(m *dhcpv4.DHCPv4) { m.OpCode = dhcpv4.OpcodeBootRequest }), nil},
		{"a DISCOVER", good(dhcpv4.WithMessageType(dhcpv4.MessageTypeDiscover)), nil},
		{"one of BOOTP", good(dhcpv4.WithoutOption(dhcpv4.OptionDHCPMessageType)), nil},
	} {
		h, ok := asked4(web).read(datagram{payload: c.bytes})
		switch {
		case ok != (c.want != nil):
			t.Errorf("%s counts: %t", c.name, ok)
		case ok && h.lease != *c.want:
			t.Errorf("%s is %+v\nand not %+v", c.name, h.lease, *c.want)
		}
	}
	no, ok := asked4(web).read(datagram{payload: good(dhcpv4.WithMessageType(dhcpv4.MessageTypeNak),
		dhcpv4.WithOption(dhcpv4.OptMessage("go away")), dhcpv4.WithYourIP(net.IP{0, 0, 0, 0}))})
	if !ok || no.kind != dhcpv4.MessageTypeNak || no.text != "go away" {
		t.Errorf("a NAK is %+v (%v)", no, ok)
	}
}

// TestRead6: which server messages count, and what of them.
func TestRead6(t *testing.T) {
	server := &dhcpv6.DUIDLL{HWType: iana.HWTypeEthernet, LinkLayerAddr: net.HardwareAddr{2, 0, 0, 0, 0, 9}}
	address := func(a string, lasts time.Duration) *dhcpv6.OptIAAddress {
		return &dhcpv6.OptIAAddress{IPv6Addr: netip.MustParseAddr(a).AsSlice(), ValidLifetime: lasts}
	}
	message := func(client dhcpv6.DUID, id [4]byte, of ...dhcpv6.Option) []byte {
		m := &dhcpv6.Message{MessageType: dhcpv6.MessageTypeReply}
		if client != nil {
			m.AddOption(dhcpv6.OptClientID(client))
		}
		m.AddOption(dhcpv6.OptServerID(server))
		ia := &dhcpv6.OptIANA{IaId: id, T1: 10 * time.Second, T2: 20 * time.Second}
		for _, o := range of {
			ia.Options.Add(o)
		}
		m.AddOption(ia)
		return m.ToBytes()
	}
	own := duid(&web)
	for _, c := range []struct {
		name   string
		bytes  []byte
		counts bool
		leases int
		over   int
		why    string
	}{
		{"an address", message(own, iaid, address("2001:db8::7", time.Minute)), true, 1, 0,
			"it gives 2001:db8::7 instead"},
		{"one that is over", message(own, iaid, address("2001:db8::7", 0)), true, 0, 1, "it gives no address"},
		{"none", message(own, iaid, &dhcpv6.OptStatusCode{StatusCode: iana.StatusNoAddrsAvail}), true, 0, 0,
			"NoAddrsAvail"},
		{"none, with a word", message(own, iaid, &dhcpv6.OptStatusCode{StatusCode: iana.StatusNoAddrsAvail,
			StatusMessage: "all gone"}), true, 0, 0, "all gone"},
		{"a link-local one", message(own, iaid, address("fe80::7", time.Minute)), true, 0, 0, "it gives no address"},
		{"a mapped one", message(own, iaid, address("::ffff:192.0.2.1", time.Minute)), true, 0, 0,
			"it gives no address"},
		{"a group's", message(own, iaid, address("ff02::1", time.Minute)), true, 0, 0, "it gives no address"},
		{"another association's", message(own, [4]byte{9}, address("2001:db8::7", time.Minute)), true, 0, 0,
			"it gives no address"},
		{"another client's", message(duid(&unnamed), iaid, address("2001:db8::7", time.Minute)), false, 0, 0, ""},
		{"nobody's", message(nil, iaid, address("2001:db8::7", time.Minute)), false, 0, 0, ""},
	} {
		h, ok := asked6(web).read(datagram{c.bytes, netip.MustParseAddr("fe80::1")})
		if ok != c.counts || len(h.leases) != c.leases || len(h.over) != c.over || ok && h.why() != c.why {
			t.Errorf("%s counts: %t, with %d addresses, %d that are over (%s)", c.name, ok, len(h.leases),
				len(h.over), h.why())
		}
		for _, l := range h.leases {
			want := ipam.LANLease{Address: netip.MustParseAddr("2001:db8::7"), Server: netip.MustParseAddr("fe80::1"),
				ServerID: "00030001020000000009", Lasts: ipam.Duration(time.Minute),
				T1: ipam.Duration(10 * time.Second), T2: ipam.Duration(20 * time.Second)}
			if l != want {
				t.Errorf("%s is %+v\nand not %+v", c.name, l, want)
			}
		}
	}
}

// FuzzReceive: anything from a LAN is understood or skipped, in frames and as messages of either family.
func FuzzReceive(f *testing.F) {
	ack := asked4(web).message(dhcpv4.MessageTypeAck, toServer(netip.MustParseAddr("192.0.2.1")),
		dhcpv4.OptIPAddressLeaseTime(time.Hour), dhcpv4.OptSubnetMask(net.IPMask{255, 255, 255, 0}))
	ack.OpCode, ack.YourIPAddr = dhcpv4.OpcodeBootReply, net.IP{192, 0, 2, 7}
	f.Add(answer4(ack.ToBytes()), false)
	given := asked6(web).message(dhcpv6.MessageTypeReply, netip.MustParseAddr("2001:db8::7"),
		dhcpv6.OptServerID(duid(&unnamed)), &dhcpv6.OptStatusCode{StatusMessage: "yours"})
	given.Options.OneIANA().Options.OneAddress().ValidLifetime = time.Hour
	f.Add(answer6(given.ToBytes()), true)
	f.Fuzz(func(t *testing.T, frame []byte, ipv6 bool) {
		s := newStation(place{"eth0", ipv6})
		x := &exchange{station: s, id: 0xdeadbeef, heard: make(chan datagram, 1)}
		if ipv6 {
			x.id = 0xadbeef
		}
		s.under[x.id] = x
		s.deliver(frame)
		d := datagram{payload: frame} // also if no frame brings it
		select {
		case d = <-x.heard:
		default:
		}
		if h, ok := asked4(web).read(d); ok && h.kind != dhcpv4.MessageTypeNak {
			checkHeard(t, h.lease)
		}
		h, _ := asked6(web).read(d)
		for _, l := range h.leases {
			checkHeard(t, l)
			server, err := serverOf(l.ServerID)
			if err != nil || string(server.ToBytes()) != string(h.server.ToBytes()) {
				t.Errorf("the server %s is not read as it was written (%v)", l.ServerID, err)
			}
		}
	})
}

// checkHeard checks that a lease that was understood can be kept.
func checkHeard(t *testing.T, l ipam.LANLease) {
	if !l.Address.IsValid() || l.Address.IsUnspecified() || l.Address.IsMulticast() || l.Lasts <= 0 || l.T1 <= 0 ||
		l.T2 < l.T1 || l.Lasts < l.T2 || l.Address.Is4() && !l.Server.Is4() ||
		l.Subnet.IsValid() && !l.Subnet.Contains(l.Address) {
		t.Errorf("understood as %+v", l)
	}
}
