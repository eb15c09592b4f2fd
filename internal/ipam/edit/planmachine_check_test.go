package edit_test

import (
	"bytes"
	"net/netip"
	"slices"

	"pgregory.net/rapid"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
)

// check compares all that is shown with the model after each step.
func (mc *planMachine) check(t *rapid.T) {
	problems, err := mc.s.Check(ctx)
	if err != nil || len(problems) > 0 {
		t.Fatalf("check: %q, %v", problems, err)
	}
	n, err := mc.s.Network(ctx, "net1")
	fine(t, err)
	if len(n.Subnets) != len(mc.m.subnets) || n.Docker != len(mc.m.docker) {
		t.Fatalf("%d subnets and %d Docker networks; the model has %d and %d", len(n.Subnets), n.Docker,
			len(mc.m.subnets), len(mc.m.docker))
	}
	listed, err := mc.s.Subnets(ctx, "")
	fine(t, err)
	spaces, err := mc.s.Spaces(ctx)
	fine(t, err)
	records, held := 0, uint64(0)
	for i, sub := range mc.m.subnets {
		mc.checkSubnet(t, sub, &n.Subnets[i])
		records += len(sub.records)
		held += n.Subnets[i].Use.Leased
		one := listed[slices.IndexFunc(listed, func(info ipam.SubnetInfo) bool { return info.CIDR == sub.cidr })]
		if one.Use.Leased != n.Subnets[i].Use.Leased {
			t.Fatalf("%s is listed with %+v, and shown with %+v", sub.cidr, one.Use, n.Subnets[i].Use)
		}
	}
	i := slices.IndexFunc(spaces, func(sp ipam.SpaceInfo) bool { return sp.Name == "local" })
	if n.Use.Leased != held || i < 0 || spaces[i].Leases != held || spaces[i].Subnets != len(mc.m.subnets) {
		t.Fatalf("%d are held; of the network %+v, of spaces %+v", held, n.Use, spaces)
	}
	leases := ipamtest.ListLeases(t, mc.s, ipam.LeaseFilter{Remembered: true})
	for _, l := range leases {
		rec := mc.m.at(l.Address).records[l.Address]
		if rec.kind != l.Kind || rec.held != (l.State == "held") || rec.mac != l.MAC || rec.name != l.Name ||
			rec.held && rec.pool != l.Pool {
			t.Fatalf("the lease %+v is %+v in the model", l, rec)
		}
		if rec.kind != 0 {
			records--
		}
	}
	for res, err := range mc.s.Reservations(ctx, ipam.AddressFilter{}) {
		fine(t, err)
		rec := mc.m.at(res.Address).records[res.Address]
		if rec.owner != res.Owner || rec.held != res.InUse {
			t.Fatalf("the reservation %+v is %+v in the model", res, rec)
		}
		if rec.kind == 0 {
			records--
		}
	}
	if records != 0 {
		t.Fatalf("the model has %d records more", records)
	}
	for a, err := range mc.s.Taken(ctx, ipam.AddressFilter{}) {
		fine(t, err)
		if got := mc.m.taken(a.Owner)[[2]int{a.Interface, a.Slot}]; got != a.Address {
			t.Fatalf("taken: %+v; the model has %v there", a, got)
		}
	}
}

func (mc *planMachine) checkSubnet(t *rapid.T, sub *planSubnet, shown *ipam.SubnetPlan) {
	if shown.CIDR != sub.cidr || shown.Gateway != sub.gateway || len(shown.Pools) != len(sub.pools) ||
		len(shown.Exclusions) != len(sub.exclusions) {
		t.Fatalf("the subnet is shown as %+v\nthe model has %+v", shown, sub)
	}
	for i, x := range sub.exclusions {
		if s := shown.Exclusions[i]; s.Start != x.r.From() || s.End != x.r.To() || s.Note != x.note {
			t.Fatalf("exclusion %d of %s is %+v; the model has %+v", i, sub.cidr, s, x)
		}
	}
	var held, reserved uint64
	for _, rec := range sub.records {
		if rec.held {
			held++
		} else if rec.owner != "" {
			reserved++
		}
	}
	if shown.Use.Leased != held || shown.Use.Reserved != reserved {
		t.Fatalf("%s: %d held and %d reserved; the model has %d and %d", sub.cidr, shown.Use.Leased, shown.Use.Reserved, held,
			reserved)
	}
	available := []netip.Addr{}
	for i, p := range sub.pools {
		var drawn bytes.Buffer
		free := int64(0)
		for a := p.r.From(); a.Compare(p.r.To()) <= 0; a = a.Next() {
			if rec := sub.records[a]; !sub.open(p, a) || rec.held || rec.owner != "" || rec.until.After(mc.m.now) {
				drawn.WriteByte('X')
				continue
			}
			available = append(available, a)
			drawn.WriteByte('.')
			free++
		}
		s := shown.Pools[i]
		if s.Name != p.name || s.Start != p.r.From() || s.End != p.r.To() || s.Map != drawn.String() ||
			s.Free.Int64() != free {
			t.Fatalf("pool %d of %s is %+v; the model has %+v, %s, %d free", i, sub.cidr, s, p, drawn.String(), free)
		}
	}
	slices.SortFunc(available, netip.Addr.Compare)
	if got, err := mc.s.Available(ctx, shown.ID, 1000); err != nil || !slices.Equal(got, available) {
		t.Fatalf("available in %s: %v, %v; the model has %v", sub.cidr, got, err, available)
	}
}
