//go:build engine

package engine

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// prefix begins the name of each container, network, image, plugin, socket and namespace of the tests.
const prefix = "berth-t-"

// exclusive makes the caller the only run of these tests on the machine; it waits for the one before. The lock is an
// abstract socket: it ends with its process and leaves no file.
func exclusive() (release func() error, err error) {
	err = eventually(20*time.Minute, func() error {
		l, err := net.Listen("unix", "@berth-t")
		if err == nil {
			release = l.Close
		}
		return err
	})
	return release, err
}

// cleanUp removes all that a run made, or left when it was interrupted. It is harmless where there is nothing.
func cleanUp(e Engine) error {
	var errs []error
	if _, err := os.Stat("/run/" + demoName); err == nil {
		_, err := demo("down")
		errs = append(errs, err)
	}
	// A network goes after its containers and before its driver, which may be a container, too.
	errs = append(errs, removeContainers(e, prefix+"[0-9]"), removeNetworks(e, prefix), removeContainers(e, prefix))
	errs = append(errs, removePlugins(e), removeImages(e), removeNamespaces())
	killRecorded()
	sockets, _ := filepath.Glob(filepath.Join(pluginDir, prefix+"*"))
	for _, socket := range sockets {
		errs = append(errs, os.RemoveAll(socket))
	}
	errs = append(errs, unmountUnder(base), os.RemoveAll(base))
	return errors.Join(errs...)
}

// removeContainers removes the containers whose names begin with a regular expression.
func removeContainers(e Engine, begin string) error {
	out, err := e.Docker("ps", "-aq", "--filter", "name=^/"+begin)
	if err != nil || out == "" {
		return err
	}
	_, err = e.Docker(append([]string{"rm", "-f"}, strings.Fields(out)...)...)
	return err
}

// removeNetworks removes the networks whose names begin with a regular expression. Where a daemon of an interrupted run is
// gone, each of the engine's releases fails after 15 seconds, and the networks go all the same: so one by one.
func removeNetworks(e Engine, begin string) error {
	out, err := e.Docker("network", "ls", "-q", "--filter", "name=^"+begin)
	if err != nil || out == "" {
		return err
	}
	for _, id := range strings.Fields(out) {
		if _, rmErr := e.Docker("network", "rm", id); rmErr != nil {
			err = errors.Join(err, rmErr)
		}
	}
	return err
}

func removeImages(e Engine) error {
	out, err := e.Docker("images", "--format", "{{.Repository}}:{{.Tag}}", "--filter", "reference="+prefix+"*")
	if err != nil || out == "" {
		return err
	}
	_, err = e.Docker(append([]string{"image", "rm", "-f"}, strings.Fields(out)...)...)
	return err
}

// unmountUnder takes off what an interrupted engine of the tests left mounted below dir, the deepest first.
func unmountUnder(dir string) error {
	b, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return err
	}
	var points []string
	for line := range strings.Lines(string(b)) {
		if fields := strings.Fields(line); len(fields) > 1 && strings.HasPrefix(fields[1], dir+"/") {
			points = append(points, fields[1])
		}
	}
	for i := len(points) - 1; i >= 0; i-- {
		if err := syscall.Unmount(points[i], syscall.MNT_DETACH); err != nil {
			return fmt.Errorf("unmount %s: %w", points[i], err)
		}
	}
	return nil
}
