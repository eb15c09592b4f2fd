package ipamtest

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"berth/internal/golden"
	"berth/internal/ipam"
	"berth/store"
	"berth/store/storetest"
)

// goldenPlan has a record of every kind that a host has in a store of its own.
const goldenPlan = PlanForEdits + `
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

// goldenEdits are those for which scripts have no words.
var goldenEdits = []ipam.Edit{
	&ipam.ModifyNetwork{Network: "office", Elastic: new("on")},
	&ipam.CreateAccount{Account: "shop", Owners: []string{"web"}},
	&ipam.AddElasticRange{Range: MustRange("203.0.113.0/28")},
	&ipam.AllocateElastic{Account: "shop"},
	&ipam.AllocateElastic{},
	&ipam.AssociateElastic{Address: netip.MustParseAddr("203.0.113.0"), Instance: "web", Network: "office"},
	&ipam.LockDeploy{Project: "shop", ID: ipam.ID{1}, Host: "h1", PID: 17, TTL: ipam.Duration(time.Minute)},
}

// goldenState is what a test must know of the golden records.
type goldenState struct {
	Now   time.Time
	Pools map[string]ipam.ID // of Docker networks, by their names in goldenPlan
}

// Golden is a room over the records that 1.0 wrote (golden/1.0/state.txt), at the time when it wrote them. No service
// is open yet.
func Golden(t testing.TB) *Room {
	t.Helper()
	if golden.Read(t, "state.txt") == nil {
		writeGolden(t)
	}
	var was goldenState
	if err := json.Unmarshal(golden.Read(t, "state.json"), &was); err != nil {
		t.Fatal(err)
	}
	r := &Room{T: t, Path: filepath.Join(t.TempDir(), "berth.db"), Clock: &Clock{Time: was.Now}, Host: "h1",
		Pools: was.Pools}
	r.Store = storetest.NewFaulty(OpenStore(t, r.Path))
	t.Cleanup(func() { r.Store.Close() })
	err := r.Store.Update(ctx, func(tx store.Tx) error {
		for _, rec := range GoldenRecords(t, "state.txt") {
			if err := tx.Put(rec.Key, rec.Value); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// writeGolden writes state.txt and state.json.
func writeGolden(t testing.TB) {
	r := New(t)
	r.Run(goldenPlan)
	if _, err := r.S.Edit(ctx, ipam.EditOptions{Key: "golden"}, goldenEdits...); err != nil {
		t.Fatal(err)
	}
	r.Open() // its start may write, too
	var all []store.Record
	err := r.Store.View(ctx, func(tx store.Tx) error {
		for rec, err := range tx.Scan(store.Range{}) {
			if err != nil {
				return err
			}
			all = append(all, rec)
		}
		WriteGoldenRecords(t, "state.txt", "The records of a state of 1.0: key and value of each, in hexadecimal. "+
			"shown.json is what Berth shows of them.", all)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	state, err := json.MarshalIndent(goldenState{Now: r.Clock.Now(), Pools: r.Pools}, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	golden.Write(t, "state.json", append(state, '\n'))
}

// WriteGoldenRecords writes a golden file of records, one a line in hexadecimal.
func WriteGoldenRecords(t testing.TB, name, about string, all []store.Record) {
	t.Helper()
	var text strings.Builder
	fmt.Fprintf(&text, "# %s\n", about)
	for _, rec := range all {
		fmt.Fprintf(&text, "%x %x\n", rec.Key, rec.Value)
	}
	golden.Write(t, name, []byte(text.String()))
}

// GoldenRecords reads a golden file of records.
func GoldenRecords(t testing.TB, name string) (all []store.Record) {
	t.Helper()
	for line := range strings.Lines(string(golden.Read(t, name))) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		key, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		k, err := hex.DecodeString(key)
		v, err2 := hex.DecodeString(value)
		if err != nil || err2 != nil || len(k) == 0 {
			t.Fatalf("%s: %q: %v, %v", name, line, err, err2)
		}
		all = append(all, store.Record{Key: k, Value: v})
	}
	return all
}
