package dhcp

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"berth/internal/ipam"
	"berth/internal/shorten"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/iana"
)

// message returns a message of the client. It requests a broadcast answer, because nobody has the address yet, and its
// later holder is not this host (lan.md).
func (a *ask4) message(kind dhcpv4.MessageType, options ...dhcpv4.Option) *dhcpv4.DHCPv4 {
	m := &dhcpv4.DHCPv4{OpCode: dhcpv4.OpcodeBootRequest, HWType: iana.HWTypeEthernet, NumSeconds: a.seconds(),
		ClientHWAddr: a.Client.MAC[:], Options: dhcpv4.Options{}}
	binary.BigEndian.PutUint32(m.TransactionID[:], a.id)
	m.SetBroadcast()
	m.UpdateOption(dhcpv4.OptMessageType(kind))
	if a.Client.ID != "" {
		m.UpdateOption(dhcpv4.OptClientIdentifier(append([]byte{0}, a.Client.ID...)))
	}
	for _, o := range options {
		m.UpdateOption(o)
	}
	return m
}

// wanting returns a message that requests an address. It has the client's name and the requested parameters.
func (a *ask4) wanting(kind dhcpv4.MessageType, options ...dhcpv4.Option) *dhcpv4.DHCPv4 {
	m := a.message(kind, options...)
	if a.Client.Hostname != "" {
		m.UpdateOption(dhcpv4.OptHostName(a.Client.Hostname))
	}
	m.UpdateOption(dhcpv4.OptParameterRequestList(dhcpv4.OptionSubnetMask, dhcpv4.OptionRouter,
		dhcpv4.OptionIPAddressLeaseTime, dhcpv4.OptionRenewTimeValue, dhcpv4.OptionRebindingTimeValue))
	return m
}

func wished(addr netip.Addr) dhcpv4.Option { return dhcpv4.OptRequestedIPAddress(addr.AsSlice()) }

func toServer(server netip.Addr) dhcpv4.Option { return dhcpv4.OptServerIdentifier(server.AsSlice()) }

// heard4 is a message from a server.
type heard4 struct {
	kind   dhcpv4.MessageType
	server netip.Addr    // its identifier; zero: none
	lease  ipam.LANLease // of an offer or an ACK
	text   string        // of a NAK
}

// read reads an answer to the client; false: not one, or one that cannot be used. It notes what is wrong with the
// latter.
func (a *ask4) read(d datagram) (h heard4, ok bool) {
	if len(d.payload) < macAt+len(a.Client.MAC) || d.payload[0] != byte(dhcpv4.OpcodeBootReply) ||
		string(d.payload[macAt:macAt+len(a.Client.MAC)]) != string(a.Client.MAC[:]) {
		return h, false
	}
	m, err := dhcpv4.FromBytes(d.payload)
	switch {
	case err != nil:
		a.passOver(fmt.Sprintf("%s sent a message that cannot be read: %s", server4Name(netip.Addr{}, d.from),
			shorten.To(err.Error(), shorten.Most)))
		return h, false
	case string(m.ClientHWAddr) != string(a.Client.MAC[:]):
		return h, false // of a longer address
	}
	h.kind = m.MessageType()
	h.server, _ = address4(m.ServerIdentifier())
	switch h.kind {
	case dhcpv4.MessageTypeNak:
		h.text = m.Message()
		return h, true
	case dhcpv4.MessageTypeOffer, dhcpv4.MessageTypeAck:
	case dhcpv4.MessageTypeNone:
		a.passOver(server4Name(h.server, d.from) + " sent a message without a type (option 53), as BOOTP servers do")
		return h, false
	default:
		return h, false
	}
	h.lease = lease4(m)
	h.lease.Server = h.server
	if fault := fault4(m, &h, d.from); fault != "" {
		a.passOver(server4Name(h.server, d.from) + " " + fault)
		return h, false
	}
	return h, true
}

// macAt is the place of the client's hardware address in a message (RFC 2131, 2).
const macAt = 28

// server4Name names a server by its identifier, or by the address that it answered from.
func server4Name(server, from netip.Addr) string {
	switch {
	case server.IsValid():
		return "the DHCP server " + server.String()
	case from.IsValid():
		return "the DHCP server at " + from.String()
	}
	return "a DHCP server"
}

// fault4 returns what is wrong with an offer or an ACK, or nothing (RFC 2131, 4.3.1 and table 3).
func fault4(m *dhcpv4.DHCPv4, h *heard4, from netip.Addr) string {
	gave := "offered "
	if h.kind == dhcpv4.MessageTypeAck {
		gave = "gave "
	}
	addr := h.lease.Address
	switch {
	case !addr.IsValid():
		return gave + "no address"
	case addr.IsMulticast(), addr.IsLoopback(), addr.As4()[0] == 0, addr.As4()[0] >= 240:
		return gave + addr.String() + ", which is not a host address"
	case addr == h.server, addr == from:
		return gave + addr.String() + ", which is the server's own address"
	case m.GatewayIPAddr.Equal(addr.AsSlice()):
		return gave + addr.String() + ", which is the relay's own address"
	case !h.server.IsValid():
		return gave + addr.String() + " without saying which server it is (option 54)"
	case h.lease.Lasts <= 0:
		return gave + addr.String() + " without a lease time (option 51)"
	}
	return ""
}

// lease4 returns the lease of an offer or an ACK, as far as it has one.
func lease4(m *dhcpv4.DHCPv4) (lease ipam.LANLease) {
	lease.Address, _ = address4(m.YourIPAddr.To4())
	if bits, of := m.SubnetMask().Size(); lease.Address.IsValid() && bits > 0 && of == 32 {
		lease.Subnet = netip.PrefixFrom(lease.Address, bits).Masked() // an empty mask, or one with gaps, is none
	}
	if routers := m.Options.Get(dhcpv4.OptionRouter); len(routers) >= 4 {
		lease.Gateway, _ = address4(routers[:4])
	}
	terms(&lease, m.IPAddressLeaseTime(0), m.IPAddressRenewalTime(0), m.IPAddressRebindingTime(0))
	return lease
}

// address4 returns an address of four bytes; false: invalid, or 0.0.0.0.
func address4(b []byte) (netip.Addr, bool) {
	if len(b) != 4 {
		return netip.Addr{}, false
	}
	addr := netip.AddrFrom4([4]byte(b))
	if addr.IsUnspecified() {
		return netip.Addr{}, false
	}
	return addr, true
}
