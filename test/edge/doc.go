// Package edge holds the tests of internal/edge on a kernel: hosts, guests and an outside peer are network namespaces
// that the tests make, so that nothing of the machine is touched. They run as root, by `make edge`. Each test has a
// process and namespaces of its own, so that several can run side by side (beside_test.go).
//
// The test process is the host. The lab (lab_test.go) puts a switch, guests on a bridge, a peer and a second host
// around it, and imitates the rules of Docker's two firewall backends (docker_test.go). Who answers is found out by
// sockets, ARP and neighbour discovery inside the namespaces (ask_test.go).
//
// Two hosts that share an etcd, each a namespace with a daemon, a `berth edge` and guests, are in hosts_test.go. An
// address moves between them (move_test.go), and is taken over from one that is killed, frozen or cut off
// (takeover_test.go).
//
// internal/dhcp is tested on a LAN (dhcplan_test.go) with servers as people run them, dnsmasq and Kea
// (dhcpserver_test.go): each case with both, by DHCP and by DHCPv6 (dhcp_test.go). What people have, a daemon and
// `berth edge` on a host of such LANs, is in lanhost_test.go: its starts and what comes between (dhcpdaemon_test.go),
// leases that are kept over kills (dhcpkept_test.go), and that go with their owners to another host
// (dhcpmoves_test.go). What is said on the wire is heard (dhcptap_test.go).
package edge
