package metrics

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Board is the board for Grafana, in its JSON, with a panel for each row of the table but those that only say what a
// Berth is. It asks the data source that it is imported with.
func Board() ([]byte, error) {
	b := board{Title: "Berth", UID: "berth", Schema: 39, Refresh: "30s", Timezone: "browser", Tags: []string{"berth"},
		Time: span{"now-6h", "now"}, Panels: []panel{},
		Inputs: []input{{Name: "DS_PROMETHEUS", Label: "Prometheus", Type: "datasource", PluginID: "prometheus",
			PluginName: "Prometheus"}}}
	for _, m := range Table() {
		if m.Name == buildInfo {
			continue
		}
		b.add(m)
	}
	text, err := json.MarshalIndent(&b, "", "  ")
	return append(text, '\n'), err
}

// Sizes of a panel, in Grafana's grid of 24 columns.
const (
	panelWidth  = 12
	panelHeight = 8
	perRow      = 2
)

func (b *board) add(m Metric) {
	n := len(b.Panels)
	p := panel{ID: n + 1, Title: m.Name, Description: m.Help, Type: "timeseries",
		Source: source{"prometheus", "${DS_PROMETHEUS}"},
		Place:  place{n % perRow * panelWidth, n / perRow * panelHeight, panelWidth, panelHeight}}
	expr, unit := question(m)
	p.Fields.Defaults.Unit = unit
	var legend []string
	for _, l := range m.Labels {
		legend = append(legend, "{{"+l+"}}")
	}
	p.Targets = []target{{Expr: expr, Legend: strings.Join(legend, " "), Ref: "A"}}
	b.Panels = append(b.Panels, p)
}

// question is what a panel asks of a metric, and its unit. What all hosts of a cluster tell alike is counted once.
func question(m Metric) (expr, unit string) {
	by := strings.Join(m.Labels, ", ")
	switch {
	case m.Kind == Histogram:
		labels := strings.Join(slices.Concat([]string{"le"}, m.Labels), ", ")
		return fmt.Sprintf("histogram_quantile(0.99, sum by (%s) (rate(%s_bucket[5m])))", labels, m.Name), "s"
	case m.Kind == Counter && by == "":
		return fmt.Sprintf("sum(rate(%s[5m]))", m.Name), "ops"
	case m.Kind == Counter:
		return fmt.Sprintf("sum by (%s) (rate(%s[5m]))", by, m.Name), "ops"
	case strings.HasSuffix(m.Name, "_timestamp_seconds"):
		return fmt.Sprintf("time() - %s", m.Name), "s"
	case strings.HasSuffix(m.Name, "_seconds"):
		return m.Name, "s"
	case strings.HasSuffix(m.Name, "_bytes"):
		return m.Name, "bytes"
	case m.Name == poolAddresses, m.Name == elasticAddresses, m.Name == dhcpLeases:
		return fmt.Sprintf("max by (%s) (%s)", by, m.Name), "short"
	}
	return m.Name, "short"
}

// What Grafana reads.
type (
	board struct {
		Inputs   []input  `json:"__inputs"`
		Title    string   `json:"title"`
		UID      string   `json:"uid"`
		Schema   int      `json:"schemaVersion"`
		Tags     []string `json:"tags"`
		Timezone string   `json:"timezone"`
		Refresh  string   `json:"refresh"`
		Time     span     `json:"time"`
		Panels   []panel  `json:"panels"`
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
	panel struct {
		ID          int      `json:"id"`
		Title       string   `json:"title"`
		Description string   `json:"description"`
		Type        string   `json:"type"`
		Source      source   `json:"datasource"`
		Place       place    `json:"gridPos"`
		Fields      fields   `json:"fieldConfig"`
		Targets     []target `json:"targets"`
	}
	source struct {
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
			Unit string `json:"unit"`
		} `json:"defaults"`
		Overrides []struct{} `json:"overrides"`
	}
	target struct {
		Expr   string `json:"expr"`
		Legend string `json:"legendFormat"`
		Ref    string `json:"refId"`
	}
)
