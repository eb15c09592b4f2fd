package ipamtest

import (
	"context"
	"encoding/json"
	"net/netip"
	"path/filepath"
	"testing"
	"time"

	"berth/internal/allocator"
	"berth/internal/golden"
	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
	"berth/store"
	"berth/store/storetest"
)

// goldenPlan has a record of every kind that a host has in a store of its own.
const goldenPlan = PlanForEdits + `
	network seen type=dynamic subnet=10.3.0.0/24,gw=10.3.0.1 rule=vm-*=owner:vm/*
	reserve seen vm/1
	network office mac=aa:00:00 link=h1,bridged,br0 quarantine=1h
	subnet office 10.4.0.0/24 gw=10.4.0.1 pool
	network.set office static=10.4.0.200-10.4.0.220
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

// goldenEdits are the edits for which scripts have no words.
var goldenEdits = []ipam.Edit{
	&ipam.ModifyNetwork{Network: "office", Elastic: new("on")},
	&ipam.CreateAccount{Account: "shop", Owners: []string{"web"}},
	&ipam.AddElasticRange{Range: MustRange("203.0.113.0/28")},
	&ipam.AllocateElastic{Account: "shop"},
	&ipam.AllocateElastic{},
	&ipam.AssociateElastic{Address: netip.MustParseAddr("203.0.113.0"), Instance: "web", Network: "office"},
	&ipam.RecordWorker{Project: "shop", Service: "migrate", Hash: "1f", Image: "sha256:2e"},
	&ipam.KeepOrphan{Volume: "shop_data", Project: "shop", Service: "db", Host: "h1"},
	&ipam.LockDeploy{Project: "shop", ID: ipam.ID{1}, Host: "h1", PID: 17, TTL: ipam.Duration(time.Minute)},
}

// goldenState is what a test must know about the golden records.
type goldenState struct {
	Now   time.Time
	Pools map[string]ipam.ID // of Docker networks, by their names in goldenPlan
}

// Golden returns a stage with the records that 1.0 wrote (golden/1.0/state.txt), at the time when it wrote them.
// No service is open yet.
func Golden(t testing.TB) *Stage {
	t.Helper()
	if golden.Read(t, "state.txt") == nil {
		writeGolden(t)
	}
	var was goldenState
	fine(t, json.Unmarshal(golden.Read(t, "state.json"), &was))
	r := &Stage{T: t, Path: filepath.Join(t.TempDir(), "berth.db"), Clock: &Clock{Time: was.Now}, Host: "h1",
		Pools: was.Pools}
	r.Store = storetest.NewFaulty(OpenStore(t, r.Path))
	t.Cleanup(func() { r.Store.Close() })
	err := r.Store.Update(ctx, func(tx store.Tx) error {
		for _, rec := range golden.Records(t, "state.txt") {
			if err := tx.Put(rec.Key, rec.Value); err != nil {
				return err
			}
		}
		return nil
	})
	fine(t, err)
	return r
}

// mapped makes the edge report all that it must map.
func (r *Stage) mapped() {
	r.T.Helper()
	for news, err := range r.S.EdgeNews(ctx, true) {
		fine(r.T, err)
		var report ipam.EdgeReport
		for _, m := range news.Set {
			report.Applied = append(report.Applied, ipam.EdgeApplied{Address: m.Elastic, Association: m.Association,
				Guest: m.Guest})
		}
		if err := r.S.ReportEdge(ctx, report); err != nil || len(report.Applied) == 0 {
			r.T.Fatalf("%+v, %v", report, err)
		}
		return
	}
}

// writeGolden writes state.txt and state.json.
func writeGolden(t testing.TB) {
	r := New(t)
	r.Run(goldenPlan)
	if _, err := r.S.Edit(ctx, ipam.EditOptions{Key: "golden"}, goldenEdits...); err != nil {
		t.Fatal(err)
	}
	r.mapped()
	err := r.S.Ledger.Update(ctx, func(c *ledger.Change) error {
		return allocator.WriteStandIn(c, &ipam.StandIn{Name: "shop-web-4", ID: "17", For: "shop-web-2", Host: r.Host,
			Since: r.Clock.Now()})
	})
	fine(t, err)
	r.Open() // the start may write, too
	var all []store.Record
	err = r.Store.View(ctx, func(tx store.Tx) error {
		for rec, err := range tx.Scan(store.Range{}) {
			if err != nil {
				return err
			}
			all = append(all, rec)
		}
		golden.WriteRecords(t, "state.txt", "The records of a state of 1.0: key and value of each, in hexadecimal. "+
			"shown.json is what Berth shows of them.", all)
		return nil
	})
	fine(t, err)
	state, err := json.MarshalIndent(goldenState{Now: r.Clock.Now(), Pools: r.Pools}, "", " ")
	fine(t, err)
	golden.Write(t, "state.json", append(state, '\n'))
}

// Upgrading upgrades a state of an older format without a backup.
func Upgrading() ledger.Upgrading {
	return ledger.Upgrading{Backup: func(context.Context, int) (string, error) { return "", nil }}
}
