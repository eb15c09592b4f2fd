package main

import (
	"context"
	"iter"
	"maps"
	"net/netip"
	"slices"
	"time"

	"berth/internal/admin/client"
	"berth/internal/cli"
	"berth/internal/dhcp"
	"berth/internal/edge/lan"
	"berth/internal/edge/probe"
	"berth/internal/ipam"

	"github.com/sirupsen/logrus"
)

// speakOnLANs answers the daemon's questions on the host's LANs until ctx ends.
func speakOnLANs(ctx context.Context, p *cli.Program, log *logrus.Entry) error {
	servers := new(dhcp.Client)
	defer servers.Close()
	d := &lanDaemon{p: p}
	return lan.Run(ctx, lan.Config{Asks: d.asks, Answer: d.answer, Do: doing(servers), Log: log})
}

// doing passes each question to the package for it.
func doing(servers *dhcp.Client) func(context.Context, ipam.LANAsk) ipam.LANAnswer {
	return func(ctx context.Context, ask ipam.LANAsk) ipam.LANAnswer {
		switch ask.Verb {
		case ipam.LANProbe:
			return answeredBy(ctx, ask)
		case ipam.LANHear:
			return heardBy(ctx, ask)
		default:
			return servers.Do(ctx, ask)
		}
	}
}

func answeredBy(ctx context.Context, ask ipam.LANAsk) (a ipam.LANAnswer) {
	answers, err := probe.Ask(ctx, ask.Parent, ask.Addresses)
	if err != nil {
		return ipam.LANAnswer{Failure: ipam.LANParent, Error: err.Error()}
	}
	for _, addr := range slices.SortedFunc(maps.Keys(answers), netip.Addr.Compare) {
		a.Answered = append(a.Answered, ipam.LANNeighbour{Address: addr, MAC: ipam.MAC(answers[addr])})
	}
	return a
}

func heardBy(ctx context.Context, ask ipam.LANAsk) (a ipam.LANAnswer) {
	long := time.Duration(ask.Within)
	all, err := probe.Hear(ctx, ask.Parent, ask.Subnet, long-min(time.Second, long/2)) // the rest is for the answer
	if err != nil {
		return ipam.LANAnswer{Failure: ipam.LANParent, Error: err.Error()}
	}
	for _, h := range all {
		a.Answered = append(a.Answered, ipam.LANNeighbour{Address: h.Address, MAC: h.MAC})
	}
	return a
}

// lanDaemon is the daemon of this host, located again for each connection. The questions of one connection are finished
// before the next one opens, so an answer goes to the connection of its question.
type lanDaemon struct {
	p *cli.Program
	c *client.Client
}

func (d *lanDaemon) asks(ctx context.Context) iter.Seq2[ipam.LANAsk, error] {
	return func(yield func(ipam.LANAsk, error) bool) {
		c, err := d.p.Connect(ctx)
		if err != nil {
			yield(ipam.LANAsk{}, err)
			return
		}
		d.c = c
		defer c.Close()
		for ask, err := range c.LANAsks(ctx) {
			if !yield(ask, err) {
				return
			}
		}
	}
}

func (d *lanDaemon) answer(ctx context.Context, a ipam.LANAnswer) error { return d.c.AnswerLAN(ctx, a) }
