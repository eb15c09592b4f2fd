package cluster

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"berth/internal/ipam"
	"berth/store"
)

// outOfReach is the refusal of a request that needs the shared store.
type outOfReach struct {
	Why   error
	Since time.Time
}

func (e *outOfReach) Error() string {
	const form = "2006-01-02 15:04:05 MST"
	why := strings.TrimPrefix(e.Why.Error(), store.ErrAway.Error()+": ")
	if mark := new(ipam.Mending); errors.As(e.Why, &mark) {
		return fmt.Sprintf("the shared store went back to an earlier state, and nothing is given or changed in the "+
			"spaces of the cluster since %s: %s. "+
			"Containers keep their addresses, their releases are kept and sent later, and networks of the space "+
			"local work as before", e.Since.Format(form), mark)
	}
	if untrusted(e.Why) {
		return fmt.Sprintf("the shared store is not trusted since %s (%s), so that nothing is given or changed in the "+
			"spaces of the cluster. "+
			"Containers keep their addresses, their releases are kept and sent later, and networks of the space "+
			"local work as before", e.Since.Format(form), why)
	}
	state := "is out of reach"
	if errors.Is(e.Why, store.ErrNoSpace) {
		state = "takes no writes"
	}
	return fmt.Sprintf("the shared store %s since %s (%s), so that nothing new can be taken in the spaces of the "+
		"cluster. "+
		"Containers keep their addresses, their releases are kept and sent later, and networks of the space local "+
		"work as before. "+
		"Check etcd and the network to it", state, e.Since.Format(form), why)
}

// Helps returns the advice for the state of the store. A store that is being mended has its own advice.
func (e *outOfReach) Helps() []ipam.Advice {
	switch mark := new(ipam.Mending); {
	case errors.As(e.Why, &mark):
		return nil
	case untrusted(e.Why):
		return []ipam.Advice{ipam.Advise(ipam.DoMendStore)}
	}
	return []ipam.Advice{ipam.Advise(ipam.DoShowStatus)}
}

func (e *outOfReach) Unwrap() []error { return []error{ipam.ErrAway, e.Why} }

// untrusted reports that the store is reachable but went back to an earlier state. Nothing may be leased, because
// others may have leased it already.
func untrusted(err error) bool { return errors.Is(err, store.ErrBack) }
