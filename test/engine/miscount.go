//go:build engine

package engine

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"berth/test/lab"
)

// errMiscounted says that an engine keeps a network for endpoints that do not exist. Engines of the 20.10 line lose
// count if many containers start or end at once, or on a busy machine, with any IPAM driver. A restart counts them
// anew.
var errMiscounted = errors.New("the engine miscounts its endpoints, and keeps it until it is restarted (systemctl " +
	"restart docker)")

// activeEndpoints is the text of such an engine's error.
const activeEndpoints = "has active endpoints"

// counting is how long a busy engine may still count an endpoint that is gone.
var counting = 3 * time.Second

// removeNetwork removes a network without containers. While an endpoint is being removed, the engine still counts it.
// If the engine counts one for longer although there is no container, the error wraps errMiscounted.
func removeNetwork(e Engine, network string) error {
	return lab.Eventually(counting, func() error {
		_, err := e.Docker("network", "rm", network)
		if err == nil {
			return nil
		}
		if !strings.Contains(err.Error(), activeEndpoints) {
			return lab.Final(err)
		}
		on, psErr := e.Docker("ps", "--all", "--format", "{{.Names}}", "--filter", "network="+network)
		if psErr != nil || on != "" {
			return lab.Final(fmt.Errorf("%w; on it are %q (%v)", err, on, psErr))
		}
		return fmt.Errorf("network %s: %w", network, errMiscounted)
	})
}

// removeNetworks removes the networks whose names begin with a regular expression. If the daemon of an interrupted run
// is gone, each of the engine's releases fails after 15 seconds, and the networks are removed anyway: so one by one.
// It returns the names of those that the engine keeps because it miscounts.
func removeNetworks(e Engine, begin string) (left []string, err error) {
	out, err := e.Docker("network", "ls", "--format", "{{.Name}}", "--filter", "name=^"+begin)
	if err != nil {
		return nil, err
	}
	for name := range strings.FieldsSeq(out) {
		switch rmErr := removeNetwork(e, name); {
		case errors.Is(rmErr, errMiscounted):
			left = append(left, name)
		case rmErr != nil:
			err = errors.Join(err, rmErr)
		}
	}
	return left, err
}
