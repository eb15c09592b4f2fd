package daemon

import (
	"fmt"
	"strings"
	"time"

	"berth/internal/admin/api"
	"berth/internal/cli"
	"berth/internal/ipam"
)

// This file formats the shared store and its hosts for `berth status`.

func clusterText(c *api.ClusterStatus) string {
	id := c.ID
	if id == "" {
		id = "unknown"
	}
	return fmt.Sprintf("%s, in etcd under %s at %s", id, c.Prefix, strings.Join(c.Endpoints, ", "))
}

// reachText describes whether the store is reachable, and if not, since when and why. It also has the age of the last
// read.
func reachText(c *api.ClusterStatus) string {
	age := "the daemon has not read the shared store since it started"
	if !c.Fresh.IsZero() {
		age = fmt.Sprintf("the daemon's copy of the shared store is %s old", secondsText(c.Age))
	}
	switch {
	case c.Mending != nil:
		return fmt.Sprintf("in repair since %s; %s: %s", cli.LocalTime(c.Since), age, c.Away)
	case c.Back != nil:
		return fmt.Sprintf("not trusted since %s, %s; %s: %s; `berth state mend` repairs it", cli.LocalTime(c.Since),
			backText(c.Back), age, c.Away)
	case c.NoSpace:
		return fmt.Sprintf("not writable since %s; %s: %s", cli.LocalTime(c.Since), age, c.Away)
	case c.Away != "":
		return fmt.Sprintf("out of reach since %s; %s: %s", cli.LocalTime(c.Since), age, c.Away)
	case c.Refused != "":
		return fmt.Sprintf("refuses this host since %s: %s", cli.LocalTime(c.Since), c.Refused)
	}
	return fmt.Sprintf("reachable; %s; %s, %d of them repeated", age, cli.Counted(int(c.Updates), "change"),
		c.Conflicts)
}

// backText describes how much is missing in a store that went back to an earlier state.
func backText(b *api.Back) string {
	switch {
	case b.Emptied:
		return "all data is missing"
	case b.All == 0:
		return "Berth knows of no missing change"
	}
	return fmt.Sprintf("%s missing, %d of them by this host", cli.Counted(int(b.All), "write"), b.Own)
}

func secondsText(s float64) string {
	return time.Duration(s * float64(time.Second)).Round(100 * time.Millisecond).String()
}

func selfText(name string, c *api.ClusterStatus) string {
	others := "no other host is present"
	if n := len(c.Others); n > 0 {
		others = fmt.Sprintf("%s present: %s", cli.Counted(n, "other host"), strings.Join(c.Others, ", "))
	}
	if c.Away != "" || c.Refused != "" {
		others = "Berth does not know which other hosts are present"
	}
	return fmt.Sprintf("%s (%s), %s; %s", name, c.HostID, cli.StateText(c.HostState), others)
}

func waitingText(c *api.ClusterStatus) string {
	if c.Waiting == 0 {
		return "nothing"
	}
	return fmt.Sprintf("%d releases and uses of headroom wait to be sent, the oldest since %s", c.Waiting,
		cli.LocalTime(c.Oldest))
}

func headroomText(all []ipam.HeadroomState) string {
	if len(all) == 0 {
		return "none configured"
	}
	var texts []string
	for _, h := range all {
		texts = append(texts, fmt.Sprintf("%d of %d on %s (%s)", h.Claimed, h.Wanted, h.Subnet, h.Network))
	}
	return strings.Join(texts, ", ")
}
