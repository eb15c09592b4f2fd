package nft

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"strings"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// The tracked connections are read and removed by netlink. The kernel can list only those to one address, because a
// full list grows with everything that the host does. But each list walks the whole table, which is long even if it is
// nearly empty.

// The kernel's messages and attributes (linux/netfilter/nfnetlink_conntrack.h).
const (
	getConnection    = unix.NFNL_SUBSYS_CTNETLINK<<8 | 1
	deleteConnection = unix.NFNL_SUBSYS_CTNETLINK<<8 | 2

	attrOriginal = 1 // CTA_TUPLE_ORIG
	attrReply    = 2 // CTA_TUPLE_REPLY
	attrFilter   = 25
	attrIP       = 1 // CTA_TUPLE_IP
	filterTo     = 1 << 1
)

// ends are the attributes of a direction's two addresses, for each family.
var ends = map[byte]struct{ from, to uint16 }{unix.AF_INET: {1, 2}, unix.AF_INET6: {3, 4}}

// connection is a tracked connection: the request's source and destination, and those of the answer.
type connection struct {
	from, to, answeredBy, answeredTo netip.Addr
	raw                              []byte // identifies it to the kernel
}

// tracked is a netlink socket for connection tracking.
type tracked struct{ conn *netlink.Conn }

func openTracked() (tracked, error) {
	conn, err := netlink.Dial(unix.NETLINK_NETFILTER, nil)
	if err != nil {
		return tracked{}, fmt.Errorf("cannot reach connection tracking by netlink: %w", err)
	}
	_ = conn.SetReadBuffer(sendBuffer) // a smaller buffer is slower
	return tracked{conn}, nil
}

func headOf(family byte) []byte { return []byte{family, unix.NFNETLINK_V0, 0, 0} }

// list returns the connections of a family, or only those whose request goes to an address (attrOriginal) or whose
// answer does (attrReply). Kernels before 5.8 always list all.
func (t tracked) list(family byte, direction uint16, to netip.Addr) ([]connection, error) {
	ae := netlink.NewAttributeEncoder()
	if to.IsValid() {
		ae.Nested(direction, func(tuple *netlink.AttributeEncoder) error {
			tuple.Nested(attrIP, func(ip *netlink.AttributeEncoder) error {
				ip.Bytes(ends[family].to, to.AsSlice())
				return nil
			})
			return nil
		})
		ae.Nested(attrFilter, func(flags *netlink.AttributeEncoder) error {
			flags.Uint32(direction, filterTo)
			return nil
		})
	}
	only, err := ae.Encode()
	if err != nil {
		return nil, err
	}
	answer, err := t.conn.Execute(netlink.Message{
		Header: netlink.Header{Type: getConnection, Flags: netlink.Request | netlink.Dump},
		Data:   append(headOf(family), only...),
	})
	if err != nil {
		return nil, fmt.Errorf("cannot list the connections: %w", err)
	}
	all := make([]connection, 0, len(answer))
	for _, m := range answer {
		one, err := readConnection(family, m.Data)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

// connectionCount returns the number of tracked connections, or 0 if it is unknown.
func connectionCount() int {
	text, err := os.ReadFile("/proc/sys/net/netfilter/nf_conntrack_count")
	if err != nil {
		return 0
	}
	n, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	return n
}

func readConnection(family byte, data []byte) (connection, error) {
	if len(data) < 4 {
		return connection{}, errors.New("the kernel reported a connection without its head")
	}
	one := connection{raw: data[4:]}
	ad, err := netlink.NewAttributeDecoder(one.raw)
	if err != nil {
		return one, err
	}
	for ad.Next() {
		switch ad.Type() {
		case attrOriginal:
			ad.Nested(direction(family, &one.from, &one.to))
		case attrReply:
			ad.Nested(direction(family, &one.answeredBy, &one.answeredTo))
		}
	}
	return one, ad.Err()
}

// direction reads the addresses of a direction.
func direction(family byte, from, to *netip.Addr) func(*netlink.AttributeDecoder) error {
	return func(tuple *netlink.AttributeDecoder) error {
		for tuple.Next() {
			if tuple.Type() != attrIP {
				continue
			}
			tuple.Nested(func(ip *netlink.AttributeDecoder) error {
				for ip.Next() {
					switch ip.Type() {
					case ends[family].from:
						*from, _ = netip.AddrFromSlice(ip.Bytes())
					case ends[family].to:
						*to, _ = netip.AddrFromSlice(ip.Bytes())
					}
				}
				return nil
			})
		}
		return nil
	}
}

// forget removes a connection from the kernel, and reports whether it still existed.
func (t tracked) forget(family byte, one *connection) (bool, error) {
	_, err := t.conn.Execute(netlink.Message{
		Header: netlink.Header{Type: deleteConnection, Flags: netlink.Request | netlink.Acknowledge},
		Data:   append(headOf(family), one.raw...),
	})
	if errors.Is(err, unix.ENOENT) {
		return false, nil
	}
	return err == nil, err
}

func (t tracked) close() error { return t.conn.Close() }
