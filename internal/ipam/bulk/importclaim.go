package bulk

import (
	"context"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
	"berth/store"
)

// importClaim says which host of a cluster works on imports: there is one journal, and one who writes it. A claim of a
// daemon that has ended or is not there counts for nothing; each transaction of an import holds to it.
type importClaim struct {
	Host    string  `json:"host"`
	Session ipam.ID `json:"session"`
}

func importClaimKey() []byte { return append([]byte{ledger.SettingKeys}, "importing"...) }

// EnterImport makes sure that only one works on imports at a time, until leave is called.
func EnterImport(ctx context.Context, s *ledger.Ledger) (leave func(), err error) {
	if !s.StartImport() {
		return nil, ipam.Help(ipam.Refuse(ipam.ErrInUse,
			"an import is under way, and the next one can begin when it has ended"),
			ipam.Advise(ipam.DoShowStatus))
	}
	if s.Member() != nil {
		err = s.Update(ctx, claimImport)
	}
	if err != nil {
		s.EndImport()
		return nil, err
	}
	return func() {
		if s.Member() != nil { // where it fails, the claim ends with this daemon
			_ = s.Update(context.WithoutCancel(ctx), disclaimImport)
		}
		s.EndImport()
	}, nil
}

func claimImport(c *ledger.Change) error {
	other, err := readImportClaim(c.Tx())
	if err != nil {
		return err
	}
	if other != nil && other.Host != c.Host() && other.counts(c.Index(), c.Present()) {
		return ipam.Refuse(ipam.ErrInUse, "an import is under way on host %s; the next one can begin when it has ended",
			other.Host)
	}
	_, err = c.PutJSON(importClaimKey(), &importClaim{c.Host(), c.Member().Session}, false)
	return err
}

// holdImport refuses a transaction of an import that somebody else works on by now.
func holdImport(c *ledger.Change) error {
	if c.Member() == nil {
		return nil
	}
	claim, err := readImportClaim(c.Tx())
	if err == nil && (claim == nil || claim.Session != c.Member().Session) {
		err = ipam.Help(ipam.Refuse(ipam.ErrInUse,
			"another host of the cluster went on with the import while this one was out "+
				"of reach"), ipam.Advise(ipam.DoShowStatus))
	}
	return err
}

func disclaimImport(c *ledger.Change) error {
	claim, err := readImportClaim(c.Tx())
	if err != nil {
		return err
	}
	if claim == nil || claim.Session != c.Member().Session {
		return nil
	}
	return c.Tx().Delete(importClaimKey())
}

// counts tells whether the daemon that has made the claim is there.
func (claim *importClaim) counts(ix *ledger.Index, present map[string][]byte) bool {
	h := ix.Host(claim.Host)
	_, there := present[claim.Host]
	return there && h != nil && h.Session == claim.Session
}

// importsElsewhere tells whether another host works on an import.
func importsElsewhere(s *ledger.Ledger, tx store.Tx) (bool, error) {
	claim, err := readImportClaim(tx)
	if err != nil {
		return false, err
	}
	if claim == nil {
		return false, nil
	}
	present := s.Shared().Present()
	there := ledger.Ask(s, func(ix *ledger.Index) bool { return claim.counts(ix, present) })
	return there && claim.Host != s.Host(), nil
}

// readImportClaim reads the claim, nil where nobody works on an import.
func readImportClaim(tx store.Tx) (*importClaim, error) {
	raw, err := tx.Get(importClaimKey())
	if err != nil {
		return nil, err
	}
	if raw == nil {
		return nil, nil
	}
	claim := new(importClaim)
	return claim, ipam.DecodeJSON("an import's host", raw, claim)
}
