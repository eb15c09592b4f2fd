// Package metrics tells Prometheus how it stands with a Berth. It promises that a scrape reads memory alone and waits
// for nothing, that the states of a pool add up to the pool, and that no label is without bound: none is a container,
// an address or an owner.
//
// The names are a table (table.go), to which the docs, the alerts and the board are held. What is counted while
// requests are answered is in count.go; what is asked for at each scrape, in scrape.go. The board is made in board.go.
package metrics
