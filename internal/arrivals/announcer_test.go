package arrivals_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"berth/internal/arp"
	"berth/internal/arrivals"
	"berth/internal/ipam"

	"github.com/sirupsen/logrus"
	logs "github.com/sirupsen/logrus/hooks/test"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// wire is a Link that notes what is sent: the time since its begin, the interface, and the frame.
type wire struct {
	begun   time.Time
	failure error

	mu   sync.Mutex
	sent []string
}

var bridgeMAC = net.HardwareAddr{2, 0, 0, 0, 0, 0xff}

func (w *wire) Send(name string, frames func(own net.HardwareAddr) [][]byte) error {
	if w.failure != nil {
		return w.failure
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, frame := range frames(bridgeMAC) {
		mac, a, _ := arp.Sender(frame)
		text := fmt.Sprintf("claims %s for %s", a, mac)
		if a.IsUnspecified() {
			asked, _ := netip.AddrFromSlice(frame[38:42])
			text = fmt.Sprintf("asks %s for %s", net.HardwareAddr(frame[:6]), asked)
		}
		w.sent = append(w.sent, fmt.Sprintf("%s %s %s", time.Since(w.begun), name, text))
	}
	return nil
}

// take returns what was sent since the last call.
func (w *wire) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := w.sent
	w.sent = nil
	return all
}

const id = "0123456789abcdef"

// networks are the networks of each view.
var networks = []ipam.EngineNetwork{
	{ID: id, Kind: "bridge"},
	{ID: "named", Kind: "bridge", Link: "br0"},
	{ID: "mac", Kind: "macvlan", Parent: "eth0"},
	{ID: "inner", Kind: "macvlan"}, // without a parent
	{ID: "ipv", Kind: "ipvlan", Parent: "eth0"},
	{ID: "over", Kind: "overlay"},
	{ID: "swarm", Kind: "macvlan", Parent: "eth0", Swarm: true},
}

// view returns a view of endpoints, each "NETWORK ADDRESS[,ADDRESS] MAC".
func view(t *testing.T, endpoints ...string) *ipam.EngineView {
	t.Helper()
	v := &ipam.EngineView{Networks: networks}
	for _, one := range endpoints {
		word := strings.Fields(one)
		ep := ipam.EngineEndpoint{Network: word[0]}
		for a := range strings.SplitSeq(word[1], ",") {
			ep.Addresses = append(ep.Addresses, netip.MustParseAddr(a))
		}
		if word[2] != "-" {
			mac, err := ipam.ParseMAC(word[2])
			if err != nil {
				t.Fatal(err)
			}
			ep.MAC = mac
		}
		v.Containers = append(v.Containers, ipam.EngineContainer{Endpoints: []ipam.EngineEndpoint{ep}})
	}
	return v
}

// run runs an Announcer during a test.
func run(t *testing.T, link arrivals.Link, log *logrus.Logger) *arrivals.Announcer {
	t.Helper()
	a := arrivals.New(link, logrus.NewEntry(log))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- a.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	synctest.Wait()
	return a
}

const (
	old = "02:00:00:00:00:01"
	new = "02:00:00:00:00:02"
)

func TestAnnouncements(t *testing.T) {
	for _, tt := range []struct {
		name          string
		before, after []string
		want          []string // the frames at each time
	}{
		{name: "another MAC on a bridge",
			before: []string{id + " 10.0.0.2 " + old}, after: []string{id + " 10.0.0.2 " + new},
			want: []string{"br-0123456789ab claims 10.0.0.2 for " + new,
				"br-0123456789ab asks " + new + " for 10.0.0.2"}},
		{name: "a new endpoint on a bridge with a name", after: []string{"named 10.0.0.2 " + new},
			want: []string{"br0 claims 10.0.0.2 for " + new, "br0 asks " + new + " for 10.0.0.2"}},
		{name: "another MAC on a macvlan: the host is no neighbour",
			before: []string{"mac 10.0.0.2 " + old}, after: []string{"mac 10.0.0.2 " + new},
			want: []string{"eth0 claims 10.0.0.2 for " + new}},
		{name: "only IPv4", after: []string{"mac fd00::2,10.0.0.2 " + new},
			want: []string{"eth0 claims 10.0.0.2 for " + new}},
		{name: "two containers that swap addresses", before: []string{"mac 10.0.0.2 " + old, "mac 10.0.0.3 " + new},
			after: []string{"mac 10.0.0.3 " + old, "mac 10.0.0.2 " + new},
			want:  []string{"eth0 claims 10.0.0.2 for " + new, "eth0 claims 10.0.0.3 for " + old}},
		{name: "nothing new", before: []string{"mac 10.0.0.2 " + old}, after: []string{"mac 10.0.0.2 " + old}},
		{name: "a MAC from the address", before: []string{id + " 10.0.0.2 " + old},
			after: []string{id + " 10.0.0.2 02:42:0a:00:00:02"}},
		{name: "no MAC", after: []string{"mac 10.0.0.2 -"}},
		{name: "who has left", before: []string{"mac 10.0.0.2 " + old}},
		{name: "other networks", after: []string{"inner 10.0.0.2 " + new, "ipv 10.0.0.2 " + new, "over 10.0.0.2 " + new,
			"swarm 10.0.0.2 " + new, "unknown 10.0.0.2 " + new}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &wire{begun: time.Now()}
				a := run(t, w, &logrus.Logger{Out: io.Discard})
				a.See(view(t, tt.before...))
				synctest.Wait()
				if sent := w.take(); len(sent) > 0 {
					t.Errorf("after the first view: %q", sent)
				}
				a.See(view(t, tt.after...))
				time.Sleep(time.Minute)
				a.See(view(t, tt.after...)) // it shows nothing new
				time.Sleep(time.Minute)
				var want []string
				for _, at := range []string{"0s", "1.1s", "2.3s"} {
					for _, frame := range tt.want {
						want = append(want, at+" "+frame)
					}
				}
				if got := w.take(); !slices.Equal(got, want) {
					t.Errorf("got  %q\nwant %q", got, want)
				}
			})
		})
	}
}

// What has left or changed by a later view is not announced again.
func TestRepeats(t *testing.T) {
	for _, tt := range []struct {
		name  string
		later []string
		want  []string
	}{
		{name: "who has left"},
		{name: "who has another MAC", later: []string{"mac 10.0.0.2 " + old}, want: []string{
			"500ms eth0 claims 10.0.0.2 for " + old,
			"1.6s eth0 claims 10.0.0.2 for " + old,
			"2.8s eth0 claims 10.0.0.2 for " + old}},
		{name: "another one starts", later: []string{"mac 10.0.0.2 " + new, "mac 10.0.0.3 " + old}, want: []string{
			"500ms eth0 claims 10.0.0.3 for " + old,
			"1.1s eth0 claims 10.0.0.2 for " + new,
			"1.6s eth0 claims 10.0.0.3 for " + old,
			"2.3s eth0 claims 10.0.0.2 for " + new,
			"2.8s eth0 claims 10.0.0.3 for " + old}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &wire{begun: time.Now()}
				a := run(t, w, &logrus.Logger{Out: io.Discard})
				a.See(view(t))
				a.See(view(t, "mac 10.0.0.2 "+new))
				time.Sleep(500 * time.Millisecond)
				w.take()
				a.See(view(t, tt.later...))
				time.Sleep(time.Minute)
				if got := w.take(); !slices.Equal(got, tt.want) {
					t.Errorf("got  %q\nwant %q", got, tt.want)
				}
			})
		})
	}
}

// TestFailure: the log gets a failure once, and nothing about a network that was being removed.
func TestFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, hook := logs.NewNullLogger()
		w := &wire{failure: errors.New("no permission")}
		a := run(t, w, log)
		a.See(view(t))
		a.See(view(t, "mac 10.0.0.2 "+new))
		time.Sleep(2 * time.Second)
		a.See(view(t)) // removed
		time.Sleep(time.Minute)
		if all := hook.AllEntries(); len(all) > 0 {
			t.Errorf("logged %q of what has left", all[0].Message)
		}
		for _, mac := range []string{old, new} {
			a.See(view(t, "mac 10.0.0.2 "+mac))
			time.Sleep(time.Minute)
		}
		all := hook.AllEntries()
		if len(all) != 1 || all[0].Level != logrus.WarnLevel ||
			!strings.Contains(all[0].Message, "no permission; on Docker 28") {
			t.Errorf("logged %d times: %+v", len(all), all)
		}
	})
}

// TestElsewhere: Here sends nothing for an engine that may be on another machine, and names what it does not find.
func TestElsewhere(t *testing.T) {
	for _, tt := range []struct{ engine, device, want string }{
		{"tcp://10.0.0.1:2375", "lo", "may be on another machine"},
		{"unix:///run/docker.sock", "berth-no", "no interface berth-no"},
		{"unix:///run/docker.sock", "lo", "not an Ethernet interface"},
	} {
		err := arrivals.Here{Engine: tt.engine}.Send(tt.device, func(net.HardwareAddr) [][]byte {
			t.Errorf("%s: frames were requested", tt.engine)
			return nil
		})
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s %s: %v", tt.engine, tt.device, err)
		}
	}
}
