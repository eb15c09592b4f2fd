package admin

import (
	"context"
	"errors"
	"time"

	"berth/internal/admin/api"
	"berth/internal/ipam"
)

// mayCallForAccount refuses operations that are not for callers of one account. The packages inside limit the
// others to the account by ipam.WithAccount.
func (c *caller) mayCallForAccount(r route) *api.Problem {
	if c.account != "" && r.Account {
		return nil
	}
	return forbidden("%s is only for the elastic addresses of account %s, which does not include %s %s: "+
		"use a token with the role %s or %s", c.actor, c.account, r.Method, r.Path, api.RoleAdmin, api.RoleReadOnly)
}

// hasAccount refuses a caller whose account is gone. If the account was removed and created again, it is another one,
// and an old token's owner may be somebody else.
func (s *Server) hasAccount(ctx context.Context) error {
	who := callerIn(ctx)
	if who.role != api.RoleAccount {
		return nil
	}
	since, err := s.accountSince(ctx, who.account)
	if err != nil && !errors.Is(err, ipam.ErrNotFound) {
		return err
	}
	if err == nil && (who.account == ipam.DefaultAccount || since.Equal(who.since)) {
		return nil
	}
	return forbidden("the account %s, which %s is for, was removed: ask an admin for a token of another account",
		who.account, who.actor)
}

// accountSince returns when an account was created. It is zero for the empty account, and for one without a record.
func (s *Server) accountSince(ctx context.Context, account string) (time.Time, error) {
	if account == "" {
		return time.Time{}, nil
	}
	all, err := s.cfg.Service.Accounts(ctx)
	if err != nil {
		return time.Time{}, err
	}
	for _, one := range all {
		if one.Name == account {
			return one.Created, nil
		}
	}
	return time.Time{}, ipam.Refuse(ipam.ErrNotFound, "there is no account %q", account).
		Advise(ipam.DoListAccounts)
}
