package admin

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"berth/internal/admin/api"
	"berth/internal/ipam"
)

// maxTokens is the maximum number of tokens of a state. Each request over TLS is compared with all of them.
const maxTokens = 1000

// Tokens are the tokens for access over TLS. They are stored in a file of the state's directory (tokenfile.go); the
// zero Tokens are only in memory.
//
// Only hashes are stored, so that a reader of the file cannot use the tokens. One round of SHA-256 is enough, because a
// token is 256 random bits and cannot be guessed.
type Tokens struct {
	path string
	now  func() time.Time

	mu  sync.Mutex               // held during changes
	all atomic.Pointer[[]*token] // by name; the slice is never changed
}

// token is a token with its hash.
type token struct {
	api.TokenInfo
	since time.Time         // when its account was created; zero if that has no record
	hash  [sha256.Size]byte // of its text
	until context.Context   // ends when the token is removed
	end   context.CancelFunc
}

func newToken(info api.TokenInfo, since time.Time, hash [sha256.Size]byte) *token {
	t := &token{TokenInfo: info, since: since, hash: hash}
	t.until, t.end = context.WithCancel(context.Background())
	return t
}

func (t *Tokens) time() time.Time {
	if t.now == nil {
		return time.Now()
	}
	return t.now()
}

func (t *Tokens) list() []*token {
	if all := t.all.Load(); all != nil {
		return *all
	}
	return nil
}

// List lists the tokens by name.
func (t *Tokens) List() []api.TokenInfo {
	var all []api.TokenInfo
	for _, one := range t.list() {
		all = append(all, one.show(t.time()))
	}
	return all
}

func (t *token) show(now time.Time) api.TokenInfo {
	info := t.TokenInfo
	info.Expired = t.expired(now)
	return info
}

func (t *token) expired(now time.Time) bool { return !t.Expires.IsZero() && !now.Before(t.Expires) }

// create makes a token. since is when its account was created.
func (t *Tokens) create(req api.TokenRequest, since time.Time, by string) (api.NewToken, error) {
	if req.Account != "" {
		req.Role = cmp.Or(req.Role, api.RoleAccount)
	}
	if err := checkRequest(&req); err != nil {
		return api.NewToken{}, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	before := t.list()
	place, taken := find(before, req.Name)
	switch {
	case taken:
		return api.NewToken{}, problem(http.StatusConflict, api.CodeInUse,
			"the token %s already exists: choose another name, or remove it with `berth token rm %s`", req.Name,
			req.Name)
	case len(before) >= maxTokens:
		return api.NewToken{}, problem(http.StatusConflict, api.CodeExhausted,
			"there are already %d tokens, the maximum: remove unused ones with `berth token rm`",
			len(before))
	}
	var secret [32]byte
	rand.Read(secret[:]) // never fails (crypto/rand)
	text := api.TokenPrefix + hex.EncodeToString(secret[:])
	info := api.TokenInfo{Name: req.Name, Role: req.Role, Account: req.Account,
		Created: t.time().UTC().Truncate(time.Second), By: by}
	if !req.NoEnd {
		info.Expires = info.Created.Add(time.Duration(cmp.Or(req.Lifetime, ipam.Duration(api.TokenLifetime))))
	}
	after := slices.Insert(slices.Clone(before), place, newToken(info, since, sha256.Sum256([]byte(text))))
	if err := t.save(after); err != nil {
		return api.NewToken{}, err
	}
	t.all.Store(&after)
	return api.NewToken{TokenInfo: info, Token: text}, nil
}

func checkRequest(req *api.TokenRequest) error {
	if err := ipam.CheckName("token", req.Name); err != nil {
		return err
	}
	if req.Role == "" {
		return invalid("the token %s has no role: choose %s, which may do everything, or "+
			"%s", req.Name, api.RoleAdmin, api.RoleReadOnly)
	}
	if err := checkRole(req.Role, req.Account); err != nil {
		return invalid("%v", err)
	}
	if req.NoEnd && req.Lifetime != 0 {
		return invalid("a token with the lifetime %s has an end: give only one of lifetime and no_end",
			time.Duration(req.Lifetime))
	}
	if req.Lifetime != 0 && time.Duration(req.Lifetime) < time.Second {
		return invalid("the lifetime %s is too short: give at least one second", time.Duration(req.Lifetime))
	}
	return nil
}

// checkRole refuses an unknown role, and one that does not fit the account.
func checkRole(role api.Role, account string) error {
	switch {
	case role == api.RoleAccount && account == "":
		return fmt.Errorf("the role %s needs an account", role)
	case role == api.RoleAccount:
		return ipam.CheckName("account", account)
	case role != api.RoleAdmin && role != api.RoleReadOnly:
		return fmt.Errorf("the role %q is unknown: choose %s, %s or %s", role, api.RoleAdmin, api.RoleReadOnly,
			api.RoleAccount)
	case account != "":
		return fmt.Errorf("a token for account %s must have the role %s, not %s", account, api.RoleAccount, role)
	}
	return nil
}

// tokenWarning is how long before its expiry a token becomes a finding.
const tokenWarning = 14 * 24 * time.Hour

// Findings returns a finding for each token that expires soon, with what to do.
func (t *Tokens) Findings(host string) (found []ipam.Finding) {
	now := t.time()
	for _, one := range t.list() {
		if one.Expires.IsZero() || one.expired(now) || now.Add(tokenWarning).Before(one.Expires) {
			continue
		}
		since := one.Expires.Add(-tokenWarning)
		if since.Before(one.Created) {
			since = one.Created
		}
		found = append(found, ipam.Finding{Kind: ipam.EndingToken, Host: host, Seen: since.UTC(),
			Detail: fmt.Sprintf("the token %s ends at %s: create another with `berth token create`, and remove this "+
				"one with `berth token rm %s`", one.Name, one.Expires.Format(time.RFC3339), one.Name)})
	}
	return found
}

// Remove removes a token. It is invalid from then on, even if the file cannot be written. Running requests with it are
// aborted.
func (t *Tokens) Remove(name string) (api.TokenInfo, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	before := t.list()
	place, ok := find(before, name)
	if !ok {
		return api.TokenInfo{}, problem(http.StatusNotFound, api.CodeNotFound,
			"there is no token %q; `berth token ls` lists the tokens", name)
	}
	before[place].end()
	after := slices.Delete(slices.Clone(before), place, place+1)
	if err := t.save(after); err != nil {
		return api.TokenInfo{},
			fmt.Errorf("Berth refuses the token %s now, but would accept it again after a restart; remove it again: "+
				"%w", name, err)
	}
	t.all.Store(&after)
	return before[place].show(t.time()), nil
}

// find returns the index of a name, or where it belongs.
func find(all []*token, name string) (int, bool) {
	return slices.BinarySearchFunc(all, name, func(one *token, name string) int {
		return strings.Compare(one.Name, name)
	})
}

// caller returns the caller for a token. It compares every hash completely, so that the time reveals nothing about any
// of them.
func (t *Tokens) caller(text string) (*caller, *api.Problem) {
	hash := sha256.Sum256([]byte(text))
	var found *token
	for _, one := range t.list() {
		if subtle.ConstantTimeCompare(hash[:], one.hash[:]) == 1 {
			found = one
		}
	}
	switch {
	case found == nil || found.until.Err() != nil:
		return nil, unauthenticated("this Berth does not know the token: it was removed, or belongs to another " +
			"daemon; create one with `berth token create` on the daemon's host")
	case found.expired(t.time()):
		return nil, unauthenticated("the token %s expired at %s: create another with `berth token create`",
			found.Name, found.Expires.Format(time.RFC3339))
	}
	return &caller{actor: "token " + found.Name, role: found.Role, account: found.Account, since: found.since,
		until: found.until}, nil
}
