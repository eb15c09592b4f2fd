package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"berth/internal/admin/api"
	"berth/internal/dns"

	"github.com/sirupsen/logrus"
)

// dnsFlags are the flags of serve for names.
type dnsFlags struct {
	listen textList[netip.AddrPort] // empty: names are not answered
	zone   string
	allow  textList[netip.Prefix]
}

// textList is the value of a flag that may be repeated, with several values separated by blanks.
type textList[T comparable] struct {
	all   []T
	parse func(string) (T, error)
	kind  string
}

// String implements pflag.Value.
func (l *textList[T]) String() string {
	return strings.Trim(fmt.Sprint(l.all), "[]")
}

// Type implements pflag.Value.
func (l *textList[T]) Type() string { return l.kind }

// Set implements pflag.Value. It adds to the list.
func (l *textList[T]) Set(text string) error {
	all := strings.Fields(text)
	if len(all) == 0 {
		return errors.New("the value is empty: give " + l.kind)
	}
	for _, one := range all {
		v, err := l.parse(one)
		if err != nil {
			return err
		}
		if slices.Contains(l.all, v) {
			return fmt.Errorf("%s is given twice", one)
		}
		l.all = append(l.all, v)
	}
	return nil
}

func newDNSFlags() dnsFlags {
	return dnsFlags{listen: textList[netip.AddrPort]{parse: parseListen, kind: "ADDR:PORT"},
		allow: textList[netip.Prefix]{parse: parseAllowed, kind: "CIDR"}}
}

// parseListen reads an address with a port. It refuses host names, which would need a lookup.
func parseListen(text string) (netip.AddrPort, error) {
	at, err := netip.ParseAddrPort(text)
	if err != nil || at.Addr().Is4In6() {
		return at, fmt.Errorf("%q is not an address with a port: write 192.168.1.2:53, [2001:db8::2]:53 or "+
			"0.0.0.0:53", text)
	}
	return at, nil
}

// parseAllowed reads a prefix or a single address.
func parseAllowed(text string) (netip.Prefix, error) {
	if addr, err := netip.ParseAddr(text); err == nil {
		return netip.PrefixFrom(addr.WithZone(""), addr.BitLen()), nil
	}
	p, err := netip.ParsePrefix(text)
	if err != nil {
		return p, fmt.Errorf("%q is not a CIDR: write 192.168.1.0/24, or 192.168.1.7 for one address", text)
	}
	return p.Masked(), nil
}

// check refuses invalid combinations of flags.
func (f *dnsFlags) check() (err error) {
	switch {
	case len(f.listen.all) == 0 && f.zone == "" && len(f.allow.all) == 0:
		return nil
	case len(f.listen.all) == 0:
		return errors.New("--dns-zone and --dns-allow work only with --dns-listen, which is missing")
	case f.zone == "":
		return errors.New("--dns-listen needs the zone of the names: give it with --dns-zone, such as lan.example")
	}
	if f.zone, err = dns.ParseZone(f.zone); err != nil {
		return fmt.Errorf("--dns-zone: %w", err)
	}
	return nil
}

// answerer answers queries for names.
type answerer struct {
	run   func(context.Context) error
	stop  func()
	state func() *api.NamesState // nil: no names are answered
}

// listenDNS binds the addresses for DNS, if there are any.
func (cfg *serveConfig) listenDNS(ctx context.Context, log *logrus.Entry, index *dns.Index,
	service dns.Service) (*answerer, error) {
	if len(cfg.dns.listen.all) == 0 {
		return &answerer{run: func(context.Context) error { return nil }, stop: func() {}}, nil
	}
	log = log.WithField("zone", cfg.dns.zone)
	if cfg.dns.zone == "local" || strings.HasSuffix(cfg.dns.zone, ".local") {
		log.Warn("many systems look up names below local by multicast (RFC 6762) and never ask this DNS server; use " +
			"another zone, such as home.arpa (RFC 8375)")
	}
	s, err := dns.Listen(ctx, dns.Config{Index: index, Service: service, Listen: cfg.dns.listen.all,
		Allow: cfg.dns.allow.all, Log: log})
	if err != nil {
		return nil, fmt.Errorf("--dns-listen: %w", err)
	}
	return &answerer{s.Run, s.Close, func() *api.NamesState {
		return &api.NamesState{Zone: cfg.dns.zone, Listen: s.Addrs(), Names: index.Count(), Queries: s.Queries()}
	}}, nil
}

// newIndex returns the index of names; nil if no names are answered.
func (cfg *serveConfig) newIndex() *dns.Index {
	if len(cfg.dns.listen.all) == 0 {
		return nil
	}
	return dns.New(cfg.dns.zone, time.Now)
}
