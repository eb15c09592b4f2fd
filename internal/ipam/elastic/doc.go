// Package elastic has the rules of elastic addresses: whose they are, to which guests they are to be mapped, and what
// the edges of hosts have applied. It promises that what is wanted and what is applied are two things, that a refusal
// changes nothing, that every edit may be asked for again in every state, and that no address is stuck: one that an
// account released is free as soon as no edge says that it maps it.
//
// Apply (apply.go) makes each edit inside a change of the room edit: accounts (account.go), ranges (range.go),
// addresses (allocate.go) and associations (associate.go), whose guests are found in guest.go. What ends with its
// owner or its network is in end.go, and what ends with its container in releaseon.go; who is associated with whom is
// looked up by lookup.go. What a host's edge is to map is worked out in wanted.go, by track.go for all addresses and
// then for those that a commit can bear on (commits.go), and told by news.go; what it has mapped it says to report.go;
// what those of hosts have said that are no more is forgotten by sweep.go. show.go lists all of it, usage.go sums who
// had how much, and asker.go keeps who asks for one account to what is its own.
package elastic
