package dhcp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"time"

	"berth/internal/ipam"
	"berth/internal/shorten"
)

const (
	// tries is the number of times that a message is sent (lan.md).
	tries = 4
	// heardAtOnce is the maximum number of unread answers to one question. A LAN has few servers.
	heardAtOnce = 16
	// moment is the wait for a better answer from another server.
	moment = 250 * time.Millisecond
	// settling is the wait for an interface that has just come up.
	settling = 50 * time.Millisecond
)

// exchange is one question with its messages.
type exchange struct {
	*station
	id     uint32 // its transaction id
	heard  chan datagram
	begun  time.Time
	within time.Duration
	faults []string // what is wrong with answers that were passed over
}

// mostFaults bounds what an error says about wrong answers.
const mostFaults = 3

// passOver notes what is wrong with an answer that cannot be used.
func (x *exchange) passOver(fault string) {
	if len(x.faults) < mostFaults && !slices.Contains(x.faults, fault) {
		x.faults = append(x.faults, fault)
	}
}

// datagram is a message from a server.
type datagram struct {
	payload []byte
	from    netip.Addr
}

func (d datagram) clone() datagram { return datagram{bytes.Clone(d.payload), d.from} }

// verdict is what becomes of a message.
type verdict int

const (
	passedOver   verdict = iota // not the awaited message
	settled                     // the exchange is complete
	unlessBetter                // complete, unless a better message comes within a moment
)

// errSilent means that the time is over.
var errSilent = errors.New("nobody answers")

// talk sends a message up to four times, until hear accepts an answer or the time is over (errSilent). It returns how
// often it was sent.
func (x *exchange) talk(ctx context.Context, say func(try int) error, hear func(datagram) verdict) (int, error) {
	said := 0
	again := time.NewTimer(0)
	defer again.Stop()
	var better <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			if better != nil {
				return said, nil
			}
			return said, errSilent
		case <-better:
			return said, nil
		case <-again.C:
			if said == tries {
				return said, errSilent
			}
			switch err := say(said); {
			case err == nil:
				again.Reset(x.pause(said))
				said++
			case x.mayPass(err):
				again.Reset(settling)
			default:
				return said, err
			}
		case d := <-x.heard:
			switch v := hear(d); {
			case v == settled:
				return said, nil
			case v == unlessBetter && better == nil:
				better = time.After(moment)
			}
		}
	}
}

// mayPass reports whether a failed send may be retried: the reason may pass, and there is time left.
func (x *exchange) mayPass(err error) bool {
	var f *failure
	return errors.As(err, &f) && f.soon && time.Since(x.begun) < x.within/3
}

// pause returns the wait before the message is sent again. The pauses grow and are random, so that clients that started
// together spread (RFC 2131, 4.1). The RFC starts at 4 seconds and doubles that, which is longer than an engine waits.
// Here the four pauses are 1, 2, 3 and 4 tenths of the time limit.
func (x *exchange) pause(try int) time.Duration {
	unit := x.within / 10
	if try == tries-1 {
		return 4 * unit // the time limit ends about then
	}
	return time.Duration(try+1)*unit + time.Duration((rand.Float64()-0.5)*float64(unit)/2) //nolint:gosec // no secret
}

// seconds returns the time since the start of the exchange, as far as the message's field can hold it.
func (x *exchange) seconds() uint16 { return uint16(min(time.Since(x.begun)/time.Second, 1<<16-1)) } //nolint:gosec

// silent returns the failure of a question without an answer, or with answers that cannot be used.
func (x *exchange) silent(ask *ipam.LANAsk, format string, args ...any) error {
	if len(x.faults) > 0 {
		return x.wrong(ask)
	}
	return &failure{kind: ipam.LANSilent, text: fmt.Sprintf("on the interface %s, ", ask.Parent) +
		fmt.Sprintf(format, args...) + fmt.Sprintf(", within %s", x.within)}
}

// wrong returns the failure of a question whose answers cannot be used.
func (x *exchange) wrong(ask *ipam.LANAsk) error {
	return &failure{kind: ipam.LANWrong, text: fmt.Sprintf("on the interface %s, %s", ask.Parent,
		strings.Join(x.faults, "; "))}
}

// who names a client for people.
func who(c *ipam.LANClient) string {
	if c.ID != "" {
		return c.ID
	}
	return c.MAC.String()
}

// outside returns the failure for offers outside the subnet.
func outside(ask *ipam.LANAsk, lease *ipam.LANLease) error {
	of := ""
	if lease.Subnet.IsValid() {
		of = " of " + lease.Subnet.Masked().String()
	}
	return &failure{kind: ipam.LANOutside, lease: lease, text: fmt.Sprintf("on the interface %s, the DHCP server %s "+
		"offered %s %s%s, which is outside the subnet %s: Berth does not take it", ask.Parent, lease.Server,
		who(&ask.Client), lease.Address, of, ask.Subnet)}
}

// takenByHost returns the failure for an address that the host itself has.
func takenByHost(ask *ipam.LANAsk, lease *ipam.LANLease, device string) error {
	return &failure{kind: ipam.LANWrong, lease: lease, text: fmt.Sprintf("on the interface %s, the DHCP server %s "+
		"gave %s %s, which this host itself has on %s: Berth declined it", ask.Parent, lease.Server, who(&ask.Client),
		lease.Address, device)}
}

// refused returns the failure for a negative answer.
func refused(ask *ipam.LANAsk, server netip.Addr, what, message string) error {
	if message != "" {
		message = fmt.Sprintf(": %q", shorten.To(message, shorten.Most))
	}
	by := "the DHCP server"
	if server.IsValid() {
		by += " " + server.String()
	}
	return &failure{kind: ipam.LANRefused, text: fmt.Sprintf("on the interface %s, %s refused to give %s %s%s",
		ask.Parent, by, who(&ask.Client), what, message)}
}

// fits reports whether an offer is acceptable.
func fits(ask *ipam.LANAsk, lease *ipam.LANLease) bool {
	return !ask.Subnet.IsValid() || ask.Subnet.Contains(lease.Address)
}

// terms fills in the times of a lease that the server omitted or sent wrong. T1 is earlier than T2, and T2 is earlier
// than the end (RFC 2131, 4.4.5). A lease for ever lasts 136 years.
func terms(lease *ipam.LANLease, lasts, t1, t2 time.Duration) {
	if t2 <= 0 || t2 >= lasts {
		t2 = lasts / 8 * 7
	}
	if t1 <= 0 || t1 >= t2 {
		t1 = lasts / 2
	}
	if t1 >= t2 {
		t1 = t2 / 7 * 4 // as half of the time is to seven eighths
	}
	lease.Lasts, lease.T1, lease.T2 = ipam.Duration(lasts), ipam.Duration(t1), ipam.Duration(t2)
}
