// Package dns answers DNS queries from the records: A and AAAA for owners and services in one zone, PTR for addresses
// of Berth (RFC 1034, 1035). A name appears shortly after the commit and disappears shortly after the lease ends. Every
// PTR name resolves back to its address. Only this host, planned networks and allowed clients get answers. The package
// asks no other server, and no request for an address waits for it.
//
// The service's news of named addresses (ipam.NameNews) update the Index (index.go). Each address claims its names
// (claim.go), and if several addresses claim a name, a fixed order decides (node.go). server.go receives a query;
// answer.go checks the client (asker.go) and answers from the nodes or from reverse.go. export.go writes the names as a
// hosts file and as a zone.
package dns
