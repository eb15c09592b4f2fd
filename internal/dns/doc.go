// Package dns answers for names out of records: A and AAAA of owners, services and their short names in one zone, and
// PTR of all addresses of Berth's subnets and elastic ranges (RFC 1034, 1035). It promises that an address has its name
// within a moment after the commit and for no longer than one after its end, that each name that an address is said to
// have leads to that address, that nobody is answered but this host, who is in a planned network, and who is allowed,
// that it asks no other server, and that no request for an address ever waits for it.
//
// What the service tells of named addresses (ipam.NameNews) moves the Index along (index.go): each address claims its
// names (claim.go), and who has a name that several claim is told by an order of claims (node.go). A query comes in by
// server.go, is held against who may ask and made an answer in answer.go; names below the zone are looked up in the
// nodes, and those of addresses in reverse.go. export.go writes the same names as a file of hosts and as a zone.
package dns
