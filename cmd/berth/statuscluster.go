package main

import (
	"fmt"
	"strings"
	"time"

	"berth/internal/admin"
	"berth/internal/ipam"
)

// This file says of a shared store and its hosts what `berth status` shows.

func clusterText(c *admin.ClusterStatus) string {
	id := c.ID
	if id == "" {
		id = "not known yet"
	}
	return fmt.Sprintf("%s, in etcd under %s at %s", id, c.Prefix, strings.Join(c.Endpoints, ", "))
}

// reachText says whether the store is in reach, since when not and why, and how old is what was read of it.
func reachText(c *admin.ClusterStatus) string {
	age := "nothing of it was read since the daemon began"
	if !c.Fresh.IsZero() {
		age = fmt.Sprintf("what is known of it is %s old", secondsText(c.Age))
	}
	switch {
	case c.Away != "":
		return fmt.Sprintf("out of reach since %s; %s: %s", localTime(c.Since), age, c.Away)
	case c.Refused != "":
		return fmt.Sprintf("refused since %s: %s", localTime(c.Since), c.Refused)
	}
	return fmt.Sprintf("in reach; %s; %s, %d of them made again", age, counted(int(c.Updates), "change"), c.Conflicts)
}

func secondsText(s float64) string {
	return time.Duration(s * float64(time.Second)).Round(100 * time.Millisecond).String()
}

func selfText(name string, c *admin.ClusterStatus) string {
	others := "no other is there"
	if n := len(c.Others); n > 0 {
		others = fmt.Sprintf("%s there: %s", counted(n, "other"), strings.Join(c.Others, ", "))
	}
	if c.Away != "" || c.Refused != "" {
		others = "which others are there is not known"
	}
	return fmt.Sprintf("%s (%s), %s; %s", name, c.HostID, stateText(c.HostState), others)
}

func waitingText(c *admin.ClusterStatus) string {
	if c.Waiting == 0 {
		return "nothing; the store has heard of everything"
	}
	return fmt.Sprintf("%d to be told, releases and uses of headroom, the first since %s", c.Waiting, localTime(c.Oldest))
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
