// Package edge tests internal/edge on a real kernel. Each host, guest and outside peer is a network namespace that a
// test makes. The machine itself does not change. The tests run as root, by `make edge`. Each has its own process and
// namespaces, so several can run in parallel (beside_test.go).
//
// The test process is the host. The lab adds a switch, guests on a bridge, a peer and a second host (lab_test.go), and
// imitates Docker's two firewall backends (docker_test.go). Sockets, ARP and neighbour discovery in the namespaces show
// who answers (ask_test.go).
//
// hosts_test.go has two hosts with a shared etcd, each a namespace with a daemon, a `berth edge` and guests. An address
// moves between them (move_test.go), and one host takes over from a killed, frozen or disconnected one
// (takeover_test.go).
//
// internal/dhcp is tested on a LAN (dhcplan_test.go) with dnsmasq and Kea (dhcpserver_test.go), over DHCP and DHCPv6
// (dhcp_test.go). lanhost_test.go runs a daemon and `berth edge` on a host of that LAN. The cases are restarts
// (dhcpdaemon_test.go), leases that survive kills (dhcpkept_test.go), and owners that move to another host
// (dhcpmoves_test.go). dhcptap_test.go captures the traffic.
package edge
