package document

import (
	"context"

	"berth/internal/admin/client"
	"berth/internal/ipam"
)

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
		if a.ReleaseOn != ipam.ReleaseNever.String() {
			one.ReleaseOn = a.ReleaseOn
		}
		if a.Associated {
			one.Instance, one.Network, one.Guest, one.EgressOnly = a.Instance, a.Network, a.Guest, a.EgressOnly
		}
		p.Addresses = append(p.Addresses, one)
	}
	return p, nil
}
