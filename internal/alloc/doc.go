// Package alloc does the arithmetic of addresses: which addresses of a subnet are taken, which is the next free one,
// which subnets overlap, and where the next one fits. It promises exact answers for both families and every prefix
// length, time and memory that grow with what is used and never with the size of the subnet, and nothing else: it knows
// no store, no owner and no clock, and it takes no lock (the caller does).
//
// Data comes in as text through ParseRange and ParsePrefix, which refuse whatever is not written plainly, and lives on
// as netip values. A Set holds the addresses of one subnet that are taken, a Blocks the subnets of one space; both are
// built by one pass over the records at start, are moved on by every commit, and answer questions in between.
package alloc
