package metrics

import (
	"context"

	"berth/internal/ipam"

	dto "github.com/prometheus/client_model/go"
)

// Pools are by far the most of what is told: five lines each, and four of what is in no pool. They are made here as
// they are sent, label names in order; the library's registry would check each line anew at every scrape, and sort all
// of them.

// poolState is a value of the label state, with the count of a pool that it stands for.
type poolState struct {
	name string
	of   func(*ipam.PoolUse) float64
}

func poolStates() []poolState {
	return []poolState{
		{"leased", func(u *ipam.PoolUse) float64 { return float64(u.Leased) }},
		{"quarantined", func(u *ipam.PoolUse) float64 { return float64(u.Quarantined) }},
		{"reserved", func(u *ipam.PoolUse) float64 { return float64(u.Reserved) }},
		{"excluded", func(u *ipam.PoolUse) float64 { return number(u.Excluded) }},
		{"free", func(u *ipam.PoolUse) float64 { return number(u.Free) }},
	}
}

// poolLine is one line, all of it in one piece of memory.
type poolLine struct {
	metric dto.Metric
	gauge  dto.Gauge
	value  float64
	labels [5]*dto.LabelPair
}

// poolFamily is what is told of the pools; nil where that is not known, or there is none.
func poolFamily(ctx context.Context, records Records) *dto.MetricFamily {
	all, err := records.Use(ctx)
	if err != nil || len(all) == 0 {
		return nil
	}
	of := row(poolAddresses)
	states := poolStates()
	names := make([]*dto.LabelPair, len(states))
	for i, s := range states {
		names[i] = label("state", s.name)
	}
	lines := make([]poolLine, len(all)*len(states))
	metrics := make([]*dto.Metric, 0, len(lines))
	for i := range all {
		u := &all[i]
		name := "ipv4"
		if u.Subnet.Addr().Is6() {
			name = "ipv6"
		}
		family, network, pool, subnet := label("family", name), label("network", u.Network), label("pool", u.Pool),
			label("subnet", u.Subnet.String())
		for n, s := range states {
			if u.Pool == "" && s.name == string(ipam.AddressFree) {
				continue
			}
			l := &lines[i*len(states)+n]
			l.value = s.of(u)
			l.labels = [5]*dto.LabelPair{family, network, pool, names[n], subnet}
			l.gauge.Value, l.metric.Label, l.metric.Gauge = &l.value, l.labels[:], &l.gauge
			metrics = append(metrics, &l.metric)
		}
	}
	return &dto.MetricFamily{Name: &of.Name, Help: &of.Help, Type: dto.MetricType_GAUGE.Enum(), Metric: metrics}
}

func label(name, value string) *dto.LabelPair { return &dto.LabelPair{Name: &name, Value: &value} }
