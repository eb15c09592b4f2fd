//go:build machine

package machine

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"berth/test/lab"
)

const image = "harbour-busybox"

// Docker runs the docker command on the machine.
func (m *Machine) Docker(args ...string) (string, error) {
	return m.In(append([]string{"docker"}, args...)...)
}

// importImage makes the image of the containers: Debian's static busybox and links to it.
func (m *Machine) importImage() error {
	_, err := m.In("sh", "-ec", `mkdir -p /root/image/bin; cd /root/image
		cp /bin/busybox bin/; for applet in sh ip ping sleep; do ln -s busybox bin/$applet; done
		tar -c . | docker import - `+image)
	return err
}

// createNetwork makes a Docker network with addresses from a driver: berth, or default, which is the engine's own.
func (m *Machine) createNetwork(name, driver, subnet string, options ...string) error {
	args := append([]string{"network", "create", "--ipam-driver", driver, "--subnet", subnet}, options...)
	_, err := m.Docker(append(args, name)...)
	return err
}

// startContainer runs a container with an always-restart policy. Its program would ignore SIGTERM.
func (m *Machine) startContainer(name, network string) error {
	_, err := m.Docker("run", "--detach", "--name", name, "--network", network, "--restart", "always", "--stop-signal",
		"SIGKILL",
		image, "sleep", "1000000")
	return err
}

// startContainers runs n containers with names from prefix1.
func (m *Machine) startContainers(n int, prefix, network string) error {
	for i := range n {
		if err := m.startContainer(fmt.Sprintf("%s%d", prefix, i+1), network); err != nil {
			return err
		}
	}
	return nil
}

// Container is a running container, as `docker inspect` shows it.
type Container struct {
	Address string
	Started string // the start time
}

// running are the running containers of a network that have an address, by name.
func (m *Machine) running(network string) (map[string]Container, error) {
	ids, err := m.Docker("ps", "--quiet", "--no-trunc")
	if err != nil {
		return nil, err
	}
	if ids == "" {
		return nil, nil
	}
	out, err := m.Docker(append([]string{"inspect", "--format", "{{json .}}"}, strings.Fields(ids)...)...)
	if err != nil {
		return nil, err
	}
	all := map[string]Container{}
	for d := json.NewDecoder(strings.NewReader(out)); d.More(); {
		var c struct {
			Name  string
			State struct {
				Running   bool
				StartedAt string
			}
			NetworkSettings struct {
				Networks map[string]struct{ IPAddress string }
			}
		}
		if err := d.Decode(&c); err != nil {
			return nil, err
		}
		if e, on := c.NetworkSettings.Networks[network]; on && c.State.Running && e.IPAddress != "" {
			all[strings.TrimPrefix(c.Name, "/")] = Container{Address: e.IPAddress, Started: c.State.StartedAt}
		}
	}
	return all, nil
}

// back waits until n containers of a network run, each with a unique address.
func (m *Machine) back(network string, n int) (all map[string]Container, err error) {
	err = lab.Eventually(2*time.Minute, func() error {
		if all, err = m.running(network); err != nil {
			return err
		}
		if len(all) != n {
			return fmt.Errorf("of %d containers on %s %d run: %v", n, network, len(all), all)
		}
		return nil
	})
	if err != nil {
		return all, err
	}
	holders := map[string]string{}
	for name, c := range all {
		if other, doubled := holders[c.Address]; doubled {
			return all, fmt.Errorf("%s is the address of both %s and %s", c.Address, name, other)
		}
		holders[c.Address] = name
	}
	return all, nil
}

// reach pings each container from the machine's own network, until it answers: an engine from 28 on gives a container
// a new MAC at each start, which Berth announces within two seconds.
func (m *Machine) reach(all map[string]Container) error {
	var addresses []string
	for name, c := range all {
		if _, err := netip.ParseAddr(c.Address); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		addresses = append(addresses, c.Address)
	}
	script := `for a; do
		for try in $(seq 10); do busybox ping -c 1 -W 2 $a >/dev/null && continue 2; done
		echo $a
	done`
	silent, err := m.In(append([]string{"sh", "-c", script, "sh"}, addresses...)...)
	if err == nil && silent != "" {
		err = fmt.Errorf("no echo from %s", strings.Join(strings.Fields(silent), ", "))
	}
	return err
}
