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
		id = "not known yet"
	}
	return fmt.Sprintf("%s, in etcd under %s at %s", id, c.Prefix, strings.Join(c.Endpoints, ", "))
}

// reachText describes whether the store is reachable, and if not, since when and why. It also has the age of the last
// read.
func reachText(c *api.ClusterStatus) string {
	age := "nothing of it was read since the daemon began"
	if !c.Fresh.IsZero() {
		age = fmt.Sprintf("what is known of it is %s old", secondsText(c.Age))
	}
	switch {
	case c.Mending != nil:
		return fmt.Sprintf("being mended since %s; %s: %s", cli.LocalTime(c.Since), age, c.Away)
	case c.Back != nil:
		return fmt.Sprintf("not trusted since %s, %s; %s: %s; `berth state mend` mends it", cli.LocalTime(c.Since),
			backText(c.Back), age, c.Away)
	case c.NoSpace:
		return fmt.Sprintf("takes no writes since %s; %s: %s", cli.LocalTime(c.Since), age, c.Away)
	case c.Away != "":
		return fmt.Sprintf("out of reach since %s; %s: %s", cli.LocalTime(c.Since), age, c.Away)
	case c.Refused != "":
		return fmt.Sprintf("refused since %s: %s", cli.LocalTime(c.Since), c.Refused)
	}
	return fmt.Sprintf("in reach; %s; %s, %d of them made again", age, cli.Counted(int(c.Updates), "change"),
		c.Conflicts)
}

// backText describes how much is missing in a store that went back to an earlier state.
func backText(b *api.Back) string {
	switch {
	case b.Emptied:
		return "all that was written is missing"
	case b.All == 0:
		return "nothing is known to be missing"
	}
	return fmt.Sprintf("%s missing, %d of them of this host", cli.Counted(int(b.All), "write"), b.Own)
}

func secondsText(s float64) string {
	return time.Duration(s * float64(time.Second)).Round(100 * time.Millisecond).String()
}

func selfText(name string, c *api.ClusterStatus) string {
	others := "no other is there"
	if n := len(c.Others); n > 0 {
		others = fmt.Sprintf("%s there: %s", cli.Counted(n, "other"), strings.Join(c.Others, ", "))
	}
	if c.Away != "" || c.Refused != "" {
		others = "which others are there is not known"
	}
	return fmt.Sprintf("%s (%s), %s; %s", name, c.HostID, cli.StateText(c.HostState), others)
}

func waitingText(c *api.ClusterStatus) string {
	if c.Waiting == 0 {
		return "nothing; the store has heard of everything"
	}
	return fmt.Sprintf("%d releases and uses of headroom to be sent, the first since %s", c.Waiting,
		cli.LocalTime(c.Oldest))
}

func headroomText(all []ipam.HeadroomState) string {
	if len(all) == 0 {
		return "none is wanted"
	}
	var texts []string
	for _, h := range all {
		texts = append(texts, fmt.Sprintf("%d of %d on %s (%s)", h.Claimed, h.Wanted, h.Subnet, h.Network))
	}
	return strings.Join(texts, ", ")
}
