package service_test

import (
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
	"berth/store"
	"berth/store/storetest"
)

// The state that 1.0 writes. The files are written once, before its release, and never again: each later version opens
// what is in them. A new format gets files of its own beside these.
var updateGolden = flag.Bool("update-golden", false, "write testdata/1.0.txt and 1.0.json anew")

// goldenPlan has a record of every kind that a host has in a store of its own.
const goldenPlan = ipamtest.PlanForEdits + `
	network seen type=dynamic subnet=10.3.0.0/24,gw=10.3.0.1 rule=vm-*=owner:vm/*
	reserve seen vm/1
	network office mac=aa:00:00 link=h1,bridged,br0 quarantine=1h subnet=10.4.0.0/24,gw=10.4.0.1,pool static=10.4.0.200-10.4.0.220
	reserve office mail 10.4.0.210
	reserve office cron for=24h
	attach O net=office
	ask O web mac=11
	ask O db mac=12
	ask O gone mac=13
	back O 10.4.0.5
	attach C cidr=10.5.0.0/24 range=10.5.0.64/26 gw=10.5.0.70
	ask C one mac=21
	ask C two mac=22 ip=10.5.0.77
	attach L cidr=10.5.0.0/24 space=lab
	ask L lab mac=23
	attach S six cidr=2001:db8:1::/64
	ask S mac=24 ip=2001:db8:1::77
`

// goldenEdits are what scripts have no words for.
var goldenEdits = []ipam.Edit{
	&ipam.ModifyNetwork{Network: "office", Elastic: new("on")},
	&ipam.CreateAccount{Account: "shop", Owners: []string{"web"}},
	&ipam.AddElasticRange{Range: ipamtest.MustRange("203.0.113.0/28")},
	&ipam.AllocateElastic{Account: "shop"},
	&ipam.AllocateElastic{},
	&ipam.AssociateElastic{Address: netip.MustParseAddr("203.0.113.0"), Instance: "web", Network: "office"},
	&ipam.LockDeploy{Project: "shop", ID: ipam.ID{1}, Host: "h1", PID: 17, TTL: ipam.Duration(time.Minute)},
}

// goldenState is what 1.0 shows of its records.
type goldenState struct {
	Now   time.Time
	Pools map[string]ipam.ID // of Docker networks, by their names in goldenPlan
	Shown map[string]any
}

// shownOf is all that is shown.
func shownOf(t *testing.T, r *ipamtest.Room) map[string]any {
	t.Helper()
	all := map[string]any{}
	add := func(name string, list any, err error) {
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		raw, err := json.Marshal(list)
		if err != nil {
			t.Fatal(err)
		}
		var plain any
		if err := json.Unmarshal(raw, &plain); err != nil {
			t.Fatal(err)
		}
		all[name] = plain
	}
	spaces, err := r.S.Spaces(ctx)
	add("spaces", spaces, err)
	networks, err := r.S.Networks(ctx, ipam.NetworkFilter{})
	add("networks", networks, err)
	for _, n := range networks {
		add("network "+n.Name, r.Show(n.ID.String()), nil)
	}
	subnets, err := r.S.Subnets(ctx, "")
	add("subnets", subnets, err)
	add("leases", ipamtest.ListLeases(t, r.S, ipam.LeaseFilter{Remembered: true}), nil)
	accounts, err := r.S.Accounts(ctx)
	add("accounts", accounts, err)
	ranges, err := r.S.ElasticRanges(ctx)
	add("elastic ranges", ranges, err)
	elastics, err := r.S.Elastics(ctx, "", netip.Addr{}, 100)
	add("elastic addresses", elastics, err)
	events, err := r.S.Events(ctx, ipam.EventFilter{})
	add("events", events, err)
	return all
}

func goldenPath(name string) string { return filepath.Join("testdata", name) }

// writeGolden writes the files.
func writeGolden(t *testing.T) {
	r := ipamtest.New(t)
	r.Run(goldenPlan)
	if _, err := r.S.Edit(ctx, ipam.EditOptions{Key: "golden"}, goldenEdits...); err != nil {
		t.Fatal(err)
	}
	r.Open() // what is shown is what a start reads
	var text strings.Builder
	text.WriteString("# The records of a state of 1.0: key and value of each, in hexadecimal. 1.0.json is what is shown of " +
		"them.\n")
	err := r.Store.View(ctx, func(tx store.Tx) error {
		for rec, err := range tx.Scan(store.Range{}) {
			if err != nil {
				return err
			}
			fmt.Fprintf(&text, "%x %x\n", rec.Key, rec.Value)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	shown, err := json.MarshalIndent(goldenState{Now: r.Clock.Now(), Pools: r.Pools, Shown: shownOf(t, r)}, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{"1.0.txt": []byte(text.String()), "1.0.json": append(shown, '\n')} {
		if err := os.WriteFile(goldenPath(name), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// golden is a store with the records of 1.0, and the clock of those who wrote them.
func golden(t *testing.T) (*ipamtest.Room, goldenState) {
	t.Helper()
	if *updateGolden {
		writeGolden(t)
	}
	var was goldenState
	if err := json.Unmarshal([]byte(scriptFile(t, "1.0.json")), &was); err != nil {
		t.Fatal(err)
	}
	r := &ipamtest.Room{T: t, Path: filepath.Join(t.TempDir(), "berth.db"), Clock: &ipamtest.Clock{Time: was.Now},
		Host: "h1", Pools: was.Pools}
	r.Store = storetest.NewFaulty(ipamtest.OpenStore(t, r.Path))
	t.Cleanup(func() { r.Store.Close() })
	kinds := map[byte]bool{}
	err := r.Store.Update(ctx, func(tx store.Tx) error {
		for line := range strings.Lines(scriptFile(t, "1.0.txt")) {
			if strings.HasPrefix(line, "#") {
				continue
			}
			key, value, _ := strings.Cut(strings.TrimSpace(line), " ")
			k, err := hex.DecodeString(key)
			v, err2 := hex.DecodeString(value)
			if err != nil || err2 != nil || len(k) == 0 {
				t.Fatalf("%q: %v, %v", line, err, err2)
			}
			kinds[k[0]] = true
			if err := tx.Put(k, v); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []byte("adefgiklmnpstu") { // the others are those of a store that hosts share, and of an edge
		if !kinds[kind] {
			t.Errorf("the golden state has no record of the kind %c", kind)
		}
	}
	return r, was
}

// GA-26, formats: a state of 1.0 opens, is sound, and shows what it showed.
func TestGoldenState(t *testing.T) {
	r, was := golden(t)
	r.Open()
	if problems, err := r.S.Check(ctx); err != nil || len(problems) > 0 {
		t.Fatalf("%q, %v", problems, err)
	}
	if diff := cmp.Diff(was.Shown, shownOf(t, r)); diff != "" {
		t.Errorf("shown otherwise than by 1.0 (-1.0 +now):\n%s", diff)
	}
}

// GA-26, invariant 5: the ids that Docker knows are good, who asks again gets what was theirs, and all of it can end.
func TestGoldenStateGoesOn(t *testing.T) {
	r, _ := golden(t)
	r.Open()
	r.Run(`
		ask O web mac=11 -> 10.4.0.3
		ask O db mac=12 -> 10.4.0.4
		ask O other mac=97 -> 10.4.0.6
		ask O gone mac=99 -> 10.4.0.5
		ask O mail mac=98 -> 10.4.0.210
		ask C one mac=21 -> 10.5.0.64
		ask C mac=96 ip=10.5.0.77 ! inuse
		ask L lab mac=23 -> 10.5.0.1
		ask S mac=24 ip=2001:db8:1::77 -> 2001:db8:1::77
		attach D cidr=10.5.0.0/24 range=10.5.0.0/25 ! overlap
		reserve office later -> 10.4.0.7
	`)
	for name, id := range r.Pools {
		if err := r.S.ReleasePool(ctx, id); err != nil {
			t.Errorf("the end of %s: %v", name, err)
		}
	}
	r.Run("show networks -> net1 office seen spare") // Docker's own ended with it
}
