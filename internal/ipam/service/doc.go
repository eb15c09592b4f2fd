// Package service builds the Service from the packages that share one ledger, which keeps the records and their index.
// The driver, the API, the hooks and the witness use it. A Service that Open returns is ready: all records are read,
// interrupted work is finished, and the host has joined its cluster, if it has one.
//
// Open (service.go) creates the ledger, reads all records into it and finishes interrupted work. rebuild.go rebuilds an
// in-memory state from the running containers, and run.go does the housekeeping. import.go adds a plan through two
// packages, compare and edit. It first tries everything in a draft (importdraft.go). Then it writes in pieces and lets
// other requests in between (importpace.go).
package service
