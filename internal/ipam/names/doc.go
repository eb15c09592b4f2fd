// Package names tells which addresses are somebody's, and whose, for those who answer for names. It promises that what
// it has told comes to what the records say, a moment after each commit, whoever has made it and on whichever host;
// and that it never keeps a request waiting: it reads the store in pages, and holds no lock of the ledger but for the
// names of networks.
//
// Book.NameNews (news.go) reads all networks, subnets and leases, and elastic ranges and addresses, at first, and tells
// them as a whole. From then on it takes what commits have written (ledger.Commits) and tells what has come of it
// (follow.go): of a lease by its record alone, of a subnet or a network that is another one by reading its leases anew.
package names
