//go:build engine

package engine

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"berth/test/ground"
)

// One switch turns all of it off (CS-11), and a network has it off until it is turned on (CS-16): what was mapped is
// not, is refused by its code, and containers start as they do without; turned on again, it leads there again.
func TestElasticOff(t *testing.T) {
	t.Parallel()
	s := newSystemTown(t, 78)
	peer := outside(t, s.engine, 78)
	o := off{systemTown: s, peer: peer, from: callers(t, peer, elasticPeer), web: s.name()}
	s.berth("elastic", "range", "add", elasticAddress)
	s.berth("elastic", "allocate")
	edgeOf(t, s.engine, s.daemon, 78)
	o.starts(o.web)

	o.refusedAs("ElasticNetworkOff", s.planned, "elastic", "associate", elasticAddress, o.web)
	o.seenAs("the network is off (CS-16)", elasticHost)
	s.berth("network", "modify", s.planned, "--elastic", "on")
	if err := ground.Eventually(5*time.Second, func() error {
		_, err := berth(s.Berth, "elastic", "associate", elasticAddress, o.web)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	o.leads("the network is on")
	o.seenAs("the network is on", elasticAddress)

	o.restarts(append(slices.Clone(s.daemon.Flags), "--elastic=false"))
	o.leadsNowhere("turned off (CS-11)")
	o.seenAs("turned off (CS-11)", elasticHost)
	for _, words := range [][]string{
		{"elastic", "associate", elasticAddress, o.web},
		{"elastic", "disassociate", elasticAddress},
		{"elastic", "release", elasticAddress},
		{"elastic", "allocate"},
		{"elastic", "range", "add", "10.213.253.20"},
		{"elastic", "range", "rm", elasticAddress},
		{"elastic", "account", "create", "shop"},
		{"network", "modify", s.planned, "--elastic", "auto"},
	} {
		o.refusedAs("ElasticOff", "", words...)
	}
	second := s.name()
	s.runs(second) // and has its address on record
	s.docker("restart", "--time", "1", o.web)
	s.finds()
	o.leadsNowhere("turned off, and its container started again")

	o.restarts(slices.DeleteFunc(slices.Clone(s.daemon.Flags), func(f string) bool { return f == "--elastic=false" }))
	o.leads("turned on again")
	o.seenAs("turned on again", elasticAddress)
	s.berth("elastic", "disassociate", elasticAddress)
}

// off is a systemTown with a container that has an elastic address, or is to have none.
type off struct {
	*systemTown
	peer string
	from <-chan string
	web  string
}

// starts runs a container that answers on a port.
func (o off) starts(name string) {
	o.Helper()
	o.docker("run", "--detach", "--name", name, "--network", o.net, imageName, "busybox", "nc", "-ll", "-p", "8000",
		"-e", "/bin/busybox")
}

// restarts starts the daemon anew with other flags.
func (o off) restarts(flags []string) {
	o.Helper()
	if err := o.daemon.Stop(); err != nil {
		o.Fatal(err)
	}
	o.daemon.Flags = flags
	if err := o.daemon.Revive(); err != nil {
		o.Fatal(err)
	}
}

func (o off) refusedAs(code, word string, words ...string) {
	o.Helper()
	err := ground.Eventually(5*time.Second, func() error {
		out, err := berth(o.Berth, words...)
		if err == nil {
			return ground.Final(fmt.Errorf("it is done: %s", out))
		}
		if !strings.Contains(err.Error(), code+":") || !strings.Contains(err.Error(), word) {
			return err // its container may not be known yet
		}
		return nil
	})
	if err != nil {
		o.Errorf("berth %s is not refused as %s: %v", strings.Join(words, " "), code, err)
	}
}

// seenAs waits until the container's calls come from an address.
func (o off) seenAs(when, want string) {
	o.Helper()
	err := ground.Eventually(5*time.Second, func() error {
		o.docker("exec", o.web, "busybox", "nc", "-w", "2", elasticPeer, "7000")
		select {
		case got := <-o.from:
			if got != want {
				return fmt.Errorf("it is seen as %s, not as %s", got, want)
			}
			return nil
		case <-time.After(ground.Patient(time.Second)):
			return fmt.Errorf("it is not seen")
		}
	})
	if err != nil {
		o.Errorf("%s: %v", when, err)
	}
}

func (o off) leads(when string) {
	o.Helper()
	if err := ground.Eventually(10*time.Second, func() error { return reaches(o.T, o.peer) }); err != nil {
		o.Errorf("%s it does not lead there: %v", when, err)
	}
}

func (o off) leadsNowhere(when string) {
	o.Helper()
	if err := ground.Eventually(10*time.Second, func() error {
		if reaches(o.T, o.peer) == nil {
			return fmt.Errorf("somebody answers")
		}
		return nil
	}); err != nil {
		o.Errorf("%s: %v", when, err)
	}
}
