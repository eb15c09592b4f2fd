package nft

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os/exec"
	"slices"
	"strings"

	"berth/internal/edge"

	"go4.org/netipx"
)

// The engine's iptables backend drops packets into a bridge for ports that are not published. DOCKER-USER, its chain
// for users, comes before that, and accepts packets to elastic addresses there. The rule matches the original
// destination and not a mark, because it must hold wherever the engine inserts its rules later.

const (
	dockerChain = "DOCKER-USER"
	ruleComment = "berth-edge"
)

// dockerUser maintains rules in the engine's chain for users, if it exists.
type dockerUser struct {
	commands []iptables
	legacy   bool // its changes are invisible in nftables
}

type iptables struct {
	path string
	is4  bool
}

func findDockerUser() dockerUser {
	var d dockerUser
	for _, name := range []string{"iptables", "ip6tables"} {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		d.commands = append(d.commands, iptables{path, name == "iptables"})
		version, err := exec.Command(path, "--version").Output()
		d.legacy = d.legacy || err == nil && strings.Contains(string(version), "legacy")
	}
	return d
}

// set makes the rules match the ranges. Without ranges it removes them.
func (d dockerUser) set(ctx context.Context, ranges []edge.Range) error {
	for _, c := range d.commands {
		rules, err := c.list(ctx)
		if err != nil {
			return err
		}
		remove, add := rules.difference(c.prefixes(ranges))
		for prefix, told := range remove {
			err := c.remove(ctx, prefix, told)
			if err != nil {
				return err
			}
		}
		for _, prefix := range add {
			err := c.insert(ctx, prefix)
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// missing returns the missing rules.
func (d dockerUser) missing(ctx context.Context, ranges []edge.Range) ([]string, error) {
	var gone []string
	for _, c := range d.commands {
		rules, err := c.list(ctx)
		if err != nil {
			return nil, err
		}
		_, add := rules.difference(c.prefixes(ranges))
		for _, prefix := range add {
			gone = append(gone, fmt.Sprintf("rule of %s in %s", prefix, dockerChain))
		}
	}
	return gone, nil
}

// has reports whether there is a rule of Berth.
func (d dockerUser) has(ctx context.Context) (bool, error) {
	for _, c := range d.commands {
		rules, err := c.list(ctx)
		if err != nil {
			return false, err
		}
		if len(rules.ours) > 0 {
			return true, nil
		}
	}
	return false, nil
}

// chainRules is the content of the chain.
type chainRules struct {
	there bool
	ours  map[netip.Prefix][]string // in the words of iptables
	end   int                       // the position of a rule that always leaves the chain; zero: none
}

func (c iptables) list(ctx context.Context) (chainRules, error) {
	rules := chainRules{ours: map[netip.Prefix][]string{}}
	out, err := c.run(ctx, "-S", dockerChain)
	if ended := (*exec.ExitError)(nil); errors.As(err, &ended) {
		return rules, nil // there is no such chain: no engine, or one with another backend
	}
	if err != nil {
		return rules, err
	}
	rules.there = true
	position := 0
	for line := range strings.Lines(out) {
		words := strings.Fields(line)
		if len(words) < 2 || words[0] != "-A" {
			continue
		}
		position++
		if strings.TrimSpace(line) == "-A "+dockerChain+" -j RETURN" && rules.end == 0 {
			rules.end = position
		}
		if !slices.Contains(words, ruleComment) {
			continue
		}
		prefix, ok := originalDestination(words)
		if ok && rules.end == 0 { // a rule after the end has no effect and counts as missing
			rules.ours[prefix] = words[1:]
		}
	}
	return rules, nil
}

func originalDestination(words []string) (netip.Prefix, bool) {
	i := slices.Index(words, "--ctorigdst")
	if i < 0 || i+1 == len(words) {
		return netip.Prefix{}, false
	}
	prefix, err := netip.ParsePrefix(words[i+1])
	if err == nil {
		return prefix, true
	}
	a, err := netip.ParseAddr(words[i+1])
	if err != nil {
		return netip.Prefix{}, false
	}
	return netip.PrefixFrom(a, a.BitLen()), true
}

func (r chainRules) difference(want []netip.Prefix) (remove map[netip.Prefix][]string, add []netip.Prefix) {
	remove = maps.Clone(r.ours)
	for _, prefix := range want {
		delete(remove, prefix)
	}
	for _, prefix := range want {
		if r.there && r.ours[prefix] == nil {
			add = append(add, prefix)
		}
	}
	return remove, add
}

// insert adds a rule after the user's own rules, and before one that leaves the chain.
func (c iptables) insert(ctx context.Context, prefix netip.Prefix) error {
	rules, err := c.list(ctx)
	if err != nil {
		return err
	}
	where := []string{"-A", dockerChain}
	if rules.end > 0 {
		where = []string{"-I", dockerChain, fmt.Sprint(rules.end)}
	}
	_, err = c.run(ctx, append(where, dockerRule(prefix)...)...)
	return err
}

// remove deletes a rule, in the words of its insertion. The words of iptables do not work for a single address: without
// its length it gets another mask and does not match.
func (c iptables) remove(ctx context.Context, prefix netip.Prefix, told []string) error {
	_, err := c.run(ctx, append([]string{"-D", dockerChain}, dockerRule(prefix)...)...)
	if err != nil { // or somebody has added it by hand
		_, err = c.run(ctx, append([]string{"-D"}, told...)...)
	}
	return err
}

// dockerRule returns a rule without its position.
func dockerRule(prefix netip.Prefix) []string {
	return []string{"-m", "conntrack", "--ctstate", "DNAT", "--ctorigdst", prefix.String(),
		"-m", "comment", "--comment", ruleComment, "-j", "ACCEPT"}
}

func (c iptables) prefixes(ranges []edge.Range) []netip.Prefix {
	var all []netip.Prefix
	for _, r := range ranges {
		if r.From.Is4() == c.is4 {
			all = append(all, netipx.IPRangeFrom(r.From, r.To).Prefixes()...)
		}
	}
	return all
}

func (c iptables) run(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, c.path, append([]string{"--wait", "5"}, args...)...)
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", c.path, strings.Join(args, " "), err, strings.TrimSpace(errs.String()))
	}
	return string(out), nil
}
