// Package alloc does address arithmetic: which addresses of a subnet are taken, which is free next, which subnets
// overlap, and where another fits. It is exact for both families and every prefix length. Time and memory grow with
// use, never with the size of the subnet. It knows no store, owner or clock, and the caller does the locking.
//
// ParseRange and ParsePrefix read text strictly into netip values. A Set holds the taken addresses of one subnet;
// Blocks holds the subnets of one space. Both are built from the records at start and updated by every commit.
package alloc
