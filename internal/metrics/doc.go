// Package metrics exports Berth's metrics to Prometheus. A scrape reads only memory and never waits. The counts of a
// pool's states add up to the pool's size. Every label has a bounded set of values, so containers, addresses and owners
// are not labels.
//
// table.go lists the names; tests compare the docs, alerts and dashboard with it. count.go counts while requests are
// answered, and scrape.go reads values at each scrape.
package metrics
