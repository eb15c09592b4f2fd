//go:build edge

package edge_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/icmp"
	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"

	"berth/test/lab"
)

// in runs a function in a namespace, "" being the host's. Sockets that the function opens stay there.
func in[T any](ns string, do func() (T, error)) (T, error) {
	if ns == "" {
		return do()
	}
	return lab.In(lab.Namespace(ns), do)
}

const (
	tcpPort = 80
	udpPort = 7
)

// serve answers TCP and UDP in a namespace with its name and the client's address.
func serve(t testing.TB, ns string) {
	t.Helper()
	listener, err := in(ns, func() (net.Listener, error) { return net.Listen("tcp", fmt.Sprintf(":%d", tcpPort)) })
	lab.Must(t, err)
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			go serveOne(c, ns)
		}
	}()
	socket, err := in(ns, func() (net.PacketConn, error) {
		return net.ListenPacket("udp", fmt.Sprintf(":%d", udpPort))
	})
	lab.Must(t, err)
	go func() {
		b := make([]byte, 100)
		for {
			n, from, err := socket.ReadFrom(b)
			if err != nil {
				return
			}
			_, _ = socket.WriteTo([]byte(seen(ns, from)+" "+string(b[:n])), from)
		}
	}()
	t.Cleanup(func() { _ = errors.Join(listener.Close(), socket.Close()) })
}

// serveOne answers each line of a connection.
func serveOne(c net.Conn, ns string) {
	defer c.Close()
	r := bufio.NewReader(c)
	for {
		question, err := r.ReadString('\n')
		if err != nil {
			return
		}
		_, _ = io.WriteString(c, seen(ns, c.RemoteAddr())+" "+question)
	}
}

func seen(ns string, from net.Addr) string {
	a := netip.MustParseAddrPort(from.String()).Addr().Unmap()
	return strings.TrimSpace(ns + " " + a.String()) // the host's is ""
}

// patience is the timeout of one question.
const patience = 400 * time.Millisecond

// ask asks a server from a namespace. It returns the server's name and the address that the server saw.
func ask(ns, network string, to netip.Addr) (string, error) {
	c, err := open(ns, network, to)
	if err != nil {
		return "", err
	}
	defer c.Close()
	return c.ask()
}

// flow is one connection that stays open.
type flow struct {
	net.Conn
	answers *bufio.Reader
}

func open(ns, network string, to netip.Addr) (flow, error) {
	port := tcpPort
	if network == "udp" {
		port = udpPort
	}
	c, err := in(ns, func() (net.Conn, error) {
		return net.DialTimeout(network, netip.AddrPortFrom(to, uint16(port)).String(), patience)
	})
	return newFlow(c), err
}

func newFlow(c net.Conn) flow { return flow{c, bufio.NewReader(c)} }

func (f flow) ask() (string, error) {
	err := f.SetDeadline(time.Now().Add(patience))
	if err != nil {
		return "", err
	}
	question := fmt.Sprintf(" %d\n", time.Now().UnixNano())
	_, err = io.WriteString(f, question[1:])
	if err != nil {
		return "", err
	}
	for {
		answer, err := f.answers.ReadString('\n')
		if err != nil {
			return "", err
		}
		if seen, ours := strings.CutSuffix(answer, question); ours { // not a late answer to the previous question
			return seen, nil
		}
	}
}

// expect expects a server to have seen the question come from an address.
func expect(t *testing.T, ns, network string, to netip.Addr, server string, from netip.Addr) {
	t.Helper()
	want := strings.TrimSpace(server + " " + from.String())
	var got string
	var err error
	for range 10 { // a busy machine may answer late
		got, err = ask(ns, network, to)
		if err == nil {
			break
		}
	}
	if err != nil || got != want {
		t.Errorf("%s of %s to %s: got %q (%v), want %q", network, ns, to, got, err, want)
	}
}

// refused expects no answer.
func refused(t *testing.T, ns, network string, to netip.Addr) {
	t.Helper()
	if got, err := ask(ns, network, to); err == nil {
		t.Errorf("%s of %s to %s was answered: %q", network, ns, to, got)
	}
}

// ping sends one echo request and expects a reply.
func ping(ns string, to netip.Addr) error {
	_, err := in(ns, func() (struct{}, error) { return struct{}{}, echo(to) })
	return err
}

func echo(to netip.Addr) error {
	network, number, kind := "ip4:icmp", 1, icmp.Type(ipv4.ICMPTypeEcho)
	if to.Is6() {
		network, number, kind = "ip6:ipv6-icmp", 58, ipv6.ICMPTypeEchoRequest
	}
	any := "0.0.0.0"
	if to.Is6() {
		any = "::"
	}
	c, err := net.ListenPacket(network, any)
	if err != nil {
		return err
	}
	defer c.Close()
	id := os.Getpid() & 0xffff
	message, err := (&icmp.Message{Type: kind, Body: &icmp.Echo{ID: id, Seq: 1, Data: []byte("berth")}}).Marshal(nil)
	if err != nil {
		return err
	}
	err = c.SetDeadline(time.Now().Add(patience))
	if err != nil {
		return err
	}
	_, err = c.WriteTo(message, &net.IPAddr{IP: to.AsSlice()})
	if err != nil {
		return err
	}
	b := make([]byte, 500)
	for {
		n, _, err := c.ReadFrom(b)
		if err != nil {
			return fmt.Errorf("no echo of %s: %w", to, err)
		}
		answer, err := icmp.ParseMessage(number, b[:n])
		if err != nil {
			return err
		}
		if answer.Type == ipv4.ICMPTypeEchoReply || answer.Type == ipv6.ICMPTypeEchoReply {
			return nil
		}
	}
}

// askFrom asks from a source address that the guest chooses.
func askFrom(from, to netip.Addr) (string, error) {
	d := net.Dialer{Timeout: patience, LocalAddr: &net.TCPAddr{IP: from.AsSlice()}}
	c, err := d.Dial("tcp", netip.AddrPortFrom(to, tcpPort).String())
	if err != nil {
		return "", err
	}
	defer c.Close()
	return newFlow(c).ask()
}
