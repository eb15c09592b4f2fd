package metrics

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Board is the board for Grafana, in its JSON: rows for pools, requests, findings and the cluster. It asks the data
// source that it is imported with, for the hosts and networks that its variables choose.
func Board() ([]byte, error) {
	b := board{Title: "Berth", UID: "berth", Schema: 39, Refresh: "30s", Timezone: "browser", Tags: []string{"berth"},
		Time: span{"now-6h", "now"},
		Inputs: []input{{Name: "DS_PROMETHEUS", Label: "Prometheus", Type: "datasource", PluginID: "prometheus",
			PluginName: "Prometheus"}}}
	b.Templating.List = []variable{
		choice("host", "Host", "label_values("+buildInfo+", instance)"),
		choice("network", "Network", "label_values("+poolAddresses+"{instance=~\"$host\"}, network)"),
	}
	for _, r := range boardRows() {
		b.row(r)
	}
	text, err := json.MarshalIndent(&b, "", "  ")
	return append(text, '\n'), err
}

// boardRow is a row of panels.
type boardRow struct {
	title  string
	panels []boardPanel
}

// boardPanel is what a panel shows: kind and unit are Grafana's words.
type boardPanel struct {
	title, kind, unit, legend string
	expr                      string
	width                     int
	levels                    []float64 // from which on a value is yellow, and red
}

// What all hosts of a cluster tell alike is counted once.
const (
	chosenHost  = `instance=~"$host"`
	chosenPools = chosenHost + `, network=~"$network"`
	freeOfPool  = `max by (network, subnet, pool) (` + poolAddresses + `{` + chosenPools + `, pool!="", state="free"})`
	giveOfPool  = `sum by (network, subnet, pool) (max by (network, subnet, pool, state) (` + poolAddresses + `{` +
		chosenPools + `, pool!="", state!="excluded"}))`
	usedOfPool = `100 * (1 - ` + freeOfPool + ` / (` + giveOfPool + ` > 0))`
)

func boardRows() []boardRow {
	of := func(metric string) string { return metric + "{" + chosenHost + "}" }
	rate := func(metric, by string) string { return fmt.Sprintf("sum by (%s) (rate(%s[5m]))", by, of(metric)) }
	slow := func(metric, by string) string {
		return fmt.Sprintf("histogram_quantile(0.99, sum by (le%s) (rate(%s[5m])))", by, of(metric+"_bucket"))
	}
	full := []float64{80, 90}
	const series = "timeseries"
	return []boardRow{
		{"Pools", []boardPanel{
			{"The fullest pools", "gauge", "percent", "{{network}} {{pool}}", "topk(8, " + usedOfPool + ")", 12, full},
			{"The ten fullest networks", "bargauge", "percent", "{{network}}", "topk(10, max by (network) (" + usedOfPool + "))",
				12, full},
			{"Use of each pool", series, "percent", "{{network}} {{pool}}", usedOfPool, 12, full},
			{"Addresses by state", series, "short", "{{state}}", "sum by (state) (max by (network, subnet, pool, state) (" +
				poolAddresses + "{" + chosenPools + "}))", 12, nil},
			{"Leases of DHCP servers", series, "short", "{{network}} {{state}}", "max by (network, state) (" + dhcpLeases +
				"{" + chosenPools + "})", 12, nil},
			{"Elastic addresses", series, "short", "{{range}} {{state}}", "max by (range, state) (" + of(elasticAddresses) + ")",
				12, nil},
		}},
		{"Requests", []boardPanel{
			{"Requests of the engine", series, "ops", "{{op}} {{result}}", rate(requests, "op, result"), 12, nil},
			{"Time of the slowest in a hundred requests", series, "s", "{{op}}", slow(requestDuration, ", op"), 12, nil},
			{"Questions which container asks", series, "ops", "{{answer}}", rate(questions, "answer"), 8, nil},
			{"Containers put back to their addresses", series, "ops", "{{result}}", rate(putBack, "result"), 8, nil},
			{"Questions for names", series, "ops", "{{rcode}}", rate(dnsQueries, "rcode"), 8, nil},
		}},
		{"Findings", []boardPanel{
			{"What is wrong now", "stat", "short", "findings", "sum(" + of(findings) + ")", 4, []float64{1, 1}},
			{"What is wrong, by kind", series, "short", "{{instance}} {{kind}}", of(findings) + " > 0", 10, nil},
			{"Events", series, "ops", "{{verb}}", rate(events, "verb"), 10, nil},
			{"Hooks that failed", series, "ops", "{{instance}}", rate(hookFailures, "instance"), 6, nil},
			{"Attempts of webhooks that failed", series, "ops", "{{instance}}", rate(webhookFailures, "instance"), 6, nil},
			{"Events that a receiver refused", series, "short", "{{instance}}", of(webhookAside), 6, nil},
			{"Age of the oldest event not sent", series, "s", "{{instance}}", of(webhookLag), 6, nil},
		}},
		{"Cluster", []boardPanel{
			{"Stores that take changes", "stat", "short", "{{instance}} {{store}}", of(storeUp), 8, nil},
			{"Time since the engine was looked at", "stat", "s", "{{instance}}", "time() - (" + of(witnessSuccess) + " > 0)", 8,
				[]float64{300, 900}},
			{"Elastic addresses that lead nowhere", "stat", "short", "{{host}}", "max by (host) (" + of(elasticUnapplied) + ")",
				8, []float64{1, 1}},
			{"Addresses ahead of need", series, "short", "{{instance}} {{network}} {{subnet}}", headroom + "{" + chosenPools +
				"}", 6, nil},
			{"Time of the slowest in a hundred commits", series, "s", "{{instance}}", slow(storeCommit, ", instance"), 6, nil},
			{"Size of the store's file", series, "bytes", "{{instance}}", of(storeBytes), 6, nil},
			{"Names that are answered for", series, "short", "{{instance}}", of(dnsNames), 6, nil},
		}},
	}
}

// Sizes of a panel, in Grafana's grid.
const (
	boardWidth  = 24
	panelHeight = 8
)

// row adds a row, its panels beside one another as far as they fit.
func (b *board) row(r boardRow) {
	from := dataSource{"prometheus", "${DS_PROMETHEUS}"}
	b.add(panel{Title: r.title, Type: "row", Place: place{0, b.height, boardWidth, 1}})
	b.height++
	x := 0
	for _, of := range r.panels {
		if x+of.width > boardWidth {
			x, b.height = 0, b.height+panelHeight
		}
		p := panel{Title: of.title, Type: of.kind, Source: &from, Place: place{x, b.height, of.width, panelHeight},
			Fields:  &fields{Overrides: []struct{}{}},
			Targets: []target{{Expr: of.expr, Legend: of.legend, Ref: "A", Instant: of.kind != "timeseries"}}}
		d := &p.Fields.Defaults
		if d.Unit = of.unit; of.unit == "percent" {
			d.Min, d.Max = new(float64), new(float64)
			*d.Max = 100
		}
		d.Thresholds = thresholds{"absolute", []step{{"green", nil}}}
		for i, colour := range []string{"yellow", "red"}[:len(of.levels)] {
			d.Thresholds.Steps = append(d.Thresholds.Steps, step{colour, &of.levels[i]})
		}
		b.add(p)
		x += of.width
	}
	b.height += panelHeight
}

func (b *board) add(p panel) {
	p.ID = len(b.Panels) + 1
	p.Description = ""
	for _, m := range table() {
		for _, t := range p.Targets {
			if strings.Contains(t.Expr, m.Name) {
				p.Description = m.Help
			}
		}
	}
	b.Panels = append(b.Panels, p)
}

// choice is a variable of which several values, or all, can be chosen.
func choice(name, label, query string) variable {
	return variable{Name: name, Label: label, Type: "query", Query: query, Source: dataSource{"prometheus",
		"${DS_PROMETHEUS}"}, Multi: true, IncludeAll: true, AllValue: ".*", Refresh: 2, Sort: 1,
		Current: current{"All", "$__all"}}
}

// What Grafana reads.
type (
	board struct {
		Inputs     []input  `json:"__inputs"`
		Title      string   `json:"title"`
		UID        string   `json:"uid"`
		Schema     int      `json:"schemaVersion"`
		Tags       []string `json:"tags"`
		Timezone   string   `json:"timezone"`
		Refresh    string   `json:"refresh"`
		Time       span     `json:"time"`
		Templating struct {
			List []variable `json:"list"`
		} `json:"templating"`
		Panels []panel `json:"panels"`
		height int
	}
	input struct {
		Name       string `json:"name"`
		Label      string `json:"label"`
		Type       string `json:"type"`
		PluginID   string `json:"pluginId"`
		PluginName string `json:"pluginName"`
	}
	span struct {
		From string `json:"from"`
		To   string `json:"to"`
	}
	variable struct {
		Name       string     `json:"name"`
		Label      string     `json:"label"`
		Type       string     `json:"type"`
		Query      string     `json:"query"`
		Source     dataSource `json:"datasource"`
		Multi      bool       `json:"multi"`
		IncludeAll bool       `json:"includeAll"`
		AllValue   string     `json:"allValue"`
		Refresh    int        `json:"refresh"` // 2: when the range of time changes
		Sort       int        `json:"sort"`    // 1: by name
		Current    current    `json:"current"`
	}
	current struct {
		Text  string `json:"text"`
		Value string `json:"value"`
	}
	panel struct {
		ID          int         `json:"id"`
		Title       string      `json:"title"`
		Description string      `json:"description,omitempty"`
		Type        string      `json:"type"`
		Source      *dataSource `json:"datasource,omitempty"`
		Place       place       `json:"gridPos"`
		Fields      *fields     `json:"fieldConfig,omitempty"`
		Targets     []target    `json:"targets,omitempty"`
	}
	dataSource struct {
		Type string `json:"type"`
		UID  string `json:"uid"`
	}
	place struct {
		X int `json:"x"`
		Y int `json:"y"`
		W int `json:"w"`
		H int `json:"h"`
	}
	fields struct {
		Defaults struct {
			Unit       string     `json:"unit"`
			Min        *float64   `json:"min,omitempty"`
			Max        *float64   `json:"max,omitempty"`
			Thresholds thresholds `json:"thresholds"`
		} `json:"defaults"`
		Overrides []struct{} `json:"overrides"`
	}
	thresholds struct {
		Mode  string `json:"mode"`
		Steps []step `json:"steps"`
	}
	step struct {
		Color string   `json:"color"`
		Value *float64 `json:"value"`
	}
	target struct {
		Expr    string `json:"expr"`
		Legend  string `json:"legendFormat"`
		Ref     string `json:"refId"`
		Instant bool   `json:"instant,omitempty"`
	}
)
