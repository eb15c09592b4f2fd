package crash

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"berth/internal/admin/client"
	"berth/internal/ipam"
)

// plannedShape is what a network may look like between two changes of the plan.
type plannedShape struct {
	cidr, gateway string
	pools         []string
}

func (s plannedShape) edits() []ipam.Edit {
	cidr, gateway := netip.MustParsePrefix(s.cidr), netip.MustParseAddr(s.gateway)
	edits := []ipam.Edit{
		&ipam.RemovePool{Network: "lan", Pool: "front"},
		&ipam.ModifySubnet{Network: "lan", Subnet: "wire", CIDR: &cidr, Gateway: &gateway},
	}
	for _, pool := range s.pools {
		var r ipam.Range
		if err := r.UnmarshalText([]byte(pool)); err != nil {
			panic(err)
		}
		edits = append(edits, &ipam.AddPool{Network: "lan", Name: "front", Range: r})
	}
	return edits
}

func (s plannedShape) String() string { return fmt.Sprintf("%s %s %v", s.cidr, s.gateway, s.pools) }

// shapes are what the network is changed to in turns: larger and smaller, with other pools.
var shapes = []plannedShape{
	{"10.8.0.0/24", "10.8.0.1", []string{"10.8.0.16/28", "10.8.0.64/26"}},
	{"10.8.0.0/23", "10.8.1.254", []string{"10.8.0.16-10.8.0.40", "10.8.1.0/25"}},
	{"10.8.0.0/26", "10.8.0.62", []string{"10.8.0.16/28"}},
}

// TestReplan kills the daemon while a network is resized and its pools are changed (GA-13, GA-14): it is as it was, or
// as it was to be, and never in between; the address that is in use stays.
func TestReplan(t *testing.T) { eachStore(t, replan) }

func replan(t *testing.T, p *place) {
	random := rand.New(rand.NewPCG(1, 2))
	d := p.start()
	c := client.New(p.admin())
	defer c.Close()
	ctx := context.Background()
	first := shapes[0]
	if _, err := c.Edit(ctx, client.EditOptions{}, &ipam.CreateNetwork{Name: "lan", Space: p.space,
		Subnets: []ipam.SubnetSpec{{CIDR: netip.MustParsePrefix(first.cidr), Name: "wire",
			Gateway: netip.MustParseAddr(first.gateway)}}},
		&ipam.AddPool{Network: "lan", Name: "front", Subnet: "wire"},
		&ipam.TakeAddress{Network: "lan", Owner: "rtr",
			Interface: ipam.Interface{Wishes: []ipam.Wish{{Address: netip.MustParseAddr("10.8.0.20")}}}},
	); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Edit(ctx, client.EditOptions{}, first.edits()...); err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for range sample(*rounds) {
		replanUntilKilled(t, d, c, random)
		c.Close()
		d = p.start()
		n, err := c.Network(ctx, "lan")
		if err != nil {
			t.Fatal(err)
		}
		shape := shapeOf(n)
		if !slices.ContainsFunc(shapes, func(s plannedShape) bool { return s.String() == shape.String() }) {
			t.Fatalf("the network is neither as it was nor as it was to be: %v", shape)
		}
		seen[shape.cidr]++
		if taken, err := c.Addresses(ctx, "lan", "rtr"); err != nil || len(taken) != 1 ||
			taken[0].Address.String() != "10.8.0.20" {
			t.Fatalf("the address in use: %v, %v", taken, err)
		}
		d.fsck()
	}
	d.stop()
	t.Logf("killed %d times; left as %v", sample(*rounds), seen)
}

// replanUntilKilled changes the network from shape to shape, and kills the daemon at some moment.
func replanUntilKilled(t *testing.T, d *daemon, c *client.Client, random *rand.Rand) {
	t.Helper()
	changes := make(chan error)
	go func() {
		for i := 0; ; i++ {
			if _, err := c.Edit(context.Background(), client.EditOptions{},
				shapes[i%len(shapes)].edits()...); err != nil {
				changes <- err
				return
			}
			changes <- nil
		}
	}()
	for range 1 + random.IntN(20) {
		if err := <-changes; err != nil {
			t.Fatal(err)
		}
	}
	time.AfterFunc(time.Duration(random.IntN(2000))*time.Microsecond, d.kill) // any moment of the next change will do
	for {
		select {
		case err := <-changes:
			if err != nil {
				<-d.ended
				return
			}
		case <-time.After(patience):
			t.Fatal("the daemon was killed, and the changes go on")
		}
	}
}

func shapeOf(n ipam.NetworkInfo) plannedShape {
	sub := n.Subnets[0]
	shape := plannedShape{cidr: sub.CIDR.String(), gateway: sub.Gateway.String()}
	for _, pool := range sub.Pools {
		var r ipam.Range
		if err := r.UnmarshalText([]byte(pool.Start.String() + "-" + pool.End.String())); err != nil {
			panic(err)
		}
		shape.pools = append(shape.pools, r.String())
	}
	return shape
}
