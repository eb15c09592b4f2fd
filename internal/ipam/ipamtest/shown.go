package ipamtest

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"berth/internal/ipam"
	"berth/store"
)

// Everything returns all that Berth shows now.
func (r *Stage) Everything() (all Shown) {
	r.T.Helper()
	var err error
	if all.Networks, err = r.S.Networks(ctx, ipam.NetworkFilter{}); err != nil {
		r.T.Fatal(err)
	}
	for _, n := range all.Networks {
		all.Whole = append(all.Whole, r.Show(n.Name))
	}
	if all.Subnets, err = r.S.Subnets(ctx, ""); err != nil {
		r.T.Fatal(err)
	}
	all.Leases = ListLeases(r.T, r.S, ipam.LeaseFilter{Remembered: true})
	all.Reservations = r.Reservations(ipam.AddressFilter{})
	all.Taken = r.Taken(ipam.AddressFilter{})
	return all
}

// Shown is all that Berth shows.
type Shown struct {
	Networks     []ipam.NetworkInfo
	Whole        []ipam.NetworkInfo // with their maps
	Subnets      []ipam.SubnetInfo
	Leases       []ipam.LeaseInfo
	Reservations []ipam.ReservationInfo
	Taken        []ipam.TakenAddress
}

// ShowOptions are the options for comparing what Berth shows.
var ShowOptions = cmp.Options{
	cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{}),
	cmp.Comparer(func(a, b ipam.Count) bool { return a.Int.Cmp(b.Int) == 0 }),
	cmp.Comparer(func(a, b ipam.Range) bool { return a == b }),
	cmpopts.EquateEmpty(),
}

// ShownDiff reports where two differ. Mostly they do not, and DeepEqual finds that out a hundred times faster.
func ShownDiff(a, b Shown) string {
	if reflect.DeepEqual(a, b) {
		return ""
	}
	return cmp.Diff(a, b, ShowOptions)
}

// Show returns an existing network.
func (r *Stage) Show(network string) ipam.NetworkInfo {
	r.T.Helper()
	n, err := r.S.Network(ctx, network)
	if err != nil {
		r.T.Fatalf("network %s: %v", network, err)
	}
	return n
}

// Reservations lists the reservations that match a filter.
func (r *Stage) Reservations(f ipam.AddressFilter) (all []ipam.ReservationInfo) {
	r.T.Helper()
	for info, err := range r.S.Reservations(ctx, f) {
		fine(r.T, err)
		all = append(all, info)
	}
	return all
}

// Taken lists the addresses that owners hold and that match a filter.
func (r *Stage) Taken(f ipam.AddressFilter) (all []ipam.TakenAddress) {
	r.T.Helper()
	for info, err := range r.S.Taken(ctx, f) {
		fine(r.T, err)
		all = append(all, info)
	}
	return all
}

// Dump returns every record of a store by its quoted key. On etcd it leaves out two kinds.
func Dump(t rapid.TB, st store.Store) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := st.View(context.Background(), func(tx store.Tx) error {
		clear(all)
		for rec, err := range tx.Scan(store.Range{}) {
			if err != nil {
				return err
			}
			all[fmt.Sprintf("%q", rec.Key)] = string(rec.Value)
		}
		return nil
	})
	fine(t, err)
	// the records of hosts, and the number of the last change of the plan
	if *OverEtcd != "" {
		maps.DeleteFunc(all, func(key, _ string) bool {
			return key == `"mplan"` || strings.HasPrefix(key, `"h`)
		})
	}
	return all
}

// LastEvent returns the id of the last event.
func LastEvent(t testing.TB, r *Stage) uint64 {
	t.Helper()
	all, err := r.S.Events(ctx, ipam.EventFilter{Last: 1})
	if err != nil || len(all) == 0 {
		t.Fatal(len(all), err)
	}
	return all[0].ID
}

// EventsAfter lists the events after an id.
func EventsAfter(t testing.TB, r *Stage, last uint64) []ipam.Event {
	t.Helper()
	all, err := r.S.Events(ctx, ipam.EventFilter{After: last})
	fine(t, err)
	return all
}

// Counted writes counts as a map of those that are not zero is printed.
func Counted(n *ipam.StateCounts) string {
	all := map[ipam.AddressState]string{}
	for _, state := range ipam.AddressStates() {
		if of := n.Of(state); of.Sign() != 0 {
			all[state] = of.String()
		}
	}
	return fmt.Sprint(all)
}
