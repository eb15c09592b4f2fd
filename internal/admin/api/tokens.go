package api

import (
	"time"

	"berth/internal/ipam"
)

// Role is what a caller may do.
type Role string

// The roles.
const (
	RoleAdmin    Role = "admin"
	RoleReadOnly Role = "read-only" // operations that read
	RoleAccount  Role = "account"   // the elastic addresses of one account
	RoleAnybody  Role = "anybody"   // for an Endpoint: whoever can connect; no caller has this role
)

// TokenPrefix is the prefix of every token, so that a leaked one is recognised.
const TokenPrefix = "berth_"

// TokenInfo is a token without its text.
type TokenInfo struct {
	Name    string    `json:"name"`
	Role    Role      `json:"role"`
	Account string    `json:"account,omitempty"` // the only account that it is for, with RoleAccount
	Created time.Time `json:"created"`
	By      string    `json:"by"`               // who created it
	Expires time.Time `json:"expires,omitzero"` // zero: never
	Expired bool      `json:"expired"`
}

// TokenLifetime is the default lifetime of a token.
const TokenLifetime = 90 * 24 * time.Hour

// TokenRequest requests a token.
type TokenRequest struct {
	Name     string        `json:"name"`
	Role     Role          `json:"role,omitempty"`     // required, unless an account is given: then RoleAccount
	Account  string        `json:"account,omitempty"`  // the only account that it may see and change
	Lifetime ipam.Duration `json:"lifetime,omitempty"` // 0: TokenLifetime
	NoEnd    bool          `json:"no_end,omitempty"`   // valid until it is removed
}

// NewToken is a new token. Its text is shown only once.
type NewToken struct {
	TokenInfo
	Token string `json:"token"`
}

// TokenList is the answer of GET /v1/tokens.
type TokenList struct {
	Tokens []TokenInfo `json:"tokens"`
}
