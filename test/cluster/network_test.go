package cluster

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"berth/test/lab"
)

// bridge joins all nodes. It is in the tests' own namespace.
const bridge = "br0"

// runTool runs a short command.
func runTool(stdin string, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w: %s (iproute2, nftables and util-linux are needed)", name,
			strings.Join(args, " "), err, out)
	}
	return string(out), nil
}

// ip runs several commands with ip(8).
func ip(commands ...string) error {
	for _, command := range commands {
		if _, err := runTool("", "ip", strings.Fields(command)...); err != nil {
			return err
		}
	}
	return nil
}

func makeBridge() error {
	return ip("link set lo up", "link add "+bridge+" type bridge", "link set "+bridge+" up",
		"address add 10.99.0.254/24 dev "+bridge)
}

// node is a network namespace on the bridge.
type node struct {
	name, addr string
}

// newNode makes the node 10.99.0.n.
func newNode(t testing.TB, name string, n int) *node {
	t.Helper()
	nd := &node{name, fmt.Sprintf("10.99.0.%d", n)}
	port := "p-" + name
	lab.Must(t, ip("netns add "+name, "-n "+name+" link set lo up",
		"link add "+port+" type veth peer name up0 netns "+name,
		"link set "+port+" master "+bridge+" up",
		"-n "+name+" address add "+nd.addr+"/24 dev up0", "-n "+name+" link set up0 up"))
	t.Cleanup(func() {
		lab.Check(t, ip("link del "+port, "netns del "+name))
	})
	return nd
}

// in is the command line that runs words in the node's namespace.
func (n *node) in(words ...string) []string {
	return append([]string{"nsenter", "--net=/run/netns/" + n.name}, words...)
}

// command is the command that runs in the node's namespace.
func (n *node) command(words []string) *exec.Cmd {
	words = n.in(words...)
	return exec.Command(words[0], words[1:]...)
}

func (n *node) nft(rules string) (string, error) {
	words := n.in("nft", "-f", "-")
	return runTool(rules, words[0], words[1:]...)
}

// cut drops all packets to and from the node.
func (n *node) cut(t testing.TB) {
	t.Helper()
	if _, err := n.nft(`table inet cut {
		chain in { type filter hook input priority -300; policy drop; iif lo accept; counter; }
		chain out { type filter hook output priority -300; policy drop; oif lo accept; counter; }
	}`); err != nil {
		t.Fatal(err)
	}
}

func (n *node) heal(t testing.TB) {
	t.Helper()
	if _, err := n.nft("delete table inet cut"); err != nil {
		t.Error(err)
	}
}

var packets = regexp.MustCompile(`packets (\d+)`)

// dropped returns nil if the cut has dropped packets in both directions.
func (n *node) dropped() error {
	out, err := n.nft("list table inet cut")
	if err != nil {
		return err
	}
	found := packets.FindAllStringSubmatch(out, -1)
	if len(found) != 2 {
		return fmt.Errorf("%s has no cut: %s", n.name, out)
	}
	for _, f := range found {
		if count, err := strconv.Atoi(f[1]); err != nil || count == 0 {
			return fmt.Errorf("no packet of %s was dropped: %s", n.name, out)
		}
	}
	return nil
}
