package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"berth/test/lab"

	"github.com/rogpeppe/go-internal/testscript"
)

// scriptPrometheus is a real Prometheus for a script. It scrapes its daemon, with the alerts of contrib.
type scriptPrometheus struct {
	dir     string
	address string // of its API
	run     *exec.Cmd
}

type prometheusKey struct{}

// prometheusCommand is the command of scripts:
//
//	prometheus place           puts an address for --metrics-listen into $METRICS
//	prometheus start           scrapes that address each second; alerts do not wait
//	prometheus fires ALERT     waits until an alert fires
//	prometheus board           runs all queries of the board of contrib/grafana
//	prometheus stop
func prometheusCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: prometheus place|start|fires ALERT|board|stop")
	}
	p := ts.Value(prometheusKey{}).(*scriptPrometheus)
	switch {
	case args[0] == "place":
		address, err := lab.FreeAddress()
		ts.Check(err)
		ts.Setenv("METRICS", address)
	case args[0] == "start":
		ts.Check(p.start(ts.Getenv("METRICS")))
	case args[0] == "fires" && len(args) == 2:
		ts.Check(p.fires(args[1]))
	case args[0] == "board":
		ts.Check(p.board())
	case args[0] == "stop":
		p.stop()
	default:
		ts.Fatalf("prometheus %v is nothing", args)
	}
}

// waits matches the waiting times in an alert.
var waits = regexp.MustCompile(`for: [0-9]+m|> 900`)

// start runs Prometheus with the alerts of contrib, without their waiting times.
func (p *scriptPrometheus) start(target string) error {
	rules, err := os.ReadFile("../../contrib/prometheus/berth.rules.yml")
	if err != nil {
		return err
	}
	rules = waits.ReplaceAllFunc(rules, func(found []byte) []byte {
		if found[0] == '>' {
			return []byte("> 1")
		}
		return []byte("for: 0s")
	})
	config := fmt.Sprintf("global: {scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}\n"+
		"rule_files: [rules.yml]\nscrape_configs: [{job_name: berth, static_configs: [{targets: [%q]}]}]\n", target)
	for name, text := range map[string][]byte{"rules.yml": rules, "prometheus.yml": []byte(config)} {
		if err := os.WriteFile(filepath.Join(p.dir, name), text, 0o600); err != nil {
			return err
		}
	}
	if p.address, err = lab.FreeAddress(); err != nil {
		return err
	}
	program, err := filepath.Abs("../../build/tools/prometheus")
	if err != nil {
		return err
	}
	p.run = exec.Command(program, "--config.file="+filepath.Join(p.dir, "prometheus.yml"),
		"--storage.tsdb.path="+filepath.Join(p.dir, "data"), "--web.listen-address="+p.address)
	if err := p.run.Start(); err != nil {
		p.run = nil
		return fmt.Errorf("%w; `scripts/needs test` brings a Prometheus", err)
	}
	return nil
}

// fires waits until an alert fires.
func (p *scriptPrometheus) fires(alert string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for {
		n, err := p.ask(ctx, fmt.Sprintf("ALERTS{alertname=%q,alertstate=\"firing\"}", alert))
		if err == nil && n > 0 { // it may be starting
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s does not fire", alert)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// ask is the number of series that a query returns.
func (p *scriptPrometheus) ask(ctx context.Context, query string) (int, error) {
	var said struct {
		Status, Error string
		Data          struct {
			Result []any `json:"result"`
		} `json:"data"`
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.address+"/api/v1/query?query="+
		url.QueryEscape(query), nil)
	if err != nil {
		return 0, err
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Do(req)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	if err := json.NewDecoder(res.Body).Decode(&said); err != nil {
		return 0, err
	}
	if said.Status != "success" {
		return 0, fmt.Errorf("%s: %s", query, said.Error)
	}
	return len(said.Data.Result), nil
}

// silent are panels that are empty as long as nothing of their kind is in use.
var silent = map[string]bool{"Leases of DHCP servers": true, "Questions for names": true, "Hooks that failed": true,
	"Attempts of webhooks that failed": true, "Events that a receiver refused": true,
	"Age of the oldest event not sent": true, "Names that are answered for": true, "Headroom": true,
	"Questions which container asks": true, "Containers put back to their addresses": true,
	"Requests of the engine": true, "Time of the slowest in a hundred requests": true,
	"Time of the slowest in a hundred commits": true}

// board runs all queries of the board for Grafana.
func (p *scriptPrometheus) board() error {
	text, err := os.ReadFile("../../contrib/grafana/berth.json")
	if err != nil {
		return err
	}
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &board); err != nil {
		return err
	}
	for _, panel := range board.Panels {
		for _, target := range panel.Targets {
			n, err := p.ask(context.Background(), strings.NewReplacer("$host", ".*", "$network", ".*").Replace(target.Expr))
			if err != nil {
				return fmt.Errorf("%s: %w", panel.Title, err)
			}
			if n == 0 && !silent[panel.Title] {
				return fmt.Errorf("%q shows nothing", panel.Title)
			}
		}
	}
	return nil
}

// stop ends Prometheus, if it runs.
func (p *scriptPrometheus) stop() {
	if p.run == nil {
		return
	}
	_ = p.run.Process.Kill()
	_ = p.run.Wait()
	p.run = nil
}
