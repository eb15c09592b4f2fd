package dhcp

import (
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"

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

// said describes a lease.
func said(l *ipam.LANLease) string {
	text := strings.Fields(fmt.Sprintln(l.Address, l.Subnet, l.Gateway, l.Server, l.ServerID, l.Lasts, l.T1, l.T2))
	return strings.NewReplacer("invalid Prefix", "-", "invalid IP", "-").Replace(strings.Join(text, " "))
}

// bytesOf reads bytes in decimal, such as 192.0.2.1.
func bytesOf(t *testing.T, text string) (all []byte) {
	t.Helper()
	for part := range strings.SplitSeq(text, ".") {
		n, err := strconv.ParseUint(part, 10, 8)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, byte(n))
	}
	return all
}

// TestRead4: which server messages count, and what of them. A message is an ACK by 192.0.2.1 of 192.0.2.7 for 100 s,
// with these options by number, or without one ("54=-"), and with another operation, address or client.
func TestRead4(t *testing.T) {
	for c := range ipamtest.Rows(3, strings.ReplaceAll(`
		one that says little | | LITTLE
		one that says all | 1=255.255.255.0 3=192.0.2.3.192.0.2.4 58=0.0.0.10 59=0.0.0.20 | 192.0.2.7 192.0.2.0/24 192.0.2.3 192.0.2.1 1m40s 10s 20s
		a mask with gaps | 1=255.0.255.0 | LITTLE
		a mask of nothing | 1=0.0.0.0 | LITTLE
		half a mask | 1=255.255 | LITTLE
		half a router | 3=192 | LITTLE
		times in no order | 58=0.0.0.99 59=0.0.0.80 | 192.0.2.7 - - 192.0.2.1 1m40s 50s 1m20s
		times behind the end | 58=1.0.0.0 59=1.0.0.0 | LITTLE
		for ever | 51=255.255.255.255 | 192.0.2.7 - - 192.0.2.1 1193046h28m15s 596523h14m7.5s 1043915h39m43.125s
		no address | address=0.0.0.0
		everybody's address | address=255.255.255.255
		a group's address | address=224.0.0.1
		no time | 51=0.0.0.0
		half a time | 51=1
		no server | 54=-
		another client's | client=2.66.0.0.0.8
		a longer MAC | client=2.66.0.0.0.7.0
		a client's own | operation=1
		a DISCOVER | 53=1
		one of BOOTP | 53=-
	`, "LITTLE", "192.0.2.7 - - 192.0.2.1 1m40s 50s 1m27.5s")) {
		h, ok := asked4(web).read(datagram{payload: altered4(t, c[1])})
		if ok != (c[2] != "") || ok && said(&h.lease) != c[2] {
			t.Errorf("%s counts: %t, and is %s\nand not %s", c[0], ok, said(&h.lease), c[2])
		}
	}
	m := ack4()
	m.UpdateOption(dhcpv4.OptMessageType(dhcpv4.MessageTypeNak))
	m.UpdateOption(dhcpv4.OptMessage("go away"))
	m.YourIPAddr = net.IP{0, 0, 0, 0}
	if no, ok := asked4(web).read(datagram{payload: m.ToBytes()}); !ok || no.kind != dhcpv4.MessageTypeNak ||
		no.text != "go away" {
		t.Errorf("a NAK is %+v (%v)", no, ok)
	}
}

// altered4 is ack4 with other options by number, or without one ("54=-"), and with another operation, address, relay or
// client.
func altered4(t *testing.T, words string) []byte {
	t.Helper()
	m := ack4()
	for word := range strings.FieldsSeq(words) {
		key, value, _ := strings.Cut(word, "=")
		switch code, _ := strconv.Atoi(key); {
		case key == "operation":
			m.OpCode = dhcpv4.OpcodeBootRequest
		case key == "address":
			m.YourIPAddr = bytesOf(t, value)
		case key == "relay":
			m.GatewayIPAddr = bytesOf(t, value)
		case key == "client":
			m.ClientHWAddr = bytesOf(t, value)
		case value == "-":
			delete(m.Options, uint8(code))
		default:
			m.Options[uint8(code)] = bytesOf(t, value)
		}
	}
	return m.ToBytes()
}

// TestFaults4: an answer that breaks a rule is passed over. The error has the server, what it offered and the rule. A
// message that is none of the client's is not mentioned.
func TestFaults4(t *testing.T) {
	for c := range ipamtest.Rows(3, `
		a good one |
		no address | address=0.0.0.0 | the DHCP server 192.0.2.1 gave no address
		everybody's address | address=255.255.255.255 | the DHCP server 192.0.2.1 gave 255.255.255.255, which is not a host address
		a group's address | address=224.0.0.1 | the DHCP server 192.0.2.1 gave 224.0.0.1, which is not a host address
		a reserved address | address=240.0.0.1 | the DHCP server 192.0.2.1 gave 240.0.0.1, which is not a host address
		the host itself | address=127.0.0.1 | the DHCP server 192.0.2.1 gave 127.0.0.1, which is not a host address
		this network | address=0.0.0.7 | the DHCP server 192.0.2.1 gave 0.0.0.7, which is not a host address
		the server's own | address=192.0.2.1 | the DHCP server 192.0.2.1 gave 192.0.2.1, which is the server's own address
		the server's other one | address=192.0.2.3 | the DHCP server 192.0.2.1 gave 192.0.2.3, which is the server's own address
		the relay's | address=192.0.2.4 relay=192.0.2.4 | the DHCP server 192.0.2.1 gave 192.0.2.4, which is the relay's own address
		an offer | address=192.0.2.1 53=2 | the DHCP server 192.0.2.1 offered 192.0.2.1, which is the server's own address
		no time | 51=0.0.0.0 | the DHCP server 192.0.2.1 gave 192.0.2.7 without a lease time (option 51)
		half a time | 51=1 | the DHCP server 192.0.2.1 gave 192.0.2.7 without a lease time (option 51)
		no server | 54=- | the DHCP server at 192.0.2.3 gave 192.0.2.7 without saying which server it is (option 54)
		one of BOOTP | 53=- | the DHCP server 192.0.2.1 sent a message without a type (option 53), as BOOTP servers do
		another client's | client=2.66.0.0.0.8 address=192.0.2.1
		a client's own | operation=1 address=192.0.2.1
		a DISCOVER | 53=1
	`) {
		a := asked4(web)
		_, ok := a.read(datagram{altered4(t, c[1]), netip.MustParseAddr("192.0.2.3")})
		if got := strings.Join(a.faults, "; "); got != c[2] || ok && got != "" {
			t.Errorf("%s: %q, and not %q", c[0], got, c[2])
		}
	}
	a := asked4(web)
	a.read(datagram{append(altered4(t, "")[:240], 51, 200, 1), netip.MustParseAddr("192.0.2.3")})
	const unread = "the DHCP server at 192.0.2.3 sent a message that cannot be read"
	if len(a.faults) != 1 || !strings.HasPrefix(a.faults[0], unread) {
		t.Errorf("a broken message is %q", a.faults)
	}
}

// A question whose answers are all wrong does not end as one without an answer.
func TestFaultsAreNoSilence(t *testing.T) {
	a := asked4(web)
	for range 9 {
		for _, words := range []string{"51=0.0.0.0", "54=-", "address=192.0.2.1", "53=-", "address=0.0.0.0"} {
			a.read(datagram{payload: altered4(t, words)})
		}
	}
	err := a.silent(&a.LANAsk, "no DHCP server answered")
	want := "on the interface eth0, the DHCP server 192.0.2.1 gave 192.0.2.7 without a lease time (option 51); a DHCP server " +
		"gave 192.0.2.7 without saying which server it is (option 54); the DHCP server 192.0.2.1 gave 192.0.2.1, which " +
		"is the server's own address"
	var f *failure
	if !errors.As(err, &f) || f.kind != ipam.LANWrong || f.text != want {
		t.Errorf("%v", err)
	}
}

// An address that the host itself has is declined, in both families.
func TestHostsOwn(t *testing.T) {
	has := func() map[netip.Addr]string {
		return map[netip.Addr]string{netip.MustParseAddr("192.0.2.7"): "eth1", netip.MustParseAddr("2001:db8::7"): "eth1"}
	}
	at := &station{place: place{parent: "none"}, addresses: has}
	four, six := asked4(web), asked6(web)
	four.exchange.station, six.exchange.station = at, at
	for _, c := range []struct {
		addr  string
		check func(*ipam.LANLease) error
		own   bool
	}{
		{"192.0.2.7", four.ofHost, true},
		{"192.0.2.8", four.ofHost, false},
		{"2001:db8::7", six.ofHost, true},
		{"2001:db8::8", six.ofHost, false},
	} {
		lease := &ipam.LANLease{Address: netip.MustParseAddr(c.addr), Server: netip.MustParseAddr("192.0.2.1")}
		err := c.check(lease)
		var f *failure
		switch is := errors.As(err, &f); {
		case is != c.own:
			t.Errorf("%s: %v", c.addr, err)
		case is && (f.kind != ipam.LANWrong || f.lease != lease ||
			!strings.Contains(f.text, c.addr+", which this host itself has on eth1")):
			t.Errorf("%s: %s: %s", c.addr, f.kind, f.text)
		}
	}
}

// TestTerms: the times of a lease are in order, whatever the server sends.
func TestTerms(t *testing.T) {
	const second, forever = time.Second, (1<<32 - 1) * time.Second
	for _, c := range []struct {
		name           string
		lasts, t1, t2  time.Duration
		wantT1, wantT2 time.Duration
	}{
		{"none sent", 80 * second, 0, 0, 40 * second, 70 * second},
		{"as sent", 100 * second, 10 * second, 20 * second, 10 * second, 20 * second},
		{"a second", second, 0, 0, second / 2, second / 8 * 7},
		{"a second, all of a second", second, second, second, second / 2, second / 8 * 7},
		{"two seconds, renewed after one", 2 * second, second, 2 * second, second, 2 * second / 8 * 7},
		{"T1 of zero", 100 * second, 0, 80 * second, 50 * second, 80 * second},
		{"T2 of zero", 100 * second, 10 * second, 0, 10 * second, 100 * second / 8 * 7},
		{"T1 after T2", 100 * second, 90 * second, 80 * second, 50 * second, 80 * second},
		{"T1 at T2", 100 * second, 80 * second, 80 * second, 50 * second, 80 * second},
		{"an early T2", 100 * second, 50 * second, 7 * second, 4 * second, 7 * second},
		{"T1 after T2 after the end", 100 * second, 300 * second, 200 * second, 50 * second, 100 * second / 8 * 7},
		{"T2 at the end", 100 * second, 50 * second, 100 * second, 50 * second, 100 * second / 8 * 7},
		{"for ever", forever, 0, 0, forever / 2, forever / 8 * 7},
		{"for ever, and never renewed", forever, forever, forever, forever / 2, forever / 8 * 7},
		{"for ever, and renewed", forever, 10 * second, 20 * second, 10 * second, 20 * second},
		{"a time, and never renewed", 100 * second, forever, forever, 50 * second, 100 * second / 8 * 7},
	} {
		var got ipam.LANLease
		terms(&got, c.lasts, c.t1, c.t2)
		want := ipam.LANLease{Lasts: ipam.Duration(c.lasts), T1: ipam.Duration(c.wantT1), T2: ipam.Duration(c.wantT2)}
		if got != want {
			t.Errorf("%s: renewed after %s and %s, and not %s and %s", c.name, time.Duration(got.T1),
				time.Duration(got.T2), c.wantT1, c.wantT2)
		}
	}
}

// ack4 is a server's ACK.
func ack4() *dhcpv4.DHCPv4 {
	return &dhcpv4.DHCPv4{OpCode: dhcpv4.OpcodeBootReply, HWType: iana.HWTypeEthernet, ClientHWAddr: web.MAC[:],
		YourIPAddr: net.IP{192, 0, 2, 7}, Options: dhcpv4.Options{51: {0, 0, 0, 100}, 53: {5}, 54: {192, 0, 2, 1}}}
}

// TestRead6: which server messages count, and what of them: how many leases and expired addresses, and why none is
// given. A message is for one address and a minute, unless it says otherwise.
func TestRead6(t *testing.T) {
	for c := range ipamtest.Rows(4, `
		an address | 2001:db8::7 | 1 0 | it gives 2001:db8::7 instead
		the server's own | 2001:db8::1 | 0 0 | it gives no address
		one that is over | 2001:db8::7 over | 0 1 | it gives no address
		none | none | 0 0 | NoAddrsAvail
		none, with a word | none gone | 0 0 | gone
		a link-local one | fe80::7 | 0 0 | it gives no address
		a mapped one | ::ffff:192.0.2.1 | 0 0 | it gives no address
		a group's | ff02::1 | 0 0 | it gives no address
		another association's | 2001:db8::7 other-association | 0 0 | it gives no address
		another client's | 2001:db8::7 other-client
		nobody's | 2001:db8::7 no-client
	`) {
		what, besides, _ := strings.Cut(c[1], " ")
		m := &dhcpv6.Message{MessageType: dhcpv6.MessageTypeReply}
		switch besides {
		case "no-client":
		case "other-client":
			m.AddOption(dhcpv6.OptClientID(duid(&unnamed)))
		default:
			m.AddOption(dhcpv6.OptClientID(duid(&web)))
		}
		m.AddOption(dhcpv6.OptServerID(&dhcpv6.DUIDLL{HWType: iana.HWTypeEthernet,
			LinkLayerAddr: net.HardwareAddr{2, 0, 0, 0, 0, 9}}))
		ia := &dhcpv6.OptIANA{IaId: iaid, T1: 10 * time.Second, T2: 20 * time.Second}
		if what == "none" {
			ia.Options.Add(&dhcpv6.OptStatusCode{StatusCode: iana.StatusNoAddrsAvail, StatusMessage: besides})
		} else {
			lasts := time.Minute
			if besides == "over" {
				lasts = 0
			}
			ia.Options.Add(&dhcpv6.OptIAAddress{IPv6Addr: netip.MustParseAddr(what).AsSlice(), ValidLifetime: lasts})
		}
		if besides == "other-association" {
			ia.IaId = [4]byte{9}
		}
		m.AddOption(ia)
		a := asked6(web)
		from := netip.MustParseAddr("fe80::1")
		if c[0] == "the server's own" {
			from = netip.MustParseAddr(what)
		}
		h, ok := a.read(datagram{m.ToBytes(), from})
		unusable := strings.HasSuffix(c[3], "it gives no address") && besides == ""
		if (len(a.faults) > 0) != unusable || unusable && !strings.Contains(a.faults[0], what) {
			t.Errorf("%s: the faults are %q", c[0], a.faults)
		}
		got := fmt.Sprint(len(h.leases), " ", len(h.over))
		if ok != (c[2] != "") || ok && (got != c[2] || h.why() != c[3]) {
			t.Errorf("%s counts: %t, with %s (%s)", c[0], ok, got, h.why())
		}
		for i := range h.leases {
			const want = "2001:db8::7 - - fe80::1 00030001020000000009 1m 10s 20s"
			if got := said(&h.leases[i]); got != want {
				t.Errorf("%s is %s\nand not %s", c[0], got, want)
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
