//go:build engine

package engine

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"time"

	"berth/test/lab"
)

// Fabric connects the hosts of a cluster: two switches in their own network namespace. On lan are the hosts' bridges,
// and through them their containers, as on one layer 2. On ctl are the hosts themselves and their etcd.
type Fabric struct {
	begin string // the prefix of all connected namespaces
	name  string // its own namespace
}

// ctlAddress is the address that a host (1 to 99) or the etcd (101) has on ctl.
func ctlAddress(number int) string { return fmt.Sprintf("10.213.240.%d", number) }

// startFabric creates the switches for the scenario with a number.
func startFabric(number int) (Fabric, error) {
	f := Fabric{begin: fmt.Sprintf("%s%d", prefix, number)}
	f.name = f.begin + "fab"
	err := ip("netns add " + f.name)
	for _, device := range []string{"lan", "ctl"} {
		err = errors.Join(err, ip("-n "+f.name+" link add "+device+" type bridge", "-n "+f.name+" link set "+device+
			" up"))
	}
	return f, err
}

// station makes a network namespace with a device ctl0 on ctl that has the station's address.
func (f Fabric) station(name string, number int) error {
	if err := ip("netns add "+name, "-n "+name+" link set lo up"); err != nil {
		return err
	}
	if err := f.plug(name, "ctl"); err != nil {
		return err
	}
	return ip("-n " + name + " address add " + ctlAddress(number) + "/24 dev ctl0")
}

// plug connects a namespace to a switch by a device named after the switch: lan0 or ctl0.
func (f Fabric) plug(name, to string) error {
	port := to + strings.TrimPrefix(name, prefix) // a device's name has at most 15 characters
	return ip("link add "+to+"0 netns "+name+" type veth peer name "+port+" netns "+f.name,
		"-n "+f.name+" link set "+port+" master "+to+" up",
		"-n "+name+" link set "+to+"0 up")
}

// cutOff drops all packets from and to a namespace, as a broken network does. Its bridges still forward.
func cutOff(name string) error {
	return nft(name, `table inet berth-t {
		chain in { type filter hook input priority -300; policy drop; iif lo accept; }
		chain out { type filter hook output priority -300; policy drop; oif lo accept; }
	}`)
}

// reconnect undoes cutOff.
func reconnect(name string) error { return nft(name, "delete table inet berth-t") }

// nft runs nft commands in a namespace.
func nft(name, commands string) error {
	_, err := lab.Run(20*time.Second, bytes.NewReader([]byte(commands)),
		"nsenter", "--net=/run/netns/"+name, "nft", "-f", "-")
	return err
}

// get returns the answer to a GET from a namespace.
func get(name, url string) (string, error) {
	busybox, err := lab.Tool("busybox")
	if err != nil {
		return "", err
	}
	return lab.Run(5*time.Second, nil, "nsenter", "--net=/run/netns/"+name, busybox, "wget", "-q", "-O", "-", url)
}

// showsNow returns the output of `ip addr` in the network namespace of a process.
func showsNow(pid string) (string, error) {
	return lab.Run(time.Minute, nil, "nsenter", "--target", pid, "--net", "ip", "-oneline", "-4", "address",
		"show", "scope", "global")
}

// forgetNeighbours makes room in the neighbour table: it removes the entries of some processes' namespaces.
func forgetNeighbours(pids []string) error {
	script := "for p; do nsenter --target $p --net ip neighbour flush all || exit 1; done"
	_, err := lab.Run(time.Minute, nil, "sh", append([]string{"-c", script, "sh"}, pids...)...)
	return err
}
