package document

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"berth/internal/admin/api"
	"berth/internal/admin/client"
	"berth/internal/cli"
	"berth/internal/ipam"
)

// elasticBatch is how many edits of elastic addresses one request makes: few enough for a transaction of a store that
// hosts share.
const elasticBatch = 16

// elasticNow is what the daemon has of elastic addresses.
type elasticNow struct {
	accounts  map[string]*ipam.AccountInfo
	ranges    map[ipam.Range]*ipam.ElasticRangeInfo
	addresses map[netip.Addr]*ipam.ElasticInfo
}

// exportElastic is what there is of elastic addresses, for a document.
func exportElastic(ctx context.Context, c *client.Client) (*ipam.PlannedElastic, error) {
	accounts, err := c.Accounts(ctx)
	if err != nil {
		return nil, err
	}
	ranges, err := c.ElasticRanges(ctx)
	if err != nil {
		return nil, err
	}
	addresses, err := c.Elastics(ctx, "")
	if err != nil {
		return nil, err
	}
	p := &ipam.PlannedElastic{}
	for _, a := range accounts {
		if a.Created.IsZero() {
			continue // the one that is always there
		}
		p.Accounts = append(p.Accounts, ipam.PlannedAccount{CreateAccount: ipam.CreateAccount{Account: a.Name,
			Domain: a.Domain, Quota: a.Quota, Owners: a.Owners}})
	}
	for i := range ranges {
		r := &ranges[i]
		p.Ranges = append(p.Ranges, ipam.PlannedElasticRange{AddElasticRange: ipam.AddElasticRange{Range: r.Range,
			Host: r.Host, Announce: r.Announce, TTL: &r.TTL, OnCut: string(r.OnCut)}})
	}
	for i := range addresses {
		a := &addresses[i]
		if a.Kind == ipam.KindSystem || a.State != ipam.ElasticAllocated {
			continue
		}
		one := ipam.PlannedElasticAddress{Address: a.Address, Account: a.Account}
		if a.Associated {
			one.Instance, one.Network, one.Guest, one.EgressOnly = a.Instance, a.Network, a.Guest, a.EgressOnly
		}
		p.Addresses = append(p.Addresses, one)
	}
	return p, nil
}

func readElastic(ctx context.Context, c *client.Client) (*elasticNow, error) {
	now := &elasticNow{map[string]*ipam.AccountInfo{}, map[ipam.Range]*ipam.ElasticRangeInfo{},
		map[netip.Addr]*ipam.ElasticInfo{}}
	accounts, err := c.Accounts(ctx)
	if err != nil {
		return nil, err
	}
	for i := range accounts {
		now.accounts[accounts[i].Name] = &accounts[i]
	}
	ranges, err := c.ElasticRanges(ctx)
	if err != nil {
		return nil, err
	}
	for i := range ranges {
		now.ranges[ranges[i].Range] = &ranges[i]
	}
	addresses, err := c.Elastics(ctx, "")
	for i := range addresses {
		now.addresses[addresses[i].Address] = &addresses[i]
	}
	return now, err
}

// elasticEdits is what of a document is missing.
type elasticEdits struct {
	wrong     ipam.PlanError
	edits     []ipam.Edit
	associate []ipam.PlannedElasticAddress
	added     ipam.Counts
	unchanged ipam.Counts
}

// missing holds a document against what is there. What contradicts it is in wrong, with its line.
func (now *elasticNow) missing(p *ipam.PlannedElastic) *elasticEdits {
	e := &elasticEdits{}
	for i := range p.Accounts {
		e.account(now, &p.Accounts[i])
	}
	for i := range p.Ranges {
		e.elasticRange(now, &p.Ranges[i])
	}
	for i := range p.Addresses {
		e.address(now, &p.Addresses[i])
	}
	return e
}

func (e *elasticEdits) account(now *elasticNow, a *ipam.PlannedAccount) {
	known := now.accounts[a.Account]
	if known == nil || known.Created.IsZero() {
		e.added.Accounts++
		e.edits = append(e.edits, &a.CreateAccount)
		return
	}
	e.unchanged.Accounts++
	sameQuota := (known.Quota == nil) == (a.Quota == nil) && (a.Quota == nil || *known.Quota == *a.Quota)
	if known.Domain != a.Domain || !sameQuota || !slices.Equal(known.Owners, a.Owners) {
		e.wrong.Add(a.Line, "there is an account %s already, with another domain, quota or owners", a.Account)
	}
}

func (e *elasticEdits) elasticRange(now *elasticNow, r *ipam.PlannedElasticRange) {
	known := now.ranges[r.Range]
	if known == nil {
		e.added.Ranges++
		e.edits = append(e.edits, &r.AddElasticRange)
		return
	}
	e.unchanged.Ranges++
	announce := r.Announce
	if announce == "none" {
		announce = ""
	}
	if known.Host != r.Host || known.Announce != announce || r.TTL != nil && known.TTL != *r.TTL ||
		known.OnCut != cmp.Or(ipam.OnCut(r.OnCut), ipam.CutWithdraw) {
		e.wrong.Add(r.Line, "there is an elastic range %s already, with another host, device, ttl or on_cut", r.Range)
	}
}

func (e *elasticEdits) address(now *elasticNow, a *ipam.PlannedElasticAddress) {
	known := now.addresses[a.Address]
	switch {
	case known == nil || known.State == ipam.ElasticReleasing && known.Account == a.Account:
		e.added.Elastic++
		e.edits = append(e.edits, &ipam.AllocateElastic{Account: a.Account, Address: a.Address})
	case known.Account != a.Account || known.Kind == ipam.KindSystem:
		e.wrong.Add(a.Line, "the elastic address %s is account %s's already", a.Address, known.Account)
		return
	default:
		e.unchanged.Elastic++
	}
	switch {
	case a.Instance == "":
	case known == nil || !known.Associated:
		e.added.Associations++
		e.associate = append(e.associate, *a)
	case known.Instance != a.Instance || known.EgressOnly != a.EgressOnly || a.Network != "" && known.Network != a.Network:
		e.wrong.Add(a.Line, "the elastic address %s is associated with %s on network %s already", a.Address,
			known.Instance, known.Network)
	default:
		e.unchanged.Associations++
	}
}

// make makes what is missing, and lists which associations could not be made.
func (e *elasticEdits) make(ctx context.Context, p *cli.Program, c *client.Client, file string) error {
	for batch := range slices.Chunk(e.edits, elasticBatch) {
		if _, err := c.Edit(ctx, client.EditOptions{}, batch...); err != nil {
			return fmt.Errorf("the networks of %s are imported, and of its elastic addresses not all: %w", cli.Named(file),
				err)
		}
	}
	failed := 0
	for i := range e.associate {
		a := &e.associate[i]
		if err := associate(ctx, c, a); err != nil {
			failed++
			fmt.Fprintf(p.Err, "%s:%d: %s\n", cli.Named(file), a.Line, cli.Printable(cli.OneLine(err)))
		}
	}
	if failed > 0 {
		return fmt.Errorf("%s could not be made, and all else is imported; import it again when that is put right",
			cli.Counted(failed, "association"))
	}
	return nil
}

// associate makes an association. Its guest is named only where it is not clear without it: one that is named is meant
// for ever.
func associate(ctx context.Context, c *client.Client, a *ipam.PlannedElasticAddress) error {
	edit := &ipam.AssociateElastic{Address: a.Address, Instance: a.Instance, Network: a.Network, EgressOnly: a.EgressOnly}
	_, err := c.Edit(ctx, client.EditOptions{}, edit)
	var refused *api.Problem
	if errors.As(err, &refused) && refused.Reason == string(ipam.GuestUnclear) && a.Guest.IsValid() {
		edit.Guest = a.Guest
		_, err = c.Edit(ctx, client.EditOptions{}, edit)
	}
	return err
}
