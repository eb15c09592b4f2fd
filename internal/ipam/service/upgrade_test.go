package service_test

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
	"berth/store"
	"berth/store/storetest"
)

// formerState is what testdata/v1.json tells of the records in testdata/v1.txt: what the version that wrote them showed
// after its next start. Lists are kept as that version wrote them.
type formerState struct {
	Now                             time.Time
	Pools                           map[string]ipam.ID // of Docker networks, by what is special about them
	Spaces, Subnets, Leases, Events []json.RawMessage
}

// record is one of a store, on its way there.
type record struct{ key, value []byte }

func formerRecords(t testing.TB) (all []record) {
	t.Helper()
	for line := range strings.Lines(scriptFile(t, "v1.txt")) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		key, value, ok := strings.Cut(strings.TrimSpace(line), " ")
		k, err := hex.DecodeString(key)
		v, err2 := hex.DecodeString(value)
		if !ok || err != nil || err2 != nil {
			t.Fatalf("%q: %v, %v", line, err, err2)
		}
		all = append(all, record{k, v})
	}
	return all
}

// former is a fresh store with the given records, and the clock of those who wrote them.
func former(t testing.TB, records []record) (*ipamtest.Room, formerState) {
	t.Helper()
	var was formerState
	if err := json.Unmarshal([]byte(scriptFile(t, "v1.json")), &was); err != nil {
		t.Fatal(err)
	}
	r := &ipamtest.Room{T: t, Path: filepath.Join(t.TempDir(), "berth.db"), Clock: &ipamtest.Clock{Time: was.Now},
		Host: "h1", Pools: was.Pools}
	r.Store = storetest.NewFaulty(ipamtest.OpenStore(t, r.Path))
	t.Cleanup(func() { r.Store.Close() })
	for len(records) > 0 {
		page := records[:min(len(records), store.MaxWrites)]
		err := r.Store.Update(ctx, func(tx store.Tx) error {
			for _, rec := range page {
				if err := tx.Put(rec.key, rec.value); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		records = records[len(page):]
	}
	return r, was
}

// lacks tells where got lacks something that want has. Both are decoded JSON.
func lacks(path string, want, got any) []string {
	switch want := want.(type) {
	case map[string]any:
		has, _ := got.(map[string]any)
		var all []string
		for key, value := range want {
			all = append(all, lacks(path+"."+key, value, has[key])...)
		}
		return all
	case []any:
		has, _ := got.([]any)
		if len(has) != len(want) {
			return []string{fmt.Sprintf("%s: %d, want %d", path, len(has), len(want))}
		}
		var all []string
		for i := range want {
			all = append(all, lacks(fmt.Sprintf("%s[%d]", path, i), want[i], has[i])...)
		}
		return all
	}
	if want != got {
		return []string{fmt.Sprintf("%s is %v, it was %v", path, got, want)}
	}
	return nil
}

// shows holds a list of today against the former one: all of that is there.
func shows[T any](t *testing.T, what string, was []json.RawMessage, now []T) {
	t.Helper()
	raw, err := json.Marshal(now)
	if err != nil {
		t.Fatal(err)
	}
	var got, want any
	text, err := json.Marshal(was)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(json.Unmarshal(raw, &got), json.Unmarshal(text, &want)); err != nil {
		t.Fatal(err)
	}
	for _, problem := range lacks(what, want, got) {
		t.Error(problem)
	}
}

// GA-26: what this format wrote opens in each later version, and everything is as it was.
func TestGA26Upgrade(t *testing.T) {
	r, was := former(t, formerRecords(t))
	r.Open()
	if problems, err := r.S.Check(ctx); err != nil || len(problems) > 0 {
		t.Fatalf("%q, %v", problems, err)
	}
	spaces, err := r.S.Spaces(ctx)
	if err != nil {
		t.Fatal(err)
	}
	subnets, err := r.S.Subnets(ctx, "")
	if err != nil {
		t.Fatal(err)
	}
	events, err := r.S.Events(ctx, ipam.EventFilter{})
	if err != nil {
		t.Fatal(err)
	}
	shows(t, "spaces", was.Spaces, spaces)
	shows(t, "subnets", was.Subnets, subnets)
	shows(t, "leases", was.Leases, ipamtest.ListLeases(t, r.S, ipam.LeaseFilter{Remembered: true}))
	last := len(was.Events)
	shows(t, "events", was.Events, events[:last])
	// BO-12: what a crash has left of a subnet is swept away, and told
	for _, e := range events[last:] {
		if e.Verb != ipam.LeaseReleased || e.Subnet.Bits() != 0 {
			t.Errorf("%+v", e)
		}
	}
	r.Reopened()

	for _, sub := range subnets {
		n := r.Show(sub.Network)
		if n.ID != sub.NetworkID || n.Name != "net-"+n.ID.Short() || n.Space != sub.Space || n.Planned ||
			n.Docker != len(sub.Attachments) || len(n.Subnets) != 1 || n.Subnets[0].ID != sub.ID {
			t.Errorf("%+v\n%+v", sub, n)
		}
		first, gateway := n.CIDR, n.Gateway
		if sub.CIDR.Addr().Is6() {
			first, gateway = n.CIDR6, n.Gateway6
		}
		if first != sub.CIDR || gateway != sub.Gateway || n.Subnets[0].Pools[0].Start != sub.Pools[0].Range.From() ||
			n.Use.Leased != sub.Use.Leased {
			t.Errorf("%+v\n%+v", sub, n)
		}
		if got := r.Show(n.ID.String()); got.Name != n.Name {
			t.Errorf("network %s is %s by its id", n.Name, got.Name)
		}
	}
}

// GA-26, invariant 5: the ids that Docker knows are good after an upgrade, and who asks again gets what was theirs.
func TestGA26DockerGoesOn(t *testing.T) {
	r, _ := former(t, formerRecords(t))
	r.Open()
	r.Run(`
		# what is held, what is remembered and in quarantine, what was asked for by address, and something new
		ask front web mac=1 -> 10.1.0.128
		ask front old mac=99 -> 10.1.0.130
		ask front gone mac=98 -> 10.1.0.78
		ask front mac=97 -> 10.1.0.131
		ask front mac=96 ip=10.1.0.77 ! inuse; fixed
		ask front mac=96 ip=10.1.0.2 ! inuse; auxiliary
		gateway front ip=10.1.0.1 -> 10.1.0.1
		back front 10.1.0.1
		ask shared1 one mac=6 -> 10.2.0.16
		ask shared1 mac=95 -> 10.2.0.17
		ask shared2 two mac=7 -> 10.2.0.32
		gateway shared2 ip=10.2.0.254 -> 10.2.0.254
		gateway bare -> 10.3.0.3
		ask bare mac=8 -> 10.3.0.2
		ask named mac=94 -> 10.3.0.17
		ask p31 mac=9 -> 10.3.1.0
		ask p32 mac=93 ! exhausted
		ask six fixed mac=4 -> 2001:db8:1::77
		ask six mac=92 -> 2001:db8:1::3
		ask lab web mac=11 -> 10.1.0.2
		ask kept cut mac=12 -> 10.4.0.1
		ask cut mac=91 ! notfound
		ask ends mac=91 ! notfound
		ask spare mac=91 ! notfound
		# one more network on each
		attach A cidr=10.2.0.0/24 range=10.2.0.64/26
		attach B cidr=10.2.0.0/24 range=10.2.0.0/24 ! overlap; 10.2.0.16/28
		attach C cidr=10.1.0.0/25 ! overlap; 10.1.0.0/24
		attach D cidr=10.1.0.0/24 space=lab -> 10.1.0.0/24
	`)
	// The swarm's replay goes on where it was, and what is left behind ends with the heir.
	if got := ipamtest.MustTake(t, r.S,
		ipam.AddressRequest{Pool: r.Pools["heir"],
			Preferred: netip.MustParseAddr("10.0.9.4")}); got.String() != "10.0.9.4" {
		t.Errorf("replayed: %v", got)
	}
	for name, id := range r.Pools {
		if err := r.S.ReleasePool(ctx, id); err != nil {
			t.Errorf("the end of %s: %v", name, err)
		}
	}
	r.Run("show networks ->")
	if n := ipamtest.CountKeys(t, r.Store, 'l') + ipamtest.CountKeys(t, r.Store, 'a') + ipamtest.CountKeys(t, r.Store,
		'p') +
		ipamtest.CountKeys(t, r.Store, 'n') + ipamtest.CountKeys(t, r.Store, 'i'); n != 0 {
		t.Errorf("%d records are left after the last network", n)
	}
}

// GA-26: networks of before are planned like any other, and stay then.
func TestGA26PlannedAfterwards(t *testing.T) {
	r, _ := former(t, formerRecords(t))
	r.Open()
	name := ""
	for _, sub := range mustSubnets(t, r) {
		if sub.Space == "local" && sub.CIDR.String() == "10.1.0.0/24" {
			name = sub.Network
		}
	}
	r.Run(`
		network.set ` + name + ` name=front
		show front pools -> -:10.1.0.128-10.1.0.255
		show front counts -> held 5 reserved 0 docker 1 planned true
		pool.rm front 10.1.0.128-10.1.0.200
		pool.set front 10.1.0.201-10.1.0.255 high
		exclude front 10.1.0.201-10.1.0.209
		reserve front db
		show front reserved -> db=10.1.0.210
		take front rtr 10.1.0.9
		ask front web mac=1 -> 10.1.0.128
		ask front mac=90 -> 10.1.0.211
		detach front
		show front counts -> held 2 reserved 1 docker 0 planned true
		attach A net=front pool=high -> 10.1.0.0/24 10.1.0.1
		ask A mac=89 -> 10.1.0.212`)
}

func mustSubnets(t testing.TB, r *ipamtest.Room) []ipam.SubnetInfo {
	t.Helper()
	all, err := r.S.Subnets(ctx, "")
	if err != nil {
		t.Fatal(err)
	}
	return all
}
