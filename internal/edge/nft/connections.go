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

// The connections that the kernel tracks are read and forgotten by netlink. It can be told to list only those to one
// address: to write down all of them costs more the more everybody else on the host does. But each list is a walk
// through the whole table, which is long where it is nearly empty, too.

// What the kernel calls its messages and attributes (linux/netfilter/nfnetlink_conntrack.h).
const (
	getConnection    = unix.NFNL_SUBSYS_CTNETLINK<<8 | 1
	deleteConnection = unix.NFNL_SUBSYS_CTNETLINK<<8 | 2

	attrOriginal = 1 // CTA_TUPLE_ORIG
	attrReply    = 2 // CTA_TUPLE_REPLY
	attrFilter   = 25
	attrIP       = 1 // CTA_TUPLE_IP
	filterTo     = 1 << 1
)

// ends are the attributes of the two addresses of a direction, for each family.
var ends = map[byte]struct{ from, to uint16 }{unix.AF_INET: {1, 2}, unix.AF_INET6: {3, 4}}

// connection is a tracked one: who asked whom, and who answers to whom.
type connection struct {
	from, to, answeredBy, answeredTo netip.Addr
	raw                              []byte // by which the kernel knows it again
}

// tracked is a socket for the kernel's connections.
type tracked struct{ conn *netlink.Conn }

func openTracked() (tracked, error) {
	conn, err := netlink.Dial(unix.NETLINK_NETFILTER, nil)
	if err != nil {
		return tracked{}, fmt.Errorf("cannot reach connection tracking by netlink: %w", err)
	}
	_ = conn.SetReadBuffer(sendBuffer) // with less of it, it is slower
	return tracked{conn}, nil
}

func headOf(family byte) []byte { return []byte{family, unix.NFNETLINK_V0, 0, 0} }

// list are the connections of a family, or only those that were asked of an address (attrOriginal), or are answered to
// it (attrReply). Kernels before 5.8 list all of them all the same.
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

// connectionCount is how many connections the kernel tracks here; zero where it does not tell.
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
		return connection{}, errors.New("the kernel told of a connection without its head")
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

// direction reads the addresses of one.
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

// forget has the kernel forget a connection, and tells whether it was still there.
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
