package dhcp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"time"

	"berth/internal/ipam"
	"berth/internal/shorten"
)

const (
	// tries is how often a message is said (lan.md).
	tries = 4
	// heardAtOnce is how many answers to one question are kept until they are looked at: a LAN has few servers.
	heardAtOnce = 16
	// moment is how much longer one waits for a better answer than the one that came: that of another server.
	moment = 250 * time.Millisecond
	// settling is how long one waits for an interface that has just come up.
	settling = 50 * time.Millisecond
)

// exchange is one question, with the messages that belong to it.
type exchange struct {
	*station
	id     uint32 // its transaction id
	heard  chan datagram
	begun  time.Time
	within time.Duration
}

// datagram is what a server has sent.
type datagram struct {
	payload []byte
	from    netip.Addr
}

func (d datagram) clone() datagram { return datagram{bytes.Clone(d.payload), d.from} }

// verdict is what was heard is good for.
type verdict int

const (
	passedOver   verdict = iota // it is not what was waited for
	settled                     // nothing more is waited for
	unlessBetter                // that is it, unless something better comes within a moment
)

// errSilent is the end of the time.
var errSilent = errors.New("nobody answers")

// talk has a message said, up to four times, until hear is content with what came, or the time is over (errSilent).
// It returns how often it was said.
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

// mayPass: what keeps a message from being said may be over in a moment, and there is time for that.
func (x *exchange) mayPass(err error) bool {
	var f *failure
	return errors.As(err, &f) && f.soon && time.Since(x.begun) < x.within/3
}

// pause is how long an answer is waited for before the message is said again. The pauses grow, and are drawn, so that
// many that began at once do not go on so (RFC 2131, 4.1). RFC 2131 doubles from 4 seconds on, which is longer than an
// engine waits; here all four together are what the question allows: 1, 2, 3 and 4 tenths of it.
func (x *exchange) pause(try int) time.Duration {
	unit := x.within / 10
	if try == tries-1 {
		return 4 * unit // the time ends about then
	}
	return time.Duration(try+1)*unit + time.Duration((rand.Float64()-0.5)*float64(unit)/2) //nolint:gosec // no secret
}

// seconds is since when the client tries, as far as a message can tell.
func (x *exchange) seconds() uint16 { return uint16(min(time.Since(x.begun)/time.Second, 1<<16-1)) } //nolint:gosec

// silent is the failure of a question that nobody has answered.
func (x *exchange) silent(ask *ipam.LANAsk, format string, args ...any) error {
	return &failure{kind: ipam.LANSilent, text: fmt.Sprintf("on the interface %s, ", ask.Parent) +
		fmt.Sprintf(format, args...) + fmt.Sprintf(", within %s", x.within)}
}

// who is a client, for people.
func who(c *ipam.LANClient) string {
	if c.ID != "" {
		return c.ID
	}
	return c.MAC.String()
}

// outside is the failure of offers that lie outside the subnet.
func outside(ask *ipam.LANAsk, lease *ipam.LANLease) error {
	of := ""
	if lease.Subnet.IsValid() {
		of = " of " + lease.Subnet.Masked().String()
	}
	return &failure{kind: ipam.LANOutside, lease: lease, text: fmt.Sprintf("on the interface %s, the DHCP server %s "+
		"offered %s %s%s, which lies outside the subnet %s: it is not taken", ask.Parent, lease.Server,
		who(&ask.Client), lease.Address, of, ask.Subnet)}
}

// refused is the failure of a question that a server has answered with no.
func refused(ask *ipam.LANAsk, server netip.Addr, what, message string) error {
	if message != "" {
		message = fmt.Sprintf(": %q", shorten.To(message, shorten.Most))
	}
	by := "the DHCP server"
	if server.IsValid() {
		by += " " + server.String()
	}
	return &failure{kind: ipam.LANRefused, text: fmt.Sprintf("on the interface %s, %s refused %s %s%s", ask.Parent, by,
		who(&ask.Client), what, message)}
}

// fits: an offer may be taken.
func fits(ask *ipam.LANAsk, lease *ipam.LANLease) bool {
	return !ask.Subnet.IsValid() || ask.Subnet.Contains(lease.Address)
}

// terms fills in the times of a lease that the server did not tell, or told wrongly (RFC 2131, 4.4.5).
func terms(lease *ipam.LANLease, lasts, t1, t2 time.Duration) {
	if t2 <= 0 || t2 > lasts {
		t2 = lasts / 8 * 7
	}
	if t1 <= 0 || t1 > t2 {
		t1 = min(lasts/2, t2)
	}
	lease.Lasts, lease.T1, lease.T2 = ipam.Duration(lasts), ipam.Duration(t1), ipam.Duration(t2)
}
