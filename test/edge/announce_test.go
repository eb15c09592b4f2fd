//go:build edge

package edge_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/mdlayher/ndp"
	"github.com/mdlayher/packet"
	"golang.org/x/net/ipv6"
	"golang.org/x/sys/unix"

	"berth/internal/edge"
	"berth/internal/edge/announce"
	"berth/internal/edge/nft"
	"berth/test/lab"
)

// heard is one message on the network.
type heard struct {
	at      time.Time
	form    string // request, reply or advertisement
	address netip.Addr
	mac     string
}

// ears collect the messages in a namespace.
type ears struct {
	mu  sync.Mutex
	all []heard
}

const etherAll, etherARP, etherIPv6 = 3, 0x0806, 0x86dd

// listen records ARP and neighbour advertisements on eth0 of a namespace.
func listen(t *testing.T, ns string) *ears {
	t.Helper()
	c := socketIn(t, ns)
	e := &ears{}
	go func() {
		frame := make([]byte, 2000)
		for {
			n, _, err := c.ReadFrom(frame)
			if err != nil {
				return
			}
			if one, ok := read(frame[:n]); ok {
				one.at = time.Now()
				e.mu.Lock()
				e.all = append(e.all, one)
				e.mu.Unlock()
			}
		}
	}()
	return e
}

func socketIn(t testing.TB, ns string) *packet.Conn {
	t.Helper()
	c, err := in(ns, func() (*packet.Conn, error) {
		device, err := net.InterfaceByName("eth0")
		if err != nil {
			return nil, err
		}
		return packet.Listen(device, packet.Raw, etherAll, nil)
	})
	lab.Must(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func read(frame []byte) (heard, bool) {
	switch binary.BigEndian.Uint16(frame[12:]) {
	case etherARP:
		form := map[uint16]string{1: "request", 2: "reply"}[binary.BigEndian.Uint16(frame[20:])]
		a, _ := netip.AddrFromSlice(frame[28:32])
		return heard{form: form, address: a, mac: net.HardwareAddr(frame[22:28]).String()}, true
	case etherIPv6:
		const advertisement, override, targetMAC = 136, 0x20, 2
		if frame[20] != 58 || len(frame) < 86 || frame[54] != advertisement || frame[78] != targetMAC {
			return heard{}, false
		}
		form := "advertisement"
		if frame[58]&override == 0 {
			form = "advertisement that overrides nothing"
		}
		a, _ := netip.AddrFromSlice(frame[62:78])
		return heard{form: form, address: a, mac: net.HardwareAddr(frame[80:86]).String()}, true
	}
	return heard{}, false
}

// of counts the messages of a MAC about an address after since.
func (e *ears) of(a netip.Addr, mac string, since time.Time) map[string]int {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := map[string]int{}
	for _, one := range e.all {
		if one.address == a && one.mac == mac && one.at.After(since) {
			n[one.form]++
		}
	}
	return n
}

func macOf(t testing.TB, ns string) string {
	t.Helper()
	mac, err := in(ns, func() (string, error) {
		device, err := net.InterfaceByName("eth0")
		if err != nil {
			return "", err
		}
		return device.HardwareAddr.String(), nil
	})
	lab.Must(t, err)
	return mac
}

// TestAnnounce: Berth announces an address at once, by both forms of ARP and by an overriding advertisement, and
// again after more than a second (MetalLB, keepalived: single ones get lost or ignored). It does not announce an
// unchanged state.
func TestAnnounce(t *testing.T) {
	newLab(t)
	p := newProvider(t, nft.Config{})
	e, mac, begin := listen(t, peer), macOf(t, ""), time.Now()
	s := mapped(edge.Keep)
	set(t, p, s)
	at4, at6 := map[string]int{"request": 1, "reply": 1}, map[string]int{"advertisement": 1}
	said := func(times int) func() error {
		return func() error {
			got4, got6 := e.of(elastic4, mac, begin), e.of(elastic6, mac, begin)
			if got4["request"] < times*at4["request"] || got4["reply"] < times*at4["reply"] ||
				got6["advertisement"] < times*at6["advertisement"] {
				return fmt.Errorf("heard %v and %v", got4, got6)
			}
			return nil
		}
	}
	within(t, 100*time.Millisecond, "the first announcement", said(1))
	set(t, p, s)
	time.Sleep(700 * time.Millisecond) // nothing is due in this time
	if err := said(2)(); err == nil {
		t.Error("it was repeated within a second, which kernels ignore, or by a state that changed nothing")
	}
	within(t, 2*time.Second, "the repeat", said(2))
	within(t, 3*time.Second, "another repeat", said(3))
	// The cable was out: neighbours or the switch may have learnt another place (MetalLB #584).
	start(t, p)
	time.Sleep(600 * time.Millisecond)
	run(t, "ip -n sw link set host down")
	within(t, time.Second, "no carrier", func() error {
		if out := run(t, "ip -o link show eth0"); !bytes.Contains([]byte(out), []byte("NO-CARRIER")) {
			return fmt.Errorf("%s", out)
		}
		return nil
	})
	time.Sleep(100 * time.Millisecond) // the link event needs a moment to arrive
	begin = time.Now()
	run(t, "ip -n sw link set host up")
	within(t, time.Second, "again, the link being up", said(1))
}

// TestContested: another host answers for an address of this one (kube-vip #996, keepalived #166). Berth counts
// this, reports the other MAC, and answers, so that neighbours come back.
func TestContested(t *testing.T) {
	newLab(t)
	var told notices
	p := newProvider(t, nft.Config{Tell: told.tell})
	set(t, p, mapped(edge.Keep))
	time.Sleep(200 * time.Millisecond)
	c, theirs, ours := socketIn(t, other), macOf(t, other), macOf(t, "")
	e := listen(t, peer)
	begin := time.Now()
	mac, err := net.ParseMAC(theirs)
	lab.Must(t, err)
	sendARP(t, c, 2, mac, elastic4, elastic4)
	within(t, time.Second, "the notice", func() error {
		all := told.of(edge.Contested)
		if len(all) != 1 || all[0].Address != elastic4 || all[0].MAC.String() != theirs || all[0].Device != "eth0" {
			return fmt.Errorf("told %v", all)
		}
		return nil
	})
	within(t, time.Second, "the answer", func() error {
		if n := e.of(elastic4, ours, begin); n["reply"] == 0 {
			return fmt.Errorf("heard %v", n)
		}
		return nil
	})
	if n := p.Counts().Contested; n != 1 {
		t.Errorf("counted %d", n)
	}
	advertise(t, other, elastic6)
	within(t, 2*time.Second, "the notice of IPv6", func() error {
		for _, one := range told.of(edge.Contested) {
			if one.Address == elastic6 {
				return nil
			}
		}
		return fmt.Errorf("told %v", told.of(edge.Contested))
	})
}

// sendARP broadcasts an ARP frame.
func sendARP(t *testing.T, c *packet.Conn, form byte, mac net.HardwareAddr, from, about netip.Addr) {
	t.Helper()
	everybody := bytes.Repeat([]byte{0xff}, 6)
	frame := append(bytes.Clone(everybody), mac...)
	frame = append(frame, 8, 6, 0, 1, 8, 0, 6, 4, 0, form)
	frame = append(append(frame, mac...), from.AsSlice()...)
	frame = append(append(frame, everybody...), about.AsSlice()...)
	_, err := c.WriteTo(frame, &packet.Addr{HardwareAddr: everybody})
	if err != nil && !errors.Is(err, unix.ENOBUFS) { // the kernel's error for a frame that a table has dropped
		t.Fatal(err)
	}
}

// solicitor returns a function that asks all neighbours from the peer for an IPv6 address.
func solicitor(t *testing.T, a netip.Addr) func() {
	t.Helper()
	if a.Is4() {
		return nil
	}
	group, err := ndp.SolicitedNodeMulticast(a)
	lab.Must(t, err)
	var mac net.HardwareAddr
	c, err := in(peer, func() (*ndp.Conn, error) {
		device, err := net.InterfaceByName("eth0")
		if err != nil {
			return nil, err
		}
		mac = device.HardwareAddr
		c, _, err := ndp.Listen(&net.Interface{Index: device.Index, MTU: device.MTU, Name: strconv.Itoa(device.Index)},
			ndp.Unspecified)
		return c, err
	})
	lab.Must(t, err)
	t.Cleanup(func() { _ = c.Close() })
	how := &ipv6.ControlMessage{HopLimit: ndp.HopLimit, Src: peer6.AsSlice()}
	return func() {
		err := c.WriteTo(&ndp.NeighborSolicitation{TargetAddress: a, Options: []ndp.Option{
			&ndp.LinkLayerAddress{Direction: ndp.Source, Addr: mac},
		}}, how, group)
		if err != nil && !errors.Is(err, unix.ENOBUFS) && !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
	}
}

// advertise announces to a namespace's LAN that an IPv6 address is at its eth0.
func advertise(t *testing.T, ns string, a netip.Addr) {
	t.Helper()
	_, err := in(ns, func() (none struct{}, err error) {
		eth0, err := net.InterfaceByName("eth0")
		if err != nil {
			return none, err
		}
		conn, err := announce.Neighbours(eth0, ndp.LinkLocal)
		if err != nil {
			return none, err
		}
		return none, errors.Join(conn.WriteTo(&ndp.NeighborAdvertisement{Override: true, TargetAddress: a,
			Options: []ndp.Option{&ndp.LinkLayerAddress{Direction: ndp.Target, Addr: eth0.HardwareAddr}}}, nil,
			netip.IPv6LinkLocalAllNodes()), conn.Close())
	})
	lab.Must(t, err)
}
