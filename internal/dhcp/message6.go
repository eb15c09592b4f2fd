package dhcp

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/netip"
	"time"

	"berth/internal/ipam"

	"github.com/insomniacslk/dhcp/dhcpv6"
	"github.com/insomniacslk/dhcp/iana"
	"github.com/insomniacslk/dhcp/rfc1035label"
)

// iaid is the identity association of each client. A client has only one, so all use the same number (RFC 8415, 12).
var iaid = [4]byte{0, 0, 0, 1}

// duid returns the client's identifier (RFC 8415, 11), which is constant. For a client with an ID it is a DUID-UUID
// (RFC 6355). Its 16 bytes are the first ones of the ID's SHA-256, marked as a UUID of version 8 (RFC 9562, 5.8). Any
// other form contains a foreign number or a time. For a client with only a MAC it is that MAC's DUID-LL, as a host's
// own client makes it.
func duid(c *ipam.LANClient) dhcpv6.DUID {
	if c.ID == "" {
		return &dhcpv6.DUIDLL{HWType: iana.HWTypeEthernet, LinkLayerAddr: c.MAC[:]}
	}
	hash := sha256.Sum256([]byte(c.ID))
	uuid := [16]byte(hash[:16])
	uuid[6] = uuid[6]&0x0f | 8<<4
	uuid[8] = uuid[8]&0x3f | 2<<6
	return &dhcpv6.DUIDUUID{UUID: uuid}
}

// message returns a message of the client, about an address or, for the zero Addr, about any.
func (a *ask6) message(kind dhcpv6.MessageType, addr netip.Addr, options ...dhcpv6.Option) *dhcpv6.Message {
	m := &dhcpv6.Message{MessageType: kind}
	var id [4]byte
	binary.BigEndian.PutUint32(id[:], a.id)
	copy(m.TransactionID[:], id[1:])
	m.AddOption(dhcpv6.OptClientID(duid(&a.Client)))
	for _, o := range options {
		m.AddOption(o)
	}
	m.AddOption(dhcpv6.OptElapsedTime(min(time.Since(a.begun), time.Minute)))
	ia := &dhcpv6.OptIANA{IaId: iaid}
	if addr.IsValid() {
		ia.Options.Add(&dhcpv6.OptIAAddress{IPv6Addr: addr.AsSlice()})
	}
	m.AddOption(ia)
	return m
}

// wanting returns a message that requests an address. It has the client's name (RFC 4704), and the server decides what
// to do with it.
func (a *ask6) wanting(kind dhcpv6.MessageType, addr netip.Addr, options ...dhcpv6.Option) *dhcpv6.Message {
	m := a.message(kind, addr, options...)
	if a.Client.Hostname != "" {
		m.AddOption(&dhcpv6.OptFQDN{DomainName: &rfc1035label.Labels{Labels: []string{a.Client.Hostname}}})
		m.AddOption(dhcpv6.OptRequestedOption(dhcpv6.OptionFQDN))
	}
	return m
}

// heard6 is a message from a server.
type heard6 struct {
	kind   dhcpv6.MessageType
	server dhcpv6.DUID
	leases []ipam.LANLease // with their addresses, without expired ones
	over   []netip.Addr    // expired addresses
	status iana.StatusCode // of the message or of an option in it
	text   string          // of the status
	from   netip.Addr      // the server's address
}

// read reads an answer to the client; false: not one, or an incomplete one.
func (a *ask6) read(d datagram) (h heard6, ok bool) {
	m, err := dhcpv6.MessageFromBytes(d.payload)
	if err != nil || m.MessageType != dhcpv6.MessageTypeAdvertise && m.MessageType != dhcpv6.MessageTypeReply {
		return h, false
	}
	client := m.Options.ClientID()
	h.kind, h.server, h.from = m.MessageType, m.Options.ServerID(), d.from.WithZone("")
	if client == nil || string(client.ToBytes()) != string(duid(&a.Client).ToBytes()) {
		return h, false
	}
	if h.server == nil {
		a.passOver("the DHCPv6 server at " + h.from.String() + " does not say which server it is (option 2)")
		return h, false
	}
	if s := m.Options.Status(); s != nil {
		h.status, h.text = s.StatusCode, s.StatusMessage
	}
	for _, ia := range m.Options.IANA() {
		if ia.IaId != iaid {
			continue
		}
		if s := ia.Options.Status(); s != nil && s.StatusCode != iana.StatusSuccess {
			h.status, h.text = s.StatusCode, s.StatusMessage
		}
		for _, one := range ia.Options.Addresses() {
			if fault := h.add(ia, one); fault != "" {
				a.passOver("the DHCPv6 server at " + h.from.String() + " gives " + fault)
			}
		}
	}
	return h, true
}

// add adds an address of the answer. It returns what is wrong with an address that cannot be used, or nothing.
func (h *heard6) add(ia *dhcpv6.OptIANA, one *dhcpv6.OptIAAddress) (fault string) {
	addr, ok := netip.AddrFromSlice(one.IPv6Addr)
	s := one.Options.Status()
	switch {
	case !ok || !addr.Is6() || addr.Is4In6() || !addr.IsGlobalUnicast():
		return fmt.Sprintf("%s, which is not a host address", addr)
	case s != nil && s.StatusCode != iana.StatusSuccess:
		h.status, h.text = s.StatusCode, s.StatusMessage
		h.over = append(h.over, addr)
	case one.ValidLifetime <= 0:
		h.over = append(h.over, addr)
	case addr == h.from:
		return fmt.Sprintf("%s, which is the server's own address", addr)
	default:
		lease := ipam.LANLease{Address: addr, Server: h.from, ServerID: hex.EncodeToString(h.server.ToBytes())}
		terms(&lease, one.ValidLifetime, ia.T1, ia.T2)
		h.leases = append(h.leases, lease)
	}
	return ""
}

// lease returns the lease of an address, or nil.
func (h *heard6) lease(addr netip.Addr) *ipam.LANLease {
	for i := range h.leases {
		if h.leases[i].Address == addr {
			return &h.leases[i]
		}
	}
	return nil
}

// why returns the server's reason for a negative answer.
func (h *heard6) why() string {
	switch {
	case h.text != "":
		return h.text
	case h.status != iana.StatusSuccess:
		return h.status.String()
	case len(h.leases) > 0:
		return "it gives " + h.leases[0].Address.String() + " instead"
	default:
		return "it gives no address"
	}
}

// serverOf parses the DUID of a server from hexadecimal digits.
func serverOf(id string) (dhcpv6.DUID, error) {
	raw, err := hex.DecodeString(id)
	if err != nil {
		return nil, err
	}
	return dhcpv6.DUIDFromBytes(raw)
}
