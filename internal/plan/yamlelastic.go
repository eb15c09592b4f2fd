package plan

import (
	"cmp"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"berth/internal/alloc"
	"berth/internal/ipam"

	"go.yaml.in/yaml/v4"
)

// elastic reads the part of a document that has the accounts, ranges and elastic addresses.
func (d *document) elastic(n *yaml.Node) *ipam.PlannedElastic {
	p := &ipam.PlannedElastic{}
	d.mapping(n, "elastic", "accounts, ranges, addresses", func(key string, v *yaml.Node) bool {
		switch key {
		case "accounts":
			p.Accounts = list(d, v, key, d.account)
		case "ranges":
			p.Ranges = list(d, v, key, d.elasticRange)
		case "addresses":
			p.Addresses = list(d, v, key, d.elasticAddress)
		default:
			return false
		}
		return true
	})
	return p
}

func (d *document) account(n *yaml.Node) ipam.PlannedAccount {
	p := ipam.PlannedAccount{Line: n.Line}
	said := d.mapping(n, "an account", "name, domain, quota, owners", func(key string, v *yaml.Node) bool {
		switch key {
		case "name":
			p.Account = d.text(v)
		case "domain":
			p.Domain = d.text(v)
		case "quota":
			if quota, ok := value(d, v, parseNumber); ok {
				p.Quota = &quota
			}
		case "owners":
			p.Owners = list(d, v, key, d.text)
		default:
			return false
		}
		return true
	})
	if said && p.Account == "" {
		d.Add(n.Line, "the account has no name")
	}
	return p
}

func (d *document) elasticRange(n *yaml.Node) ipam.PlannedElasticRange {
	p := ipam.PlannedElasticRange{Line: n.Line}
	said := d.mapping(n, "a range", "range, host, announce, ttl, on_cut", func(key string, v *yaml.Node) bool {
		switch key {
		case "range":
			p.Range, _ = value(d, v, parseRange)
		case "host":
			p.Host = d.text(v)
		case "announce":
			p.Announce = d.text(v)
		case "ttl":
			p.TTL, _ = value(d, v, parseDuration)
		case "on_cut":
			p.OnCut = d.text(v)
		default:
			return false
		}
		return true
	})
	if said && !hasKey(n, "range") {
		d.Add(n.Line, "a range has no range; write one like range: 203.0.113.10-203.0.113.20")
	}
	return p
}

func (d *document) elasticAddress(n *yaml.Node) ipam.PlannedElasticAddress {
	p := ipam.PlannedElasticAddress{Line: n.Line}
	keys := "address, account, instance, network, guest, egress_only, release_on"
	said := d.mapping(n, "an elastic address", keys, func(key string, v *yaml.Node) bool {
		switch key {
		case "address":
			p.Address, _ = value(d, v, alloc.ParseAddr)
		case "account":
			p.Account = d.text(v)
		case "instance":
			p.Instance = d.text(v)
		case "network":
			p.Network = d.text(v)
		case "guest":
			p.Guest, _ = value(d, v, alloc.ParseAddr)
		case "egress_only":
			p.EgressOnly, _ = value(d, v, parseBool)
		case "release_on":
			p.ReleaseOn = d.text(v)
		default:
			return false
		}
		return true
	})
	switch {
	case said && !hasKey(n, "address"):
		d.Add(n.Line, "an elastic address has no address")
	case said && p.Instance == "" && (p.Network != "" || p.Guest != (netip.Addr{}) || p.EgressOnly):
		d.Add(n.Line, "the elastic address %s has no instance, of which the rest would be", p.Address)
	}
	p.Account = cmp.Or(p.Account, ipam.DefaultAccount)
	return p
}

// ElasticWriter is a Writer that also writes what there is of elastic addresses, at its end.
type ElasticWriter interface {
	Writer
	WriteElastic(*ipam.PlannedElastic)
}

// WriteElastic implements ElasticWriter.
func (w *yamlWriter) WriteElastic(e *ipam.PlannedElastic) { w.elastic = e }

// elasticLines writes the part of the document that has elastic addresses, where there is anything.
func (w *yamlWriter) elasticLines(e *ipam.PlannedElastic) {
	if e == nil || len(e.Accounts)+len(e.Ranges)+len(e.Addresses) == 0 {
		return
	}
	w.line("elastic:")
	w.head("accounts", len(e.Accounts))
	for i := range e.Accounts {
		a := &e.Accounts[i]
		rest := w.part("domain", a.Domain)
		if a.Quota != nil {
			rest += fmt.Sprintf(", quota: %d", *a.Quota)
		}
		if len(a.Owners) > 0 {
			var owners []string
			for _, one := range a.Owners {
				owners = append(owners, w.text(one))
			}
			rest += ", owners: [" + strings.Join(owners, ", ") + "]"
		}
		w.line("    - {name: %s%s}", w.text(a.Account), rest)
	}
	w.head("ranges", len(e.Ranges))
	for i := range e.Ranges {
		r := &e.Ranges[i]
		rest := w.part("host", r.Host) + w.part("announce", r.Announce)
		if r.TTL != nil {
			rest += ", ttl: " + time.Duration(*r.TTL).String()
		}
		w.line("    - {range: %s%s%s}", w.text(r.Range.String()), rest, w.part("on_cut", r.OnCut))
	}
	w.head("addresses", len(e.Addresses))
	for i := range e.Addresses {
		a := &e.Addresses[i]
		rest := w.part("account", a.Account) + w.part("instance", a.Instance) + w.part("network", a.Network)
		if a.Guest.IsValid() {
			rest += w.part("guest", a.Guest.String())
		}
		if a.EgressOnly {
			rest += ", egress_only: true"
		}
		rest += w.part("release_on", a.ReleaseOn)
		w.line("    - {address: %s%s}", w.text(a.Address.String()), rest)
	}
}

func (w *yamlWriter) head(key string, n int) {
	if n > 0 {
		w.line("  %s:", key)
	}
}

// part is one more key of a mapping, where its text is not empty.
func (w *yamlWriter) part(key, text string) string {
	if text == "" {
		return ""
	}
	return ", " + key + ": " + w.text(text)
}
