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
	"time"

	"berth/test/sockets"

	"github.com/rogpeppe/go-internal/testscript"
)

// scriptPrometheus is a real Prometheus of a script, which scrapes its daemon by the alerts of contrib.
type scriptPrometheus struct {
	dir     string
	address string // of its API
	run     *exec.Cmd
}

type prometheusKey struct{}

// prometheusCommand is the command of scripts:
//
//	prometheus place           $METRICS is an address for --metrics-listen
//	prometheus start           scrapes that each second, with all alerts at once where they wait otherwise
//	prometheus fires ALERT     waits until an alert fires
//	prometheus stop
func prometheusCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: prometheus place|start|fires ALERT|stop")
	}
	p := ts.Value(prometheusKey{}).(*scriptPrometheus)
	switch {
	case args[0] == "place":
		address, err := sockets.FreeAddress()
		ts.Check(err)
		ts.Setenv("METRICS", address)
	case args[0] == "start":
		ts.Check(p.start(ts.Getenv("METRICS")))
	case args[0] == "fires" && len(args) == 2:
		ts.Check(p.fires(args[1]))
	case args[0] == "stop":
		p.stop()
	default:
		ts.Fatalf("prometheus %v is nothing", args)
	}
}

// waits are the parts of an alert that only time can bring about.
var waits = regexp.MustCompile(`for: [0-9]+m|> 900`)

// start runs it with the alerts of contrib, which wait for nothing.
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
	if p.address, err = sockets.FreeAddress(); err != nil {
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

// fires waits until an alert does.
func (p *scriptPrometheus) fires(alert string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	ask := "http://" + p.address + "/api/v1/query?query=" +
		url.QueryEscape(fmt.Sprintf("ALERTS{alertname=%q,alertstate=\"firing\"}", alert))
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for {
		var said struct {
			Data struct {
				Result []any `json:"result"`
			} `json:"data"`
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, ask, nil)
		if err != nil {
			return err
		}
		if res, err := client.Do(req); err == nil { // it may be starting
			err = json.NewDecoder(res.Body).Decode(&said)
			res.Body.Close()
			if err == nil && len(said.Data.Result) > 0 {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s does not fire", alert)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// stop ends it. One that does not run stays so.
func (p *scriptPrometheus) stop() {
	if p.run == nil {
		return
	}
	_ = p.run.Process.Kill()
	_ = p.run.Wait()
	p.run = nil
}
