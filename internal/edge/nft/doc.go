// Package nft is the edge provider for this host's kernel: nftables, addresses on devices, and announcements to
// neighbours. It restores the last state even if somebody flushes the tables. A change of mappings is one transaction,
// and connections of other addresses continue. A fenced range stops answering at most half a second after its time,
// even if a process is frozen.
//
// A State becomes tables and chains (schema.go) with the contents of their sets (contents.go). Set (provider.go,
// apply.go) reads the kernel (kernel.go), repairs the tables with nft (structure.go), and moves the elements by netlink
// (elements.go). For ten thousand elements nft needs a second, netlink some milliseconds. Fenced ranges use elements
// with a timeout (live.go).
//
// Then Set removes connections that contradict the state (conntrack.go), adds the addresses to their devices
// (addresses.go), and announces them (internal/edge/announce). dockeruser.go makes Docker admit them. Check and Run
// (check.go) compare and repair when devices change (devices.go).
package nft
