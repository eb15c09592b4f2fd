package ipam

import (
	"context"
	"fmt"

	"berth/store"
)

// importClaim says which host of a cluster works on imports: there is one journal, and one who writes it. A claim of a daemon
// that has ended or is not there counts for nothing; each transaction of an import holds to it.
type importClaim struct {
	Host    string `json:"host"`
	Session ID     `json:"session"`
}

func importClaimKey() []byte { return append([]byte{settingKeys}, "importing"...) }

// enterImport makes sure that only one works on imports at a time, until leave is called.
func (s *Service) enterImport(ctx context.Context) (leave func(), err error) {
	if !s.imports.running.CompareAndSwap(false, true) {
		return nil, &refusal{ErrInUse, "an import is under way; `berth status` shows how far it is, and the next one can begin when it has ended"}
	}
	if s.member != nil {
		err = s.update(ctx, (*change).claimImport)
	}
	if err != nil {
		s.imports.running.Store(false)
		return nil, err
	}
	return func() {
		if s.member != nil { // where it fails, the claim ends with this daemon
			_ = s.update(context.WithoutCancel(ctx), (*change).disclaimImport)
		}
		s.imports.running.Store(false)
	}, nil
}

func (c *change) claimImport() error {
	other, err := readImportClaim(c.tx)
	if err != nil {
		return err
	}
	if other != nil && other.Host != c.host && other.counts(c.ix, c.present()) {
		return &refusal{ErrInUse, fmt.Sprintf("an import is under way on host %s; the next one can begin when it has ended", other.Host)}
	}
	_, err = c.putJSON(importClaimKey(), &importClaim{c.host, c.member.Session}, false)
	return err
}

// holdImport refuses a transaction of an import that somebody else works on by now.
func (c *change) holdImport() error {
	if c.member == nil {
		return nil
	}
	claim, err := readImportClaim(c.tx)
	if err == nil && (claim == nil || claim.Session != c.member.Session) {
		err = &refusal{ErrInUse, "another host of the cluster went on with the import while this one was out of reach; `berth status` shows how far it is"}
	}
	return err
}

func (c *change) disclaimImport() error {
	claim, err := readImportClaim(c.tx)
	if err != nil || claim == nil || claim.Session != c.member.Session {
		return err
	}
	return c.tx.Delete(importClaimKey())
}

// counts tells whether the daemon that has made the claim is there.
func (claim *importClaim) counts(ix *index, present map[string][]byte) bool {
	h := ix.hosts[claim.Host].value
	_, there := present[claim.Host]
	return there && h != nil && h.Session == claim.Session
}

// importsElsewhere tells whether another host works on an import.
func (s *Service) importsElsewhere(tx store.Tx) (bool, error) {
	claim, err := readImportClaim(tx)
	if err != nil || claim == nil {
		return false, err
	}
	present := s.shared().Present()
	s.mu.Lock()
	defer s.mu.Unlock()
	return claim.Host != s.host && claim.counts(s.ix, present), nil
}

// readImportClaim reads the claim, nil where nobody works on an import.
func readImportClaim(tx store.Tx) (*importClaim, error) {
	raw, err := tx.Get(importClaimKey())
	if err != nil || raw == nil {
		return nil, err
	}
	claim := new(importClaim)
	return claim, decodeJSON("an import's host", raw, claim)
}
