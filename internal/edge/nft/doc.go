// Package nft is the provider of an edge by the kernel of this host: nftables, addresses on devices, and neighbours
// that are told. It promises that what is in the kernel is what was set last, whoever flushed it meanwhile; that a
// change of mappings is one transaction of map elements; that no connection of another address is cut; and that no
// fenced range answers for longer than half a second after the time until which it may, whatever is frozen when.
//
// A State becomes tables with their chains (schema.go) and the contents of their sets (contents.go). Set
// (provider.go, apply.go) reads what the kernel has (kernel.go), puts right what is missing of the tables by nft's own
// text (structure.go), and moves the elements by netlink (elements.go): nft reads and writes ten thousand of them in a
// second, netlink in some milliseconds. Fenced ranges answer by timed elements (live.go). Then connections that
// contradict the state are forgotten (conntrack.go), addresses are on their devices (addresses.go) and announced
// (internal/edge/announce), and Docker lets them in (dockeruser.go). Check and Run (check.go) compare and repair, when
// devices say that something happened to them (devices.go).
package nft
