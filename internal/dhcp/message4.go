package dhcp

import (
	"encoding/binary"
	"net/netip"

	"berth/internal/ipam"

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

// read reads an answer to the client; false: not one, or an incomplete one.
func (a *ask4) read(d datagram) (h heard4, ok bool) {
	m, err := dhcpv4.FromBytes(d.payload)
	if err != nil || m.OpCode != dhcpv4.OpcodeBootReply || string(m.ClientHWAddr) != string(a.Client.MAC[:]) {
		return h, false
	}
	h.kind = m.MessageType()
	h.server, _ = address4(m.ServerIdentifier())
	switch h.kind {
	case dhcpv4.MessageTypeNak:
		h.text = m.Message()
		return h, true
	case dhcpv4.MessageTypeOffer, dhcpv4.MessageTypeAck:
		h.lease, ok = lease4(m)
		h.lease.Server = h.server
		return h, ok && h.server.IsValid()
	default:
		return h, false
	}
}

// lease4 returns the lease of an offer or an ACK; false: no usable one.
func lease4(m *dhcpv4.DHCPv4) (lease ipam.LANLease, ok bool) {
	lease.Address, ok = address4(m.YourIPAddr.To4())
	lasts := m.IPAddressLeaseTime(0)
	if !ok || lasts <= 0 || lease.Address.IsMulticast() || lease.Address.IsLoopback() ||
		lease.Address == netip.AddrFrom4([4]byte{255, 255, 255, 255}) {
		return lease, false
	}
	if bits, of := m.SubnetMask().Size(); bits > 0 && of == 32 { // an empty mask, or one with gaps, is none
		lease.Subnet = netip.PrefixFrom(lease.Address, bits).Masked()
	}
	if routers := m.Options.Get(dhcpv4.OptionRouter); len(routers) >= 4 {
		lease.Gateway, _ = address4(routers[:4])
	}
	terms(&lease, lasts, m.IPAddressRenewalTime(0), m.IPAddressRebindingTime(0))
	return lease, true
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
