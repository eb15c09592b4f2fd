// Package edge holds the tests of internal/edge on a kernel: hosts, guests and an outside peer are network namespaces
// that the tests make, inside one of their own, so that nothing of the machine is touched. They run as root, by `make
// edge`.
//
// The test process is the host. The lab (lab_test.go) puts a switch, guests on a bridge, a peer and a second host
// around it, and imitates the rules of Docker's two firewall backends (docker_test.go). Who answers is found out by
// sockets, ARP and neighbour discovery inside the namespaces (ask_test.go).
//
// Two hosts that share an etcd, each a namespace with a daemon, a `berth edge` and guests, are in hosts_test.go. An
// address moves between them (move_test.go), and is taken over from one that is killed, frozen or cut off
// (takeover_test.go).
package edge
