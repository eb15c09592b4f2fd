// Package names streams named addresses to DNS and other consumers. Shortly after a commit by any host, the stream
// agrees with the records. It never delays a request: it reads the store in pages and locks the ledger only for the
// names of networks.
//
// Source.NameNews (news.go) first reads all networks, subnets, leases, elastic ranges and elastic addresses, and sends
// them as a whole. Then it follows the commits (ledger.Commits) and sends the differences (follow.go). For a lease it
// needs only the record; for a changed subnet or network it rereads the leases.
package names
