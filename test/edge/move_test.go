//go:build edge

package edge_test

import (
	"testing"
	"time"
)

// TestTwoHosts: an address leads to a guest of one host, and then to one of another.
func TestTwoHosts(t *testing.T) {
	c := newCluster(t, "")
	h1, h2 := c.hosts[0], c.hosts[1]
	g1, g2 := h1.newGuest("g1"), h2.newGuest("g2")
	t.Log(h1.berth("elastic", "associate", elastic4.String(), g1.mac))
	t.Log(h1.berth("elastic", "show", elastic4.String()))
	t.Log(c.reaches(elastic4, "g1", time.Second))
	t.Log(h1.berth("elastic", "associate", elastic4.String(), g2.mac, "--move"))
	t.Log(h1.berth("elastic", "show", elastic4.String()))
	t.Log(c.reaches(elastic4, "g2", time.Second))
}
