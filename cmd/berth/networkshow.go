package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"berth/internal/admin"
	"berth/internal/alloc"
	"berth/internal/ipam"

	"github.com/spf13/cobra"
	"go4.org/netipx"
)

const networkShowHelp = `Shows a network with all that is planned in it, and draws each pool: a character for each address, X taken or excluded
and . free, 64 to a line, which begins with the first address on it. Where more than four lines in a row are all free, or
all taken, one line stands for them. Pools of more than 65,536 addresses are not drawn.

--format json is one object, with the subnets, and for each pool start, end, map and free.`

func (p *program) networkShowCommand() *cobra.Command {
	var format string
	cmd := &cobra.Command{Use: "show NETWORK", Aliases: []string{"inspect"}, Short: "Show a network and the map of its pools", Long: networkShowHelp,
		Args: takes("NETWORK"), ValidArgsFunction: p.completeRefs(networkRefs),
		Example: `  berth network show net1
  berth network show net1 --format json
  berth network show net1 --format '{{range .Subnets}}{{.CIDR}} {{end}}'`}
	cmd.Flags().StringVar(&format, "format", "text", "`form` of the output: text, json (one object), or a Go template")
	completes(cmd, "format", words("text", "json"))
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		show, err := newObject[ipam.NetworkInfo](p.out, cmd, format)
		if err != nil {
			return err
		}
		return p.ask(cmd, func(ctx context.Context, c *admin.Client) error {
			n, err := c.Network(ctx, args[0])
			if err != nil {
				return err
			}
			return showObject(show, &n, func(w io.Writer) error { return writeNetwork(w, &n) })
		})
	}
	return cmd
}

// writeNetwork is the page of a network (GA-23).
func writeNetwork(w io.Writer, n *ipam.NetworkInfo) error {
	pg := &page{}
	pg.line("NETWORK %s", n.Name)
	pg.entry("id", n.ID.String())
	pg.entry("space", n.Space)
	pg.entry("type", n.Type)
	pg.entry("tags", tagText(n.Tags))
	pg.entry("mac prefix", n.MACPrefix)
	for _, l := range n.Links {
		pg.entry("link", fmt.Sprintf("on %s: %s %s", l.Host, l.Mode, l.Link))
	}
	pg.entry("policy", policyText(n))
	if n.Headroom > 0 {
		pg.entry("headroom", fmt.Sprintf("%d for each Docker network of each host", n.Headroom))
	}
	for _, band := range n.Static {
		pg.entry("static", band.String())
	}
	for _, r := range n.OwnerRules {
		pg.entry("owner rule", r.String())
	}
	pg.entry("in use", useText(n.Held, n.Reserved, n.Docker))
	if !n.Planned {
		pg.entry("made for", "Docker; it ends with its last Docker network, unless it is edited")
	}
	for i := range n.Subnets {
		pg.subnet(&n.Subnets[i])
	}
	if pg.drawn {
		pg.line("")
		pg.line("X taken or excluded   . free")
	}
	_, err := io.WriteString(w, pg.text.String())
	return err
}

func policyText(n *ipam.NetworkInfo) string {
	text := "released addresses are kept for their last holder"
	if !n.Sticky {
		text = "released addresses go to whoever is next"
	}
	if n.Quarantine != "" {
		text += ", quarantine " + n.Quarantine
	}
	return text
}

func useText(held, reserved uint64, docker int) string {
	return fmt.Sprintf("%d held, %d reserved, %s", held, reserved, counted(docker, "Docker network"))
}

func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// page is written line by line.
type page struct {
	text  strings.Builder
	drawn bool // a map is on it
}

// line writes one; what names and notes bring along does not break it.
func (pg *page) line(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if text != "" {
		text = strings.TrimRight(printable(text), " ")
	}
	pg.text.WriteString(text + "\n")
}

// entry writes what has a value.
func (pg *page) entry(name, value string) {
	if value != "" {
		pg.line("  %-11s %s", name, value)
	}
}

func (pg *page) subnet(s *ipam.SubnetPlan) {
	pg.line("")
	pg.line("SUBNET %s  %s", s.CIDR, s.Name)
	pg.entry("id", s.ID.String())
	gateway := "none"
	if s.Gateway.IsValid() {
		gateway = s.Gateway.String()
	}
	pg.entry("gateway", gateway)
	if s.DHCP {
		pg.entry("dhcp", "yes")
	}
	pg.entry("in use", useText(s.Held, s.Reserved, s.Docker))
	for i := range s.Pools {
		pg.pool(&s.Pools[i])
	}
	if len(s.Pools) == 0 {
		pg.line("  no pool: addresses are given only where they are asked for")
	}
	for _, e := range s.Exclusions {
		pg.line("  EXCLUDED %s  %s", alloc.FormatRange(netipx.IPRangeFrom(e.Start, e.End)), e.Note)
	}
}

func (pg *page) pool(p *ipam.PoolPlan) {
	r := netipx.IPRangeFrom(p.Start, p.End)
	text := alloc.FormatRange(r)
	if p.Name != "" {
		text = p.Name + "  " + text
	}
	undrawn := ""
	if p.Map == "" {
		undrawn = "; too many to draw"
	}
	pg.line("  POOL %s  %s of %s free%s", text, p.Free, alloc.Size(r), undrawn)
	if p.Map == "" {
		return
	}
	pg.drawn = true
	rows := foldMap(p)
	width := 0
	for _, row := range rows {
		width = max(width, len(row.label))
	}
	for _, row := range rows {
		pg.line("    %-*s  %s", width, row.label, row.text)
	}
}
