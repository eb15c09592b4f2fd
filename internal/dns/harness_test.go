package dns

import (
	"context"
	"io"
	"iter"
	"net/netip"
	"strings"
	"testing"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"

	"github.com/miekg/dns"
	"github.com/sirupsen/logrus"
	"go.uber.org/goleak"
	"go4.org/netipx"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var must = ipamtest.Must

// stopped is a clock that stands still.
func stopped() time.Time { return time.Unix(1_800_000_000, 0) }

// id returns the id of a number.
func id(n byte) ipam.ID { return ipam.ID{15: n} }

// network returns the range of a subnet.
func network(n byte, name, cidr string) ipam.NamedRange {
	return ipam.NamedRange{ID: id(n), Space: "local", Network: name, NetworkID: id(100 + n),
		Range: ipam.Range{IPRange: netipx.RangeOfPrefix(netip.MustParsePrefix(cidr))}}
}

// of returns an address in use; with a star before the owner, it is reserved and not in use.
func of(n byte, addr, owner string) ipam.NamedAddress {
	name, idle := strings.CutPrefix(owner, "*")
	return ipam.NamedAddress{In: id(n), Address: netip.MustParseAddr(addr), Owner: name, Held: !idle}
}

// told returns an index that got some news.
func told(news ...ipam.NameNews) *Index {
	x := New("lan.example", stopped)
	news[0].Whole = true
	for i := range news {
		x.Apply(&news[i])
	}
	return x
}

// sample has two networks, a reverse range for elastic addresses, and owners in them.
func sample() ipam.NameNews {
	pool := network(9, "", "203.0.113.0/29")
	pool.Network, pool.Space, pool.NetworkID, pool.Elastic = "", "", ipam.ID{}, true
	return ipam.NameNews{Ranges: []ipam.NamedRange{network(1, "home", "192.0.2.0/24"), network(2, "back", "10.20.0.0/20"),
		network(3, "home", "2001:db8:1::/64"), pool},
		Set: []ipam.NamedAddress{
			of(1, "192.0.2.10", "web"), of(3, "2001:db8:1::10", "web"), of(1, "192.0.2.11", "*printer"),
			of(1, "192.0.2.20", "shop/api/1"), of(1, "192.0.2.21", "shop/api/2"), of(1, "192.0.2.22", "*shop/api/3"),
			of(1, "192.0.2.30", "media-tv-1"), of(2, "10.20.3.4", "db"), of(2, "10.20.3.5", "Db"),
			of(2, "10.20.3.6", "web"), of(2, "10.20.3.7", "my.old_box"),
			of(9, "203.0.113.2", "shop/api/1"),
		}}
}

// records is a Service with given news.
type records struct {
	news    chan ipam.NameNews
	partial error
}

func (r *records) NameNews(ctx context.Context) iter.Seq2[ipam.NameNews, error] {
	return func(yield func(ipam.NameNews, error) bool) {
		for {
			select {
			case <-ctx.Done():
				return
			case one := <-r.news:
				if !yield(one, nil) {
					return
				}
			}
		}
	}
}

func (r *records) Partial() error { return r.partial }

func quiet() *logrus.Entry {
	log := logrus.New()
	log.SetOutput(io.Discard)
	return logrus.NewEntry(log)
}

// over returns a server over an index that does not change.
func over(x *Index) *Server {
	own := netip.MustParseAddr("192.168.9.9") // the only address of the host
	return newServer(Config{Index: x, Service: new(records), Log: quiet(), Now: stopped,
		Towards: func(netip.Addr) netip.Addr { return own },
		Own:     func() ([]netip.Addr, error) { return []netip.Addr{own}, nil }})
}

// loopback is a client on this host, by TCP.
var loopback = asker{allowed: true, server: func() netip.Addr { return netip.MustParseAddr("127.0.0.1") }}

// ask returns the answer: the code and the data of each record.
func ask(x *Index, name, kind string) string {
	q := new(dns.Msg)
	q.SetQuestion(dns.Fqdn(name), dns.StringToType[kind])
	return summary(over(x).answer(q, loopback))
}

// summary returns a message in short form.
func summary(m *dns.Msg) string {
	parts := []string{dns.RcodeToString[m.Rcode]}
	for _, rr := range m.Answer {
		text := strings.TrimPrefix(rr.String(), rr.Header().String())
		parts = append(parts, text)
	}
	for _, rr := range m.Ns {
		parts = append(parts, dns.TypeToString[rr.Header().Rrtype]+" of "+rr.Header().Name)
	}
	return strings.Join(parts, " | ")
}
