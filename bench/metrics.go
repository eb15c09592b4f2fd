package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

// Of what a scrape is timed.
const (
	scrapedPools = 1000
	scrapeRounds = 21
)

// measureMetrics times a scrape of many pools.
func measureMetrics(e env) ([]row, error) {
	s, err := e.servePools()
	if err != nil {
		return nil, err
	}
	defer s.stop()
	scrape := scraper(s.admin)
	var took []time.Duration
	var packed, plain int64
	for range scrapeRounds {
		begun := time.Now()
		if packed, err = scrape("gzip"); err != nil {
			return nil, err
		}
		took = append(took, time.Since(begun))
	}
	if plain, err = scrape("identity"); err != nil {
		return nil, err
	}
	one := median(took)
	return []row{{fmt.Sprintf("a scrape of /metrics at %d pools: time; size", scrapedPools), "20 ms; 300 kB",
		fmt.Sprintf("%.0f ms; %.0f kB as it is sent (gzip; %.0f kB unpacked)", one.Seconds()*1000, float64(packed)/1000,
			float64(plain)/1000),
		verdict(one <= 20*time.Millisecond && packed <= 300_000)}}, nil
}

// servePools starts a daemon with the pools of which a scrape tells.
func (e env) servePools(flags ...string) (*served, error) {
	document := filepath.Join(e.dir, "plan.yaml")
	if err := os.WriteFile(document, importDocument(0, scrapedPools), 0o600); err != nil {
		return nil, err
	}
	s, err := e.serve(e.dir, flags...)
	if err != nil {
		return nil, err
	}
	if _, err := e.run(s, "plan", "import", document); err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}

// scraper asks a daemon for its metrics, and returns how many bytes came.
func scraper(admin string) func(encoding string) (int64, error) {
	client := &http.Client{Transport: &http.Transport{DisableCompression: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", admin)
		}}}
	return func(encoding string) (int64, error) {
		req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, "http://berth/metrics", nil)
		if err != nil {
			return 0, err
		}
		req.Header.Set("Accept-Encoding", encoding)
		res, err := client.Do(req)
		if err != nil {
			return 0, err
		}
		defer res.Body.Close()
		if res.StatusCode != http.StatusOK {
			return 0, fmt.Errorf("/metrics is answered with %s", res.Status)
		}
		return io.Copy(io.Discard, res.Body)
	}
}
